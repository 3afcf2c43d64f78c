"""Small ops are gathered and given to the device together, and nobody can tell: by no bits, errors or memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.executor.config import PASSES
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Complex, DType, Ellipsis, Ref, Scalar, Value, View
from tests.unit.executor.program.numpy_segments import SegmentedCpu
from tests.unit.executor.program.played import PlayedNotebook, added, window
from tests.unit.executor.program.test_passes import BEGIN, programs


def notebook(passes: tuple[str, ...] = PASSES, most_ops: int = 8) -> tuple[PlayedNotebook, list[int]]:
    """Return a notebook with some arrays, and where the sizes of segments will be noted."""
    device = SegmentedCpu(most_ops)
    on = PlayedNotebook(passes, device)
    on.run(*BEGIN)
    return on, device.runs.launched


@pytest.mark.parametrize("most_ops", [1, 3, 100])
@settings(deadline=None, max_examples=60)
@given(programs(), st.lists(st.integers(1, 4), max_size=12), st.sampled_from([1, 2, 100]))
def test_programs_give_the_same_bits(most_ops: int, ops: tuple[Op, ...], bundles: list[int], most: int) -> None:
    def outcome(passes: tuple[str, ...]) -> object:
        on, _ = notebook(passes, most_ops)
        answers = on.run(*ops, bundles=bundles, most=most)
        errors = [(one.error.kind, one.error.message, one.error.caused_by) for one in answers if one.error is not None]
        direct = on.stream._direct
        handles = list(on.stream.heap.places.known) if direct is not None else []
        on.run(Op(".nothing", 0, tuple(Ref(handle) for handle in handles)))  # so that all is made
        return errors, on.holds()

    assert outcome(PASSES) == outcome(())


def test_ops_of_a_message_are_launched_together_and_without_arrays() -> None:
    on, launched = notebook()
    on.run(added(20, Ref(3), 1.5), added(21, Ref(20), Ref(4)), added(22, Ref(21), Ref(21), drop=(20,)))
    assert launched == [3]
    assert not {20, 21, 22} & set(on.stream.heap.objects)
    assert set(on.stream.heap.places.known) == {3, 4, 21, 22}
    assert on.contents(Ref(22)).tolist() == [17.0 + 4 * one for one in range(6)]
    on.run(Op(".nothing", 0, (Ref(22),)))
    assert 22 in on.stream.heap.objects
    assert 22 in on.stream.heap.ownership.alone


def test_a_table_that_is_full_is_launched() -> None:
    on, launched = notebook(most_ops=2)
    on.run(*(added(20 + one, Ref(3), float(one)) for one in range(5)))
    assert launched == [2, 2, 1]
    assert on.contents(Ref(24))[0] == 7.0


def test_a_routine_that_a_new_program_lacks_is_not_used_any_more() -> None:
    on, launched = notebook(most_ops=2)
    device = on.device
    assert isinstance(device, SegmentedCpu)
    on.run(added(20, Ref(3), 1.0))
    device.runs.renew = device.runs.ready.clear  # type: ignore[method-assign]
    on.run(*(added(21 + one, Ref(3), float(one)) for one in range(4)))
    assert launched == [1, 2]
    assert [on.contents(Ref(21 + one))[0] for one in range(4)] == [3.0, 4.0, 5.0, 6.0]


def test_what_is_gathered_runs_before_anything_else() -> None:
    on, launched = notebook()
    on.run(added(20, Ref(3), 1.5), Op("cupy.cumsum", 21, (Ref(20),)), added(22, Ref(21), Ref(20)))
    assert launched == [1, 1]
    assert on.contents(Ref(22)).tolist() == [9.0, 15.5, 23.0, 31.5, 41.0, 51.5]


def test_it_can_be_switched_off() -> None:
    on, launched = notebook(("store", "reuse"))
    on.run(added(20, Ref(3), 1.5))
    assert not launched
    assert 20 in on.stream.heap.objects


def test_ops_take_the_old_way_until_the_routine_is_compiled() -> None:
    on, launched = notebook()
    device = on.device
    assert isinstance(device, SegmentedCpu)
    device.runs.is_compiled = False
    on.run(added(20, Ref(3), 1.5))
    assert not launched
    device.runs.is_compiled = True
    on.run(added(21, Ref(20), 1.5))
    assert launched == [1]
    assert on.contents(Ref(21))[0] == 6.0


def test_the_memory_of_a_dropped_result_is_used_again_and_no_longer_than_ops_are_gathered() -> None:
    on, _ = notebook()
    ops = [added(20, Ref(3), 1.0)]
    ops += [added(one, Ref(one - 1), 1.0, drop=(one - 2,) if one > 21 else None) for one in range(21, 50)]
    on.run(*ops)
    device = on.device
    assert isinstance(device, SegmentedCpu)
    assert (1 << 30) - device.memory_by_address.left <= 3
    assert on.contents(Ref(49)).tolist() == [33.0, 34.0, 35.0, 36.0, 37.0, 38.0]
    on.run(Op(".memory", 0, ()))
    assert not on.stream.heap.places.spare


@pytest.mark.parametrize(
    "transform",
    [
        Op("cupy.fft.fft", 40, (Ref(3),), (20,)),
        Op("cupy.fft.rfft", 40, (Ref(21),), (20,)),
        Op("cupy.fft.irfft", 40, (Ref(21), 6), (20,)),
        Op("cupy.fft.fftshift", 40, (Ref(21),), (20,)),
    ],
    ids=str,
)
def test_a_transform_leaves_the_memory_that_is_spare(transform: Op) -> None:
    told = []
    for passes in (PASSES, ()):
        on, launched = notebook(passes)
        on.run(added(20, Ref(3), 1.0), added(21, Ref(20), 1.0), transform)
        left = on.stream.heap.places.spare_bytes
        on.run(added(22, Ref(40), Ref(40)), added(23, Ref(21), Ref(3)))
        told.append((on.contents(Ref(22)).tobytes(), on.contents(Ref(23)).tobytes()))
        assert bool(left) == bool(launched)
        assert 40 in on.stream.heap.ownership.alone, "nobody remembers what it was given"
    assert told[0] == told[1]


def test_memory_of_sizes_that_do_not_come_again_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_backend.executor.program.segment.MOST_SPARE_BYTES", 4096)
    on, launched = notebook(most_ops=1000)
    wide = Op("cupy.arange", 60, (0.0, 4000.0))
    parts = [View(60, 0, (4000 - 64 * one,), (8,), "<f8", "") for one in range(50)]
    ops = [added(100 + one, part, 1.0, drop=(99 + one,) if one else None) for one, part in enumerate(parts)]
    on.run(wide, *ops)
    assert len(launched) > 20
    assert on.stream.heap.places.spare_bytes <= 4096 + 32_000
    assert on.contents(Ref(149))[-1] == 864.0


def test_an_array_that_is_dropped_stays_until_those_that_read_it_have_run() -> None:
    on, _ = notebook()
    on.send(Op("cupy.arange", 20, (0.0, 6.0)))
    on.work()
    places = on.stream.heap.places
    on.send(added(21, Ref(20), 1.0), Op(".nothing", 0, (), (20,)))
    batch = on.talk.front()
    assert batch is not None
    direct = on.stream._direct
    assert direct is not None
    assert direct.take(batch.ops[0])
    on.stream.heap.drop(20)
    assert [place.array.tolist() for place in places.kept] == [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]
    direct.launch()
    assert not places.kept


@pytest.mark.parametrize("reads", [window(1, 0), window(1, 2), View(1, 8 * 6, (6,), (-8,), "<f8", "")])
def test_what_reads_where_it_writes_in_another_order_takes_the_old_way(reads: View) -> None:
    on, launched = notebook()
    before = on.contents(Ref(1))
    on.run(Op("cupy.add", 0, (reads, 1.0, window(1, 1))))
    assert not launched
    start, step = reads.offset // 8, reads.strides[0] // 8
    expected = before.copy()
    expected[1:7] = [before[start + step * one] + 1.0 for one in range(6)]
    assert on.contents(Ref(1)).tolist() == expected.tolist()


def test_what_reads_just_what_it_writes_is_gathered() -> None:
    on, launched = notebook()
    before = on.contents(Ref(1))
    on.run(Op("cupy.add", 0, (window(1, 1), Ref(3), window(1, 1))), Op(".store", 0, (window(2, 1), Ref(3))))
    assert launched == [2]
    assert (on.contents(Ref(1))[1:7] == before[1:7] + on.contents(Ref(3))).all()
    assert (on.contents(Ref(2))[1:7] == on.contents(Ref(3))).all()


def test_a_window_of_a_result_that_is_not_made_lies_in_it() -> None:
    on, launched = notebook()
    on.run(
        added(20, Ref(3), 1.0), Op("cupy.add", 0, (window(20, 1, 5), 10.0, window(20, 1, 5))), added(21, Ref(20), 0.0)
    )
    assert launched == [3]
    assert on.contents(Ref(21)).tolist() == [4.0, 15.0, 16.0, 17.0, 18.0, 19.0]


@pytest.mark.parametrize("view", [window(20, 1), window(20, -1), View(20, 4, (2,), (8,), "<f8", "")], ids=str)
def test_a_window_that_reaches_beyond_a_result_is_refused_as_any(view: View) -> None:
    told = []
    for passes in (PASSES, ()):
        on, _ = notebook(passes)
        told += [one.error for one in on.run(added(20, Ref(3), 1.0), added(21, view, 1.0)) if one.error is not None]
    if view.offset % 8:
        assert not told  # it fits, and a GPU would not read it so; nor is it gathered
    else:
        assert len(told) == 2
        assert told[0].message == told[1].message
        assert "reaches beyond" in told[0].message


def test_without_memory_the_old_way_is_tried_with_all_spare_memory_free() -> None:
    on, launched = notebook()
    device = on.device
    assert isinstance(device, SegmentedCpu)
    device.memory_by_address.left = 1
    on.run(added(20, Ref(3), 1.0), added(21, Ref(20), 1.0), added(22, Ref(21), 1.0))
    assert launched[0] == 1
    assert on.contents(Ref(22)).tolist() == [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]


def test_a_failure_comes_at_its_own_op_and_what_was_gathered_stays() -> None:
    on, _ = notebook()
    answers = on.run(added(20, Ref(3), 1.0), added(21, Ref(20), Ref(999)), added(22, Ref(20), 1.0))
    (failed,) = [one for one in answers if one.error is not None]
    assert failed.error is not None
    assert on.contents(Ref(22)).tolist() == [5.0, 6.0, 7.0, 8.0, 9.0, 10.0]


def test_a_result_that_stands_where_another_stood_takes_its_place() -> None:
    on, _ = notebook()
    on.run(added(20, Ref(3), 1.0), Op("cupy.arange", 20, (0.0, 3.0)), Op("cupy.negative", 21, (Ref(20),)))
    assert on.contents(Ref(21)).tolist() == [0.0, -1.0, -2.0]


def test_an_answer_shows_what_was_gathered() -> None:
    on, _ = notebook()
    (answer,) = on.run(added(20, Ref(3), 1.0), Op("cupy.ndarray.max", 21, (Ref(20),), None, Want.CONTENTS))
    assert answer.error is None


def test_cancelled_ops_leave_what_came_before_them() -> None:
    on, _ = notebook()
    on.run(added(20, Ref(3), 1.0))
    on.send(Op(".nothing", 0, (Ref(20),)), added(21, Ref(20), 1.0))
    batch = on.talk.front()
    assert batch is not None
    on.talk.advance(batch, on.stream.cancel(batch)[0])
    on.work()
    assert on.contents(Ref(21))[0] == 5.0


NUMBERS: list[tuple[str, Value]] = [
    ("<f8", -0.0), ("<f8", 1 << 60), ("<f8", True), ("<f4", 0.1), ("<f4", 1e300), ("<f4", (1 << 24) + 1), ("<f2", 0.1),
    ("<f2", 70000.0), ("<i8", -(1 << 63)), ("<i8", (1 << 63) - 1), ("|i1", 100), ("<c16", Complex(0.5, -0.0)),
    ("<c8", 2), ("<f8", Scalar("<f8", np.float64(0.1).tobytes())), ("<f8", Scalar("<f4", np.float32(0.1).tobytes())),
    ("|b1", True), ("<f8", float("nan")), ("<f8", float("-inf")), ("<i4", 1 << 40), ("<f4", -1e-320),
    ("<c8", Complex(-0.0, 0.0)), ("<c16", -0.0), ("<f8", Scalar("<f8", np.float64(-0.0).tobytes())), ("<f8", 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "number"), NUMBERS, ids=str)
@pytest.mark.parametrize("name", ["cupy.multiply", ".store", ".store_where"])
def test_numbers_are_what_they_are_without_segments(name: str, dtype: str, number: Value) -> None:
    found = []
    for passes in (PASSES, ()):
        on, _ = notebook(passes)
        on.stream.heap.put(50, np.arange(1, 5).astype(dtype))
        on.stream.heap.put(52, np.arange(4) % 2 == 0)
        mask = (Ref(52),) if name == ".store_where" else ()
        op = Op(name, 0 if name.startswith(".store") else 51, (Ref(50), *mask, number))
        errors = [one.error.kind for one in on.run(op) if one.error is not None]
        made = None if errors else on.contents(Ref(op.out or 50))
        found.append((errors, None if made is None else (made.dtype, made.tobytes())))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("name", "args", "gathered"),
    [
        ("cupy.multiply", (Ref(50), 0.25), []),
        ("cupy.multiply", (Complex(0.5, -2.0), Ref(50)), []),
        ("cupy.multiply", (Ref(50), Scalar("<c16", np.complex128(1j).tobytes())), []),
        ("cupy.multiply", (Ref(50), Ref(50)), [1]),
        ("cupy.equal", (Ref(50), 0.25), [1]),
        ("cupy.where", (Ref(51), Ref(50), 0.25), [1]),
        ("cupy.multiply", (Ref(3), 0.25), [1]),
        ("cupy.multiply", (Ref(3), np.nan), []),
        ("cupy.add", (Scalar("<f8", np.float64(np.nan).tobytes()), Ref(3)), []),
        ("cupy.multiply", (Ref(3), np.inf), [1]),
        ("cupy.equal", (Ref(3), np.nan), [1]),
        ("cupy.where", (Ref(51), Ref(50), np.nan), [1]),
    ],
)
def test_arithmetic_that_mixes_nans_with_a_number_is_not_gathered(
    name: str, args: tuple[Value, ...], gathered: list[int]
) -> None:
    """Which of two NaNs lasts depends on where CuPy's kernel has the number."""
    on, launched = notebook()
    on.stream.heap.put(50, np.arange(1, 5).astype("c16"))
    on.stream.heap.put(51, np.arange(1, 5) > 2)
    assert not on.run(Op(name, 52, args))
    assert launched == gathered


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("cupy.outer", (Ref(3), Ref(4))), ("cupy.outer", (View(3, 40, (3,), (-16,), "<f8", ""), Ref(4))),
        ("cupy.ndarray.astype", (Ref(3), DType("<f4"))), ("cupy.ndarray.astype", (Ref(3), DType("<f8"))),
        ("cupy.ndarray.astype", (Ref(3), DType("<i8"))), ("cupy.ndarray.astype", (window(1, 2), DType("|b1"))),
        ("cupy.ndarray.copy", (Ref(3),)), ("cupy.copy", (window(1, 2),)),
    ],
)  # fmt: skip
def test_outer_products_casts_and_copies_are_gathered_too(name: str, args: tuple[Value, ...]) -> None:
    (on, launched), (plain, _) = notebook(), notebook(())
    for one in (on, plain):
        one.run(Op(name, 20, args))
    assert launched == [1]
    found, expected = on.contents(Ref(20)), plain.contents(Ref(20))
    assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())


