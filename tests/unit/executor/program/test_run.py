"""The op stream on the CPU device: results, failures and what they poison, cancelling, reuse, the allow-list."""

from __future__ import annotations

import weakref
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.program.run import OpStream
from gpu_backend.executor.verbs import Verbs
from gpu_backend.wire import values as wire
from gpu_backend.wire.codec import encode
from gpu_backend.wire.messages import Failed, Op, Want
from gpu_backend.wire.values import Ref


@pytest.fixture(scope="module")
def device() -> Device:
    return open_device("cpu")


@pytest.fixture
def stream(device: Device) -> OpStream:
    return OpStream(device)


def run(stream: OpStream, *ops: Op, first: int = 1, cancelled: bool = False) -> list[Answer]:
    """Carry the ops out and return the answers."""
    batch, answers = QueuedBatch(first, ops, 0, ()), []
    while batch.next < len(ops):
        batch.next, answer = stream.cancel(batch) if cancelled else stream.run(batch, perf_counter() + 60)
        if answer is not None:
            answers.append(answer)
    return answers


def contents(handle: int) -> Op:
    return Op(".same", 0, (Ref(handle),), None, Want.CONTENTS)


def array(answer: Answer) -> Any:
    assert answer.error is None, answer.error
    value = answer.value
    assert isinstance(value, wire.Buffer)
    data = value.data if value.frame < 0 else bytes(answer.buffers[value.frame])
    return np.frombuffer(data, value.dtype).reshape(value.shape)


def arange(out: int, stop: int = 4) -> Op:
    return Op("cupy.arange", out, (stop,))


def test_results_stay_until_they_are_dropped(stream: OpStream) -> None:
    (answer,) = run(stream, arange(1), Op("cupy.add", 2, (Ref(1), 1)), contents(2))
    assert array(answer).tolist() == [1, 2, 3, 4]
    run(stream, Op(".nothing", 0, (), (1, 2, 99)), first=4)
    assert not stream.heap.objects


