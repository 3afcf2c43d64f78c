"""Ops that were captured are launched again without CuPy, and nobody can tell: by no bits, errors or memory."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu_backend.devices.replays import Unrepeatable
from gpu_backend.executor.config import PASSES
from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.program import direct
from gpu_backend.executor.program.replay import Replayer
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import List, Ref, Scalar, Tuple, Value, View
from tests.unit.executor.program.numpy_replays import ReplayingCpu
from tests.unit.executor.program.played import PlayedNotebook, added, window
from tests.unit.executor.program.test_passes import BEGIN, programs


@pytest.fixture(autouse=True)
def wanted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Capture what comes for the second time."""
    monkeypatch.setattr(direct, "_WANTED", 2)


def notebook(passes: tuple[str, ...] = PASSES) -> PlayedNotebook:
    """Return a notebook with some arrays."""
    on = PlayedNotebook(passes, ReplayingCpu())
    on.run(*BEGIN)
    return on


def replayer(on: PlayedNotebook) -> Replayer:
    assert on.stream._direct is not None
    assert on.stream._direct.replayer is not None
    return on.stream._direct.replayer


def summed(into: int, value: Value, **kwargs: Value) -> Op:
    return Op("cupy.ndarray.sum", into, (value,), kwargs=dict(kwargs) or None)


#: A store into what lies otherwise than it believes, and cannot be laid out, for something may remember it.
IMPOSSIBLE_STORE = (
    Op("cupy.poly1d", 1000, (View(3, 0, (6,), (8,), "<f8", ""),)),
    Op("cupy.flip", 5, (Ref(3),)),
    Op("cupy.add", 7, (Ref(3), 1.5), reuse=3),
    Op(".store", 0, (View(5, 0, (6,), (8,), "<f8", ""), Ref(7))),
    Op(".nothing", 0, (), (7,)),
)


@settings(deadline=None, max_examples=80)
@example(IMPOSSIBLE_STORE, [], 1)
@given(programs(), st.lists(st.integers(1, 4), max_size=12), st.sampled_from([1, 2, 100]))
def test_programs_give_the_same_bits(ops: tuple[Op, ...], bundles: list[int], most: int) -> None:
    def outcome(passes: tuple[str, ...]) -> list[object]:
        on = notebook(passes)
        found: list[object] = []
        for _ in range(3):
            answers = on.run(*ops, bundles=bundles, most=most)
            found.append([(one.error.kind, one.error.caused_by) for one in answers if one.error is not None])
            handles = tuple(Ref(handle) for handle in on.stream.heap.places.known)
            on.run(Op(".nothing", 0, handles))  # so that all is made
            found.append(on.holds())
            on.run(Op(".nothing", 0, (), tuple({op.out for op in ops} - {0})))
        return found

    assert outcome(PASSES) == outcome(())


def test_an_op_is_captured_when_it_has_come_often_and_then_makes_no_array() -> None:
    on = notebook()
    on.run(*(summed(20 + one, window(1, one % 3)) for one in range(5)))
    assert replayer(on).replayed == 4
    assert on.device.captures.captured == 1  # type: ignore[attr-defined]
    assert not {21, 22, 23, 24} & set(on.stream.heap.objects)
    assert [float(on.contents(Ref(20 + one))) for one in range(5)] == [21.0, 27.0, 33.0, 21.0, 27.0]
    on.run(Op(".nothing", 0, (Ref(24),)))
    assert 24 in on.stream.heap.ownership.alone


def test_arguments_that_are_equal_and_not_the_same_are_other_ways() -> None:
    on = notebook()
    for _ in range(3):
        for number, given_dtype in enumerate(("<f4", "<f8")):
            on.run(Op("cupy.ndarray.astype", 30 + number, (Ref(3), given_dtype), (30 + number,)))
        for number, value in enumerate((1, True, 1.0)):
            on.run(Op("cupy.full", 40 + number, (2, value), (40 + number,)))
    kinds = [on.contents(Ref(40 + number)).dtype.kind for number in range(3)]
    assert kinds == ["i", "b", "f"]
    assert [on.contents(Ref(30 + number)).dtype.itemsize for number in range(2)] == [4, 8]