def test_what_a_cast_makes_is_new_memory() -> None:
    on, _ = notebook()
    on.run(Op("cupy.ndarray.astype", 20, (Ref(3), DType("<f8"))))
    on.run(Op(".store", 0, (Ref(20), 7.0)))
    assert on.contents(Ref(3))[0] == 3.0


def test_a_table_or_keywords_of_a_cast_go_the_old_way() -> None:
    on, launched = notebook()
    on.run(Op("cupy.ndarray.astype", 20, (Ref(3), DType("<f4")), kwargs={"copy": True}))
    on.run(Op("cupy.outer", 21, (Ref(3),), kwargs={"b": Ref(4)}))
    assert not launched


def test_it_is_told_how_ops_were_carried_out_and_why() -> None:
    on, _ = notebook()
    on.run(added(20, Ref(3), 1.0), added(21, Ref(20), (1 << 53) + 1), Op("cupy.cumsum", 22, (Ref(3),)))
    on.run(Op("cupy.random.rand", 23, (3,)))
    ways = on.stream.ways()
    assert ("", "gathered with others", 1) in ways
    told = {name: why for name, why, _ in ways if name}
    assert told["cupy.add"] == "it is not compiled yet, or a number among its operands may be rounded"
    assert told["cupy.random.rand"] == "such ops always do"