def test_functions_get_the_nan_that_cupy_asks_for(stream: OpStream, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[Any] = []
    monkeypatch.setitem(stream._functions, "cupy.sin", lambda *args, **kwargs: got.extend([*args, *kwargs.values()]))
    nan = float("nan")
    run(stream, Op("cupy.sin", 0, (nan, 1.5)), Op("cupy.sin", 0, (wire.List((nan,)),), kwargs={"cval": nan}))
    assert got[1] == 1.5
    assert got[0] is got[2][0] is got[3] is np.nan


def test_only_what_shows_what_was_computed_says_that_the_device_is_done(stream: OpStream) -> None:
    (shown, waited, described, told, failed) = run(
        stream,
        arange(1),
        contents(1),
        Op(".synchronize", 0, (), None, Want.CONTENTS),
        Op("cupy.add", 2, (Ref(1), 1), None, Want.DESCRIPTION),
        Op(".memory", 0, (), None, Want.CONTENTS),
        Op("cupy.add", 3, (Ref(1), "no number"), None, Want.CONTENTS),
    )
    assert shown.is_synchronized
    assert waited.is_synchronized
    assert not described.is_synchronized
    assert not told.is_synchronized
    assert failed.error is not None
    assert not failed.is_synchronized


def test_several_results_take_several_handles(stream: OpStream) -> None:
    answers = run(stream, arange(1), Op("cupy.divmod", 5, (Ref(1), 2)), contents(5), contents(6))
    assert [array(answer).tolist() for answer in answers] == [[0, 0, 1, 1], [0, 1, 0, 1]]


def orders(stream: OpStream, *handles: int) -> list[str]:
    return [stream._device.memory_order(stream.heap.objects[handle]) for handle in handles]


def test_proved_results_lie_as_they_were_proved_to(stream: OpStream) -> None:
    square = wire.Tuple((3, 3))
    ones = (Op("cupy.ones", 1, (square,)), Op("cupy.ones", 2, (square, "<f8", "F"), orders=("F",)))
    assert run(stream, *ones, Op("cupy.linalg.qr", 3, (Ref(1),), orders=("F", ""))) == []
    assert orders(stream, 1, 2, 3) == ["C", "F", "F"]
    turned = wire.View(2, 0, (3, 3), (24, 8), "<f8", "F")  # a copy keeps the order of its strides
    run(stream, Op("cupy.copy", 5, (turned, "K")), Op("cupy.copy", 6, (Ref(2), "K"), kwargs={}), first=4)
    assert orders(stream, 5, 6) == ["C", "C"]
    cube = Op("cupy.ones", 7, (wire.Tuple((2, 3, 4)),), orders=("1,0,2",))
    assert run(stream, cube, first=6) == []
    assert orders(stream, 7) == ["1,0,2"]


def test_what_an_asked_result_shares_stays_shared(stream: OpStream) -> None:
    asked = Op("cupy.transpose", 2, (Ref(1), wire.List((1, 0))), None, Want.DESCRIPTION)
    held = Op(".window", 3, (wire.View(1, 0, (3, 2), (8, 24), "<f8", "C"),), orders=("",))
    (answer,) = run(stream, Op("cupy.ones", 1, (wire.Tuple((2, 3)),)), asked, held)
    assert answer.value == wire.ArrayInfo(2, (3, 2), (8, 24), "<f8", 1, 0, "C")
    root = stream.heap.objects[1]
    assert all(np.shares_memory(root, stream.heap.objects[handle]) for handle in (2, 3))


def test_an_order_that_no_array_can_have_is_refused(stream: OpStream) -> None:
    (answer,) = run(stream, Op("cupy.ones", 1, (wire.Tuple((2, 3)),), orders=("?8,8",)))
    assert answer.error is not None
    assert answer.error.kind == "gpu_backend.wire.errors.ProtocolError"


def test_an_argument_that_comes_back_keeps_its_handle(stream: OpStream) -> None:
    """By keyword too: ``cupyx.cusparse.spmv(a, x, y=y)`` is ``y``."""
    made = [
        Op("cupy.ones", 1, (2,)),
        Op("cupy.eye", 2, (2,)),
        Op("cupyx.scipy.sparse.csr_matrix", 3, (Ref(2),)),
        Op("cupy.ones", 4, (2,)),
    ]
    by_keyword = Op("cupyx.cusparse.spmv", 5, (Ref(3), Ref(1)), None, Want.DESCRIPTION, kwargs={"y": Ref(4)})
    by_place = Op("cupyx.cusparse.spmv", 6, (Ref(3), Ref(1), Ref(4)), None, Want.DESCRIPTION)
    assert [answer.value for answer in run(stream, *made, by_keyword, by_place)] == [Ref(4), Ref(4)]


def test_a_failure_poisons_what_needs_its_result_and_is_blamed(stream: OpStream) -> None:
    first, second, third, fourth = run(
        stream,
        arange(1),
        Op("cupy.linalg.inv", 2, (Ref(1),)),  # op 2 fails
        Op("cupy.add", 3, (Ref(2), 1)),
        Op("cupy.add", 4, (1, Ref(3))),
        contents(4),
        arange(6),
    )
    assert first.error is not None
    assert first.error.caused_by == -1
    assert first.error.kind == "numpy.linalg.LinAlgError"
    for answer in (second, third, fourth):
        assert answer.error is not None
        assert (answer.error.kind, answer.error.message) == (first.error.kind, first.error.message)
        assert answer.error.caused_by == 2
    assert 6 in stream.heap.objects


def test_what_another_executor_held_is_lost(stream: OpStream) -> None:
    (answer,) = run(stream, contents(77))
    assert answer.error is not None
    assert answer.error.kind.endswith("SessionLost")
    assert "lost with an earlier executor" in answer.error.message


def test_an_op_may_name_an_array_beside_a_view_that_believes_it_to_lie_otherwise(stream: OpStream) -> None:
    ones = Op("cupy.ones", 1, (wire.Tuple((2, 3)),))
    in_columns = wire.View(1, 0, (3, 2), (16, 8), "<f8", "F")
    twice = Op("cupy.dot", 2, (Ref(1), in_columns))
    (answer,) = run(stream, ones, twice, contents(2))
    assert array(answer).tolist() == [[3, 3], [3, 3]]
    others = Op("cupy.ones", 3, (wire.Tuple((2, 3)),))
    held = Op(".same", 4, (wire.View(3, 0, (3,), (8,), "<f8", "C"),))
    lie = Op("cupy.add", 5, (wire.View(3, 0, (2,), (8,), "<f8", "F"), 1))
    (answer,) = run(stream, others, held, lie)
    assert answer.error is not None
    assert "memory order" in answer.error.message
    held = Op(".same", 6, (wire.View(1, 0, (2,), (8,), "<f8", "F"),))  # what was laid out anew is no other
    lie = Op("cupy.add", 7, (wire.View(1, 0, (3,), (8,), "<f8", "C"), 1))
    (answer,) = run(stream, held, lie)
    assert answer.error is not None
    assert "memory order" in answer.error.message


def test_cancelled_ops_leave_word_and_still_drop(stream: OpStream) -> None:
    run(stream, arange(1), arange(2), arange(3))
    assert run(stream, Op("cupy.add", 4, (Ref(1), 1), (2,), reuse=3), first=4, cancelled=True) == []
    assert set(stream.heap.objects) == {1}
    (answer,) = run(stream, Op("cupy.add", 5, (Ref(4), 1)), first=5)
    assert answer.error is not None
    assert answer.error.kind.endswith("OpCancelled")
    assert "Run that cell again" in answer.error.message
    assert answer.error.caused_by == 4


def test_cancelled_ops_that_somebody_waits_for_are_answered(stream: OpStream) -> None:
    (answer,) = run(stream, contents(1), cancelled=True)
    assert answer.error is not None
    assert answer.error.kind.endswith("OpCancelled")


def test_work_stops_between_ops_when_its_time_is_up(stream: OpStream) -> None:
    batch = QueuedBatch(1, tuple(arange(out) for out in range(1, 6)), 0, ())
    assert stream.run(batch, until=0.0) == (1, None)
    assert set(stream.heap.objects) == {1}


# --- memory that is used again ----------------------------------------------------------------------------------------


def test_dropped_memory_is_used_for_the_next_result(stream: OpStream) -> None:
    run(stream, arange(1), Op("cupy.add", 2, (Ref(1), 1)))
    place = stream.heap.objects[2].ctypes.data
    (answer,) = run(stream, Op("cupy.add", 3, (Ref(1), 5), None, reuse=2), contents(3), first=3)
    assert array(answer).tolist() == [5, 6, 7, 8]
    assert stream.heap.objects[3].ctypes.data == place
    assert 2 not in stream.heap.objects


@pytest.mark.parametrize("kept", [Ref(1), wire.View(1, 0, (4,), (8,), "<i8", "")])
def test_memory_that_somebody_still_sees_is_not_used_again(stream: OpStream, kept: wire.Value) -> None:
    run(stream, arange(1), Op(".same", 2, (kept,)))  # a second handle, or a view with a handle of its own
    (answer,) = run(stream, Op("cupy.add", 3, (7, 7), None, reuse=1), contents(2), first=3)
    assert array(answer).tolist() == [0, 1, 2, 3]


def test_what_was_to_be_used_again_is_dropped_if_the_op_fails_first(stream: OpStream) -> None:
    run(stream, arange(1), Op("cupy.add", 2, (Ref(99), 1), None, reuse=1))
    assert not stream.heap.objects


# --- what may not be asked --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "op",
    [
        Op("os.system", 1, ("true",)),
        Op("cupy.os.system", 1, ("true",)),
        Op("builtins.eval", 1, ("1",)),
        Op("cupy.__builtins__", 1, ()),
        Op("cupy.load", 1, ("/etc/passwd",)),
        Op("cupy.add.__globals__", 1, ()),
        Op(".getattr", 1, (Ref(1), "__class__")),
        Op(".getattr", 1, (Ref(1), "_private")),
        Op(".method", 1, (wire.Name("cupy.add"), "reduce")),
        Op(".call", 1, (wire.Name("os.system"), "true")),
        Op(".setattr", 0, (wire.Name("cupy.ndarray"), "shape", 3)),
        Op(".unknown", 1, ()),
        Op("", 1, ()),
        Op("cupy.add", 1, (wire.ArrayInfo(1, (1,), (1,), "|u1"),)),
        Op("cupy.add", 1, (wire.Buffer(5, "|u1", (1,)), 1)),
        Op("cupy.add", 1, (wire.View(1, 1 << 40, (4,), (8,), "<i8", ""), 1)),
        Op("cupy.add", 1, (wire.DType("O"), 1)),
    ],
)
def test_only_public_names_and_true_values_are_taken(stream: OpStream, op: Op) -> None:
    run(stream, arange(1))
    before = dict(stream.heap.objects)
    (answer,) = run(stream, op, first=2)
    assert answer.error is not None
    assert answer.error.message
    assert dict(stream.heap.objects) == before


