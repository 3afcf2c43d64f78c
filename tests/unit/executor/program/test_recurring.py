"""Ops that come again are carried out in C, and nobody can tell: by no bits, errors or memory."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpu_backend.executor.config import PASSES
from gpu_backend.executor.heap import Kind
from gpu_backend.executor.program import direct
from gpu_backend.opstream.layout import contiguous
from gpu_backend.sources import VARIABLE, are_asked_for
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Complex, DType, List, Ref, Scalar, Slice, Tuple, Value, View
from tests.unit.executor.program.numpy_replays import GatheringCpu
from tests.unit.executor.program.played import PlayedNotebook, added, window
from tests.unit.executor.program.test_passes import BEGIN, programs
from tests.unit.executor.program.test_segments import NUMBERS

try:
    from gpu_backend.executor.program import _recurring
except ImportError:
    pytest.skip("nothing is compiled here", allow_module_level=True)
if are_asked_for():
    pytest.skip("nothing compiled is wanted here", allow_module_level=True)

#: So often a program comes: what recurs is learnt when it comes for the second time, or the third.
TURNS = 5
#: How an op goes: past Python, as Python has it, and CuPy's way.
WAYS = ["recurring", "python", "cupy"]


@pytest.fixture(autouse=True)
def wanted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Capture what comes for the second time."""
    monkeypatch.setattr(direct, "_WANTED", 2)


def notebook(way: str = "recurring", most_ops: int = 8) -> PlayedNotebook:
    """Return a notebook with some arrays, whose ops go so."""
    on = PlayedNotebook(() if way == "cupy" else PASSES, GatheringCpu(most_ops))
    if way == "python":
        assert on.stream._direct is not None
        on.stream._direct.recurring = None
    on.run(*BEGIN)
    return on


def recurring(on: PlayedNotebook) -> Any:
    assert on.stream._direct is not None
    return on.stream._direct.recurring


def state(on: PlayedNotebook) -> object:
    """Return what is there, and what memory is held for results to come."""
    handles = tuple(Ref(handle) for handle in on.stream.heap.places.known)
    on.run(Op(".nothing", 0, handles))  # so that all is made
    return on.holds()


@pytest.mark.parametrize("most_ops", [1, 5, 100])
@settings(deadline=None, max_examples=60)
@given(programs(), st.lists(st.integers(1, 4), max_size=12), st.sampled_from([1, 2, 100]))
def test_programs_give_the_same_bits(most_ops: int, ops: tuple[Op, ...], bundles: list[int], most: int) -> None:
    def outcome(way: str) -> list[object]:
        on, found = notebook(way, most_ops), []
        for _ in range(TURNS):
            answers = on.run(*ops, bundles=bundles, most=most)
            found.append([(one.error.kind, one.error.caused_by) for one in answers if one.error is not None])
            found.append(state(on))
            on.run(Op(".nothing", 0, (), tuple({op.out for op in ops} - {0})))
        return found

    assert outcome("recurring") == outcome("python") == outcome("cupy")


def test_a_loop_goes_past_python_once_it_has_come_a_few_times() -> None:
    on = notebook(most_ops=100)
    x, want, handle = window(1, 1), on.contents(window(1, 1)).copy(), 100
    for turn in range(20):
        number = 0.5 + turn
        on.run(
            added(handle, x, number, drop=(handle - 1,) if turn else None),
            Op("cupy.multiply", handle + 1, (Ref(handle), 2)),
            Op(".store", 0, (x, Ref(handle + 1)), (handle,)),
        )
        want, handle = (want + number) * 2, handle + 2
    assert on.contents(x).tolist() == want.tolist()
    assert recurring(on).done >= 3 * 16
    assert not {100, 139} & set(on.stream.heap.objects), "an array was made of what is a place"


def test_a_loop_of_ops_of_two_programs_recurs_in_the_one_that_has_all_of_it() -> None:
    on = notebook(most_ops=100)
    device = on.device
    assert isinstance(device, GatheringCpu)
    device.runs.programs, device.runs.whole = ("usual", "own"), "whole"
    x, want = window(1, 1), on.contents(window(1, 1)).copy()
    for turn in range(10):
        on.run(*(Op(name, 0, (x, 0.5 + turn, x)) for name in ("cupy.add", "cupy.multiply")))
        want = (want + (0.5 + turn)) * (0.5 + turn)
    assert on.contents(x).tolist() == want.tolist()
    assert recurring(on).done >= 2 * 6
    assert set(device.runs.launched_programs[1:]) == {"whole"}