def test_numbers_are_handed_over_each_time() -> None:
    on = notebook()
    values: list[Value] = [0.5, 1.5, -2.0, float("nan"), 3.25]
    on.run(*(added(20 + one, Ref(3), value) for one, value in enumerate(values)))
    assert replayer(on).replayed == 4
    for one, value in enumerate(values):
        np.testing.assert_array_equal(on.contents(Ref(20 + one)), np.arange(3.0, 9.0) + value)


def test_a_number_that_does_not_fit_goes_cupys_way() -> None:
    on = notebook()
    value = (1 << 53) + 1
    on.run(*(added(20 + one, Ref(3), value) for one in range(4)))
    assert replayer(on).replayed == 0
    assert on.contents(Ref(23))[0] == 3.0 + value


def test_scalars_count_by_their_dtype() -> None:
    on = notebook()
    single, double = (Scalar(code, np.dtype(code).type(1.5).tobytes()) for code in ("<f4", "<f8"))
    on.run(*(added(20 + one, Ref(3), (single, double)[one % 2]) for one in range(6)))
    assert replayer(on).replayed == 4
    assert all(on.contents(Ref(20 + one)).tolist() == on.contents(Ref(20)).tolist() for one in range(6))


def test_lists_of_arrays_are_operands() -> None:
    on = notebook()
    joined = [Op("cupy.concatenate", 20 + one, (List((Ref(3), window(1, one), Ref(4))),)) for one in range(3)]
    on.run(*joined)
    assert replayer(on).replayed == 2
    assert on.contents(Ref(22)).tolist() == [*range(3, 9), *range(3, 9), *range(4, 10)]


def test_a_list_of_indices_is_another_index_than_a_tuple_of_them() -> None:
    on = notebook()
    on.run(Op("cupy.arange", 20, (9,)), Op("cupy.ndarray.reshape", 21, (Ref(20), 3, 3)), Op("cupy.arange", 22, (3,)))
    shapes = []
    for _ in range(4):
        for number, kind in enumerate((Tuple, List)):
            on.run(Op("cupy.ndarray.__getitem__", 30 + number, (Ref(21), kind((Ref(22), Ref(22)))), (30 + number,)))
        shapes.append([on.contents(Ref(30 + number)).shape for number in range(2)])
    assert shapes == [[(3,), (2, 3, 3)]] * 4
    assert replayer(on).replayed == 6


@pytest.mark.parametrize("into", [window(1, 0), window(1, 2)])
def test_what_writes_where_it_reads_elsewhere_goes_cupys_way(into: Value) -> None:
    on = notebook()
    for _ in range(4):
        on.run(Op("cupy.add", 0, (window(1, 1), 1.0, into)))
    assert replayer(on).replayed == 0
    on.run(*(Op("cupy.add", 0, (into, 1.0, into)) for _ in range(3)))
    assert replayer(on).replayed == 2


@pytest.mark.parametrize(("offset", "replayed"), [(24, 0), (80, 3)])
def test_an_output_that_lies_across_any_operand_goes_cupys_way(offset: int, replayed: int) -> None:
    on = notebook()
    on.run(Op("cupy.arange", 20, (16,)), Op("cupy.arange", 21, (0.0, 16.0)))
    indices, into = View(20, 16, (6,), (8,), "<i8", ""), View(20, offset, (6,), (8,), "<f8", "")
    for _ in range(4):
        on.run(Op("cupy.take", 0, (Ref(21), indices, None, into)))
    assert replayer(on).replayed == replayed


def test_what_an_op_allocates_besides_its_result_is_used_again() -> None:
    on = notebook()
    before = on.device.memory_by_address.left  # type: ignore[attr-defined]
    on.run(*(summed(20 + one, Ref(3)) for one in range(10)))
    assert before - on.device.memory_by_address.left == 1 + 9  # type: ignore[attr-defined]