@pytest.mark.parametrize("order", ["x", "1,", "0,0", "2,1,0", "é", "9" * 5000])
def test_an_order_that_nobody_knows_is_an_answer(stream: OpStream, order: str) -> None:
    """Also where something else has hold of the array, so that it is read again once it is laid out."""
    grid = Op("cupy.array", 1, (wire.Buffer(-1, "<f8", (3, 2), bytes(48)),))
    known = wire.View(1, 0, (3, 2), (16, 8), "<f8", "C")
    forged = wire.View(1, 0, (3, 2), (16, 8), "<f8", order)
    alone, second = run(stream, grid, Op("cupy.negative", 2, (forged,)), Op("cupy.add", 3, (known, forged)))
    for answer in (alone, second):
        assert answer.error is not None
        assert "An array cannot be laid out so" in answer.error.message


def test_views_that_believe_in_two_orders_do_not_take_turns_for_ever(stream: OpStream) -> None:
    grid = Op("cupy.array", 1, (wire.Buffer(-1, "<f8", (3, 2), bytes(48)),))
    rows, columns = wire.View(1, 0, (3, 2), (16, 8), "<f8", "C"), wire.View(1, 0, (3, 2), (8, 24), "<f8", "F")
    (answer,) = run(stream, grid, Op("cupy.add", 2, (rows, columns)))
    assert answer.error is not None
    assert "memory order" in answer.error.message