def test_windows_of_one_geometry_are_one_way_and_each_is_looked_at() -> None:
    on = notebook(most_ops=100)
    on.run(*(added(20 + one, window(1, one % 3), 1.0) for one in range(6)))
    assert recurring(on).count == 1
    was = recurring(on).done
    ends = {start: on.run(added(40 + start, window(1, start), 1.0)) for start in (2, 3, -1, 1 << 40)}
    assert [bool(answers and answers[0].error) for answers in ends.values()] == [False, True, True, True]
    assert recurring(on).done == was + 1
    assert on.contents(Ref(42)).tolist() == [4.0 + one for one in range(6)]


def test_a_root_that_is_smaller_is_another_way() -> None:
    on = notebook(most_ops=100)
    for root in (1, 3, 2, 4):
        answers = [on.run(added(20 + one, window(root, 2), 1.0, drop=(20 + one,))) for one in range(TURNS)]
        assert [bool(one) for one in answers] == [root > 2] * TURNS


def test_what_lies_across_what_is_written_goes_back() -> None:
    on = notebook(most_ops=100)
    moved = [Op(".store", 0, (window(1, to), window(2, 0))) for to in (0, 1, 2)] * 3
    on.run(*moved)
    was = recurring(on).done
    assert was
    on.run(Op(".store", 0, (window(1, 0), window(1, 1))))
    assert recurring(on).done == was
    assert on.contents(window(1, 0))[:5].tolist() == [2.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("name", ["cupy.multiply", "cupy.add", ".store", "cupy.equal"])
@pytest.mark.parametrize(("dtype", "number"), NUMBERS, ids=str)
def test_numbers_are_what_they_are_in_python(name: str, dtype: str, number: Value) -> None:
    found = []
    for way in WAYS:
        on, errors = notebook(way), []
        on.stream.heap.put(50, np.arange(1, 5).astype(dtype))
        for turn in range(TURNS):
            out = 0 if name == ".store" else 60 + turn
            errors += [one.error.kind for one in on.run(Op(name, out, (Ref(50), number))) if one.error is not None]
        made = [] if errors else [on.contents(Ref(60 + turn if name != ".store" else 50)) for turn in range(TURNS)]
        found.append((errors, [(one.dtype, one.tobytes()) for one in made]))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    "numbers",
    [
        [0.5, 1.5, float("nan"), -0.0, 3.0], [1, 2, 1 << 53, (1 << 53) + 1, 3],
        [Complex(0.5, 1.0), Complex(-0.0, 0.0), Complex(float("nan"), 1.0)],
        [Scalar("<f8", np.float64(one).tobytes()) for one in (0.5, np.nan, -0.0, 2.0)],
        [Scalar("<f8", b"1234"), 1.5, True, Scalar("<f8", bytes(8))],
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", ["cupy.multiply", "cupy.where", ".store", ".store_where"])
def test_each_number_is_looked_at(name: str, numbers: list[Value]) -> None:
    found = []
    for way in WAYS:
        on, bits = notebook(way), []
        on.stream.heap.put(50, np.arange(1, 5) > 2)
        on.stream.heap.put(51, np.arange(1.0, 5.0))
        for turn, number in enumerate((numbers[:1] * 3 + numbers) * 2):
            args: tuple[Value, ...] = (Ref(51), number)
            if name.endswith("where"):
                args = (Ref(50), *args) if name == "cupy.where" else (Ref(51), Ref(50), number)
            out = 0 if name.startswith(".store") else 60 + turn
            answers = on.run(Op(name, out, args))
            bits.append([one.error.kind for one in answers if one.error] or on.contents(Ref(out or 51)).tobytes())
        found.append(bits)
    assert found[0] == found[1] == found[2]


def kinds(op: Op) -> list[Op]:
    """Return ops that are told apart from ``op`` by one thing each."""
    named: list[dict[str, Value]] = [{"axis": 0}, {"axis": 1}, {"keepdims": True}]
    more: list[tuple[Value, ...]] = [(0,), (None, DType("<f4")), (Tuple((0, 1)),)]
    corner = View(50, 8, (2, 2), (24, 8), "<f8", "C")
    found = [replace(op, kwargs=one) for one in named] + [replace(op, args=(*op.args, *one)) for one in more]
    return [*found, replace(op, args=(corner, 1)), op]


def test_other_arguments_are_other_ways() -> None:
    found = []
    for way in WAYS:
        on, results = notebook(way), []
        on.run(
            Op("cupy.arange", 49, (6.0,)),
            Op("cupy.reshape", 48, (Ref(49), Tuple((2, 3)))),
            Op("cupy.copy", 50, (Ref(48),)),
        )
        for turn in range(TURNS):
            ops = kinds(Op("cupy.sum", 0, (Ref(50),)))
            ops = [replace(one, out=100 * turn + 200 + at) for at, one in enumerate(ops)]
            assert not on.run(*ops)
            results.append([(one.shape, one.dtype, one.tobytes()) for one in (on.contents(Ref(op.out)) for op in ops)])
        assert way != "recurring" or recurring(on).launched
        found.append(results)
    assert found[0] == found[1] == found[2]
    assert all(one == found[0][0] for one in found[0])


def test_lists_of_arrays_and_slices_are_told_apart() -> None:
    found = []
    for way in WAYS:
        on, results = notebook(way), []
        for turn in range(TURNS):
            first = 100 + 10 * turn
            on.run(
                Op("cupy.concatenate", first, (List((Ref(3), Ref(4))),)),
                Op("cupy.concatenate", first + 1, (Tuple((Ref(3), Ref(4), window(1, turn % 3))),)),
                Op("cupy.roll", first + 2, (Ref(3), turn % 2)),
                Op("cupy.ndarray.__getitem__", first + 3, (Ref(first), Slice(None, None, 2))),
            )
            results.append([on.contents(Ref(first + at)).tobytes() for at in range(3)])
        found.append(results)
    assert found[0] == found[1] == found[2]


def test_a_launch_that_fails_is_told_at_its_op_and_the_others_are_carried_out() -> None:
    on = notebook(most_ops=2)
    on.run(*(added(20 + one, Ref(3), 1.0, drop=(20 + one,)) for one in range(8)))
    on.run(*(Op("cupy.sum", 30 + one, (Ref(3),), (30 + one,)) for one in range(6)))
    device = on.device
    assert isinstance(device, GatheringCpu)
    device.runs.failures.append(RuntimeError("no launch today"))
    was = recurring(on).done
    answers = on.run(added(50, Ref(3), 1.0), Op("cupy.sum", 51, (Ref(3),)), Op("cupy.sum", 52, (Ref(4),)))
    assert [one.error.message for one in answers if one.error is not None] == ["no launch today"]
    assert float(on.contents(Ref(52))) == sum(range(4, 10))
    assert recurring(on).done > was
    assert recurring(on).error is None


def test_what_is_forgotten_is_learnt_again_and_leaves_nothing_behind() -> None:
    on = notebook(most_ops=100)
    on.stream.heap.put(50, np.arange(7.0))
    on.run(*(added(20 + one, Ref(50), 1.0, drop=(20 + one,)) for one in range(4)))
    assert recurring(on).count == 1
    layout = on.stream.heap.places.known[50].layout
    before = sys.getrefcount(layout)
    recurring(on).forget()
    assert recurring(on).count == 0
    assert sys.getrefcount(layout) < before
    was = recurring(on).done
    on.run(*(added(30 + one, Ref(50), 1.0) for one in range(4)))
    assert recurring(on).done == was + 2


def test_a_recipe_that_names_what_it_does_not_have_is_refused() -> None:
    on = notebook()
    lies = (contiguous((6,), np.dtype(float)), 0, 48, 0, 48, 8)
    instruction = (bytes(160), 0, 6, ((0, 0), (0, 0)), ())
    sound = ((lies,), (), -1, (instruction,), None, False, True, 0, False, True, False)
    op = Op(".store", 0, (Ref(3), Ref(4)))
    on.run(op)
    recurring(on).learn(op, None, sound)
    for at, wrong in (
        (0, ((*lies[:5], 0),)), (2, 0), (3, ()), (3, ((bytes(160), 0, 6, ((5, 0),), ()),)),
        (3, ((bytes(160), 0, 6, ((0, 0),), ((0, 3, "d", 8),)),)), (3, ((bytes(9), 0, 6, (), ()),)),
        (4, (print, None, bytearray(4), ((0, 0, 0),), (), 1, ())),
        (4, (print, None, bytearray(8), (), ((0, 0, "d", 8),), 1, ())),
        (4, (print, None, bytearray(), (), (), 1, ((3, 0),))), (4, (print, None, bytearray(), (), (), 0, ())),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            recurring(on).learn(op, None, (*sound[:at], wrong, *sound[at + 1 :]))


def test_it_asks_for_what_it_knows() -> None:
    on = notebook()
    with pytest.raises(TypeError):
        recurring(on).run([], 0, 0, 0.0)
    with pytest.raises(IndexError):
        recurring(on).run((), 0, 1, 0.0)
    with pytest.raises(TypeError):
        _recurring.Recurring(classes={})
    with pytest.raises(TypeError):  # what was taken before the wrong one is nobody's to let go of
        _recurring.Recurring(
            {}, {}, on.stream.heap.places, {}, {}, {}, print, print, None, {}, print, None, set(), None, "most", 0
        )


def test_it_can_be_left_out() -> None:
    code = (
        "from gpu_backend.executor.program.recurring import make_recurring as make;"
        "print(make(None, None, None, None, set(), None))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, VARIABLE: "off"}, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "None"


def test_complex_numbers_beside_others_are_told_apart() -> None:
    found = []
    for way in WAYS:
        on = notebook(way)
        device: Any = on.device
        kernel = device.resolve("cupy.ElementwiseKernel")("T x, T a, T b", "T y", "y = a * x + b", "line")
        on.stream.heap.put(10, kernel, Kind.KERNEL)
        on.stream.heap.put(50, np.ones(4, complex))
        pairs: list[tuple[Value, Value]] = [
            (Complex(1.0, 2.0), 3.0),
            (1.0, Complex(2.0, 3.0)),
            (Complex(0.0, 1.0), 0.0),
        ]
        ops = [Op(".call", 100 + at, (Ref(10), Ref(50), *pair)) for at, pair in enumerate([pairs[0]] * 6 + pairs)]
        assert not on.run(*ops)
        found.append([on.contents(Ref(op.out)).tolist() for op in ops])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("way", ["recurring", "python"])
def test_what_is_given_twice_is_computed_by_cupy(way: str) -> None:
    """It may compute into memory of its own then; but a kernel of the user's is given twice what it is given twice."""
    on = notebook(way)
    on.stream.heap.put(50, np.arange(4).reshape(2, 2))
    on.stream.heap.put(51, np.arange(4).reshape(2, 2))
    on.stream.heap.put(52, np.zeros((2, 2), int))
    direct: Any = on.stream._direct

    def launched(*ops: Op) -> int:
        before = direct.replayer.replayed + (direct.recurring.launched if direct.recurring is not None else 0)
        assert not on.run(*ops)
        return direct.replayer.replayed + (direct.recurring.launched if direct.recurring is not None else 0) - before

    apart, twice = (Op("cupy.dot", 0, (Ref(50), Ref(51), Ref(into))) for into in (52, 50))
    assert launched(*[apart] * 8) >= 4
    assert launched(*[twice] * 8) == 0
    device: Any = on.device
    kernel = device.resolve("cupy.ElementwiseKernel")("T x, T y", "T z", "z = x + y", "sum_of_two")
    on.stream.heap.put(10, kernel, Kind.KERNEL)
    assert launched(*[Op(".call", 0, (Ref(10), Ref(50), Ref(52), Ref(52)))] * 8) >= 4
    assert launched(*[Op(".call", 0, (Ref(10), Ref(52), Ref(52), Ref(52)))] * 8) >= 4