def test_no_block_means_cupys_way() -> None:
    on = notebook()
    on.run(summed(20, Ref(3)), summed(21, Ref(3)))
    on.device.memory_by_address.left = 0  # type: ignore[attr-defined]
    on.run(*(summed(22 + one, Ref(3)) for one in range(3)))
    assert [float(on.contents(Ref(22 + one))) for one in range(3)] == [33.0] * 3


def test_a_reason_is_counted_and_not_asked_for_again() -> None:
    on = notebook()
    on.run(*(Op("cupy.ravel", 20 + one, (Ref(3),)) for one in range(6)))
    assert replayer(on).replayed == 0
    assert dict(replayer(on).refused) == {"the result is not new memory": 1}


SETTER = "cupy._core.set_reduction_accelerators"


@pytest.mark.parametrize(
    "setting",
    [
        Op(SETTER, 0, (List(()),)),
        Op(SETTER, 0, (List(()),), None, Want.DESCRIPTION),
        Op(".begin", 0, (SETTER, List(())), None, Want.DESCRIPTION),
    ],
    ids=["unanswered", "answered", "begun"],
)
def test_choosing_how_cupy_computes_forgets_what_was_captured(setting: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    on = notebook()
    given: list[Any] = []
    resolve = on.device.resolve
    monkeypatch.setattr(on.device, "resolve", lambda name: given.append if name == SETTER else resolve(name))
    on.run(*(summed(20 + one, Ref(3)) for one in range(3)))
    assert replayer(on).replayed == 2
    on.run(setting)
    assert given == [[]]
    on.run(summed(30, Ref(3)))
    assert replayer(on).replayed == 2
    on.run(summed(31, Ref(3)))
    assert replayer(on).replayed == 3
    assert on.device.captures.captured == 2  # type: ignore[attr-defined]


def test_a_handle_that_holds_something_is_not_overwritten_by_a_place() -> None:
    on = notebook()
    on.run(summed(20, Ref(3)), summed(20, Ref(4)), summed(20, window(1, 0)))
    assert float(on.contents(Ref(20))) == 21.0


def split(into: int, value: Value) -> Op:
    return Op("cupy.modf", into, (value,))


def test_each_of_several_results_has_a_handle_of_its_own() -> None:
    on = notebook()
    on.run(*(split(20 + 2 * one, window(1, one % 3)) for one in range(5)))
    assert replayer(on).replayed == 4, replayer(on).refused
    assert not set(range(22, 30)) & set(on.stream.heap.objects)
    for one in range(5):
        fraction, whole = np.modf(on.contents(window(1, one % 3)))
        assert on.contents(Ref(20 + 2 * one)).tolist() == fraction.tolist()
        assert on.contents(Ref(21 + 2 * one)).tolist() == whole.tolist()


def test_no_handle_of_several_that_holds_something_is_overwritten_by_a_place() -> None:
    on = notebook()
    on.run(split(20, Ref(3)), split(22, Ref(3)), summed(25, Ref(3)), split(24, Ref(3)))
    assert replayer(on).replayed == 1, replayer(on).refused
    assert on.contents(Ref(25)).tolist() == on.contents(Ref(21)).tolist()


def test_random_numbers_are_never_captured() -> None:
    on = notebook()
    drawn = [Op("cupy.random.rand", 20 + one, (3,)) for one in range(5)]
    on.run(*drawn)
    assert replayer(on).replayed == 0
    assert len({on.contents(Ref(20 + one)).tobytes() for one in range(5)}) == 5


def test_it_can_be_switched_off() -> None:
    on = notebook(("store", "reuse", "segments"))
    assert on.stream._direct is None


def test_an_answer_comes_behind_what_was_replayed() -> None:
    on = notebook()
    on.run(*(summed(20 + one, Ref(3)) for one in range(3)))
    (answer,) = on.run(summed(30, Ref(4)), Op(".same", 0, (Ref(30),), None, Want.CONTENTS))
    assert answer.error is None
    assert replayer(on).replayed == 3


@pytest.mark.parametrize("value", [Ref(30), window(1, 2), window(1, 7, 1)])
def test_a_small_array_is_read_without_being_made(value: Value) -> None:
    on = notebook()
    on.run(*(added(20 + one, Ref(3), 1.0) for one in range(3)))
    on.run(added(30, Ref(3), 2.0))
    before = dict(on.stream.heap.objects)
    assert on.contents(value).tolist() in ([5.0, 6.0, 7.0, 8.0, 9.0, 10.0], [3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [8.0])
    assert on.stream.heap.objects == before
    assert not on.stream.heap.views


def test_an_array_that_is_not_there_is_told_as_ever() -> None:
    on = notebook()
    (answer,) = on.run(Op(".same", 0, (Ref(99),), None, Want.CONTENTS))
    assert answer.error is not None
    assert answer.error == PlayedNotebook(()).run(Op(".same", 0, (Ref(99),), None, Want.CONTENTS))[0].error


def test_a_read_that_nobody_asked_for_is_not_counted() -> None:
    on = notebook()
    read = Op(".same", 0, (View(3, 0, (3,), (16,), "<f8", ""),), None, Want.CONTENTS)  # takes CuPy: it has gaps
    counted = [on.stream.ways()]
    for run in (on.stream.rehearse, lambda batch: on.stream.run(batch, float("inf"))):
        _, answer = run(QueuedBatch(1, (read,), 0, ()))
        assert answer is not None
        assert answer.error is None
        counted.append(on.stream.ways())
    assert counted[0] == counted[1] != counted[2]


def test_an_elementwise_op_whose_result_nobody_wants_goes_cupys_way() -> None:
    on = notebook()
    assert on.run(*(Op("cupy.add", 0, (Ref(3), Ref(4))) for _ in range(4))) == []
    assert replayer(on).replayed == 0


def test_what_came_twice_is_captured_while_nobody_waits_and_keeps_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "_WANTED", 16)
    on = notebook()
    on.run(summed(20, Ref(3)))
    assert not on.stream.has_lesson
    on.run(summed(21, Ref(3)))
    assert on.stream.has_lesson
    array = weakref.ref(on.stream.heap.objects[3])
    on.run(Op(".nothing", 0, (), (3,)))
    gc.collect()
    assert array() is None
    on.stream.learn()
    assert not on.stream.has_lesson
    on.run(*BEGIN, summed(22, Ref(3)))
    assert replayer(on).replayed == 1
    assert float(on.contents(Ref(22))) == float(on.contents(Ref(21)))


def test_what_was_captured_meanwhile_is_not_captured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "_WANTED", 3)
    on = notebook()
    on.run(*(summed(20 + one, Ref(3)) for one in range(4)))
    on.stream.learn()
    assert on.device.captures.captured == 1  # type: ignore[attr-defined]


def test_a_capture_that_goes_wrong_is_nobodys_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "_WANTED", 16)
    on = notebook()
    on.run(summed(20, Ref(3)), summed(21, Ref(3)))

    def broken(*args: object) -> None:
        raise RuntimeError("the device is lost")

    monkeypatch.setattr(replayer(on).captures, "capture", broken)
    on.stream.learn()
    monkeypatch.undo()
    on.run(summed(22, Ref(3)))
    assert replayer(on).replayed == 0
    assert float(on.contents(Ref(22))) == 33.0


def test_a_name_of_which_nothing_can_be_captured_is_not_looked_for_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    on = notebook()
    on.run(*(summed(40 + one, Ref(3)) for one in range(2)))

    def refused(*args: object) -> None:
        raise Unrepeatable("it waits")

    monkeypatch.setattr(replayer(on).captures, "capture", refused)
    for name in ("cupy.sort", "cupy.ndarray.sum"):
        on.run(*(Op(name, 20 + one, (View(3, 0, (one // 2 + 1,), (8,), "<f8", ""),), (20 + one,)) for one in range(10)))
    assert on.stream._direct is not None
    assert on.stream._direct._takes == on.stream._direct._takes | {"cupy.sort": None, "cupy.ndarray.sum": 0}