def test_an_error_that_cannot_be_told_is_told_all_the_same(stream: OpStream, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

        __repr__ = __str__

    def fail() -> None:
        raise Mute(Mute())

    monkeypatch.setitem(stream._functions, "cupy.fail", fail)
    (answer,) = run(stream, Op("cupy.fail", 0, ()))
    assert answer.error is not None
    assert answer.error.message == "An error that cannot be told: RuntimeError."


def test_errors_of_any_kind_can_be_sent(stream: OpStream, monkeypatch: pytest.MonkeyPatch) -> None:
    awkward = [
        OverflowError(1 << 80),
        ValueError("\ud800"),
        KeyError(np.float64(1.5), np.str_("x")),
        Exception(object()),
    ]

    def fail(place: int) -> None:
        raise awkward[place]

    monkeypatch.setitem(stream._functions, "cupy.fail", fail)
    for place in range(len(awkward)):
        (answer,) = run(stream, Op("cupy.fail", 0, (place,)))
        assert answer.error is not None
        assert encode(Failed(1, answer.error))


def test_an_answer_tells_of_warnings(stream: OpStream) -> None:
    made = Op("cupy.full", 1, (wire.Tuple((3,)), wire.Complex(1, 2)))
    cast = Op(".method", 2, (Ref(1), "astype", wire.DType("<f8")), None, Want.DESCRIPTION)
    quiet = Op(".method", 3, (Ref(1), "astype", wire.DType("<c8")), None, Want.DESCRIPTION)
    loud, silent = run(stream, made, cast, quiet)
    assert loud.warnings is not None
    assert [record.kind for record in loud.warnings] == ["numpy.exceptions.ComplexWarning"]
    assert silent.warnings is None


def test_the_memory_of_a_message_is_let_go_when_its_ops_have_run(stream: OpStream) -> None:
    data = np.arange(4.0)
    seen = weakref.ref(data)
    ops = (arange(1), Op(".write", 0, (Ref(1), 0, wire.Buffer(0, "<i8", (4,)))))
    batch = QueuedBatch(1, ops, 0, (data.data,))
    del data
    batch.next, _ = stream.run(batch, perf_counter() + 60)
    del batch
    stream.let_go()
    assert seen() is None


def test_objects_are_given_arrays_of_their_own(device: Device) -> None:
    """CuPy may copy what it is given to the device when the call has returned, and the memory is others' by then."""
    given: list[object] = []

    class Objects:
        def is_array(self, value: object) -> bool:
            return value is ours

        def method(self, target: object, name: str) -> Any:
            return lambda *args, **kwargs: given.extend((*args, *kwargs.values()))

    verbs = Verbs(device, lambda name: None, Objects())  # type: ignore[arg-type]
    array, other, ours = np.arange(3), np.arange(2), np.arange(4)
    verbs.table[".method"](object(), "copy_from", array, 5, ours, in_arr=other)
    first, number, third, second = given
    assert (number, third is ours) == (5, True)
    assert not np.shares_memory(first, array)  # type: ignore[arg-type]
    assert not np.shares_memory(second, other)  # type: ignore[arg-type]
    assert (list(first), list(second)) == ([0, 1, 2], [0, 1])  # type: ignore[call-overload]