@pytest.mark.parametrize("value", [2, 2.5, True, Scalar("<f8", np.float64(1.5).tobytes()), Ref(4)])
def test_a_window_that_is_set_as_a_whole_is_a_store(value: Value) -> None:
    (on, launched), (plain, _) = notebook(), notebook(())
    ops = [Op("cupy.ndarray.__setitem__", 0, (target, Ellipsis(), value)) for target in (window(1, 2), Ref(3))]
    for one in (on, plain):
        one.run(*ops)
    assert launched == [2]
    assert on.contents(Ref(3)).tobytes() == plain.contents(Ref(3)).tobytes()
    assert on.contents(Ref(1)).tobytes() == plain.contents(Ref(1)).tobytes()


def test_single_places_are_set_the_old_way() -> None:
    on, launched = notebook()
    on.run(Op("cupy.ndarray.__setitem__", 0, (Ref(3), 2, 7.5)))
    assert not launched
    assert on.contents(Ref(3))[2] == 7.5


@pytest.mark.parametrize(
    "value", [-0.0, Complex(-0.0, 0.0), Complex(0.0, -0.0), Scalar("<f8", np.float64(-0.0).tobytes())]
)
def test_a_zero_with_a_sign_is_put_there_as_cupy_does(value: Value) -> None:
    on, launched = notebook()
    target = Ref(3) if not isinstance(value, Complex) else Ref(70)
    on.run(Op("cupy.ndarray.astype", 70, (Ref(3), DType("<c16"))))
    launched.clear()
    on.run(Op("cupy.ndarray.__setitem__", 0, (target, Ellipsis(), value)))
    assert not launched
    on.run(Op("cupy.ndarray.__setitem__", 0, (target, Ellipsis(), 0.0)))
    assert launched
