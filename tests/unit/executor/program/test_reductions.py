"""Sums, extremes, means and products of vectors whose length is new each time go to the device's library."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.executor.config import PASSES
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Value, View
from tests.unit.executor.program.numpy_reductions import ReducingCpu
from tests.unit.executor.program.played import PlayedNotebook

#: Arrays of 64 doubles that count up, from 0 and from 1; and where results go.
FLAT, OTHER, MADE = 50, 51, 100
LENGTHS = range(1, 14)
INNER = ["cupy.matmul", "cupy.dot", "cupy.ndarray.dot"]
OF_ONE = [f"{owner}.{verb}" for owner in ("cupy", "cupy.ndarray") for verb in ("sum", "max", "mean")]


def notebook(passes: tuple[str, ...] = PASSES) -> tuple[PlayedNotebook, ReducingCpu]:
    """Return a notebook with arrays of whole numbers, whose sums are the same in any order."""
    device = ReducingCpu()
    on = PlayedNotebook(passes, device)
    on.run(Op("cupy.arange", FLAT, (0.0, 64.0)), Op("cupy.arange", OTHER, (1.0, 65.0)))
    return on, device


def part(length: int, first: int = 0, step: int = 1, root: int = FLAT) -> View:
    return View(root, 8 * first, (length,), (8 * step,), "<f8", "C")


def done(on: PlayedNotebook) -> int:
    assert on.stream._direct is not None
    assert on.stream._direct.reductions is not None
    return on.stream._direct.reductions.done


def require_same(name: str, *turns: tuple[Value, ...]) -> tuple[PlayedNotebook, ReducingCpu]:
    """Have an op give the same on each of ``turns`` as CuPy's way does."""
    (on, device), (plain, _) = notebook(), notebook(())
    for args in turns:
        for one in (on, plain):
            assert not one.run(Op(name, MADE, args))
        assert on.contents(Ref(MADE)).tobytes() == plain.contents(Ref(MADE)).tobytes(), args
        for one in (on, plain):
            one.run(Op(".nothing", 0, (), (MADE,)))
    return on, device


@pytest.mark.parametrize("name", OF_ONE)
def test_slices_that_grow_are_reduced_by_the_library(name: str) -> None:
    on, device = require_same(name, *((part(length, length),) for length in LENGTHS))
    assert done(on) == len(device.reduced.calls) == len(LENGTHS)


@pytest.mark.parametrize("name", INNER)
def test_products_of_vectors_are_multiplied_and_summed(name: str) -> None:
    turns = [(part(length), part(length, 2, 3, OTHER)) for length in LENGTHS]
    on, device = require_same(name, *turns, *((one, one) for one, _ in turns[1:]))
    assert done(on) == len(device.reduced.calls) == 2 * len(LENGTHS) - 1
    assert set(device.reduced.calls) == {"sum"}


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("cupy.sum", (part(5, 0, 2),)), ("cupy.prod", (part(5),)), ("cupy.argmax", (part(5),)),
        ("cupy.sum", (part(5), 0)), ("cupy.matmul", (part(1), View(FLAT, 0, (1, 3), (24, 8), "<f8", "C"))),
        ("cupy.mean", (View(FLAT, 0, (5,), (8,), "<i8", "C"),)),
    ],
)  # fmt: skip
def test_what_the_library_does_not_do_goes_cupys_way(name: str, args: tuple[Value, ...]) -> None:
    on, _ = require_same(name, args)
    assert done(on) == 0


def test_what_does_not_fit_is_refused_in_cupys_words() -> None:
    outcomes = []
    for passes in (PASSES, ()):
        on, _ = notebook(passes)
        on.run(Op("cupy.matmul", MADE, (part(3), part(4))))
        outcomes.append([str(one.error) for one in on.run(Op("cupy.add", MADE + 1, (Ref(MADE), 1.0)))])
    assert outcomes[0] == outcomes[1]


def test_what_comes_again_and_again_is_replayed() -> None:
    """Later than other ops: slices that grow come in one way each, and to capture one takes as long as fifty sums."""
    _, device = require_same("cupy.sum", *[(part(9),)] * 50)
    assert len(device.reduced.calls) >= 48
    _, device = require_same("cupy.sum", *[(part(9),)] * 150)
    assert 0 < len(device.reduced.calls) < 80


@pytest.mark.parametrize("why", ["no pool", "not compiled"])
def test_what_the_library_cannot_do_now_is_captured_as_soon_as_others(why: str) -> None:
    on, device = notebook()
    name, args = ("cupy.sum", (part(9),)) if why == "no pool" else ("cupy.dot", (part(9), part(9, 2, 3, OTHER)))
    device.reduced.has_pool = lambda: why != "no pool"  # type: ignore[method-assign]
    device.runs.is_compiled = False
    device.runs.ready.clear()
    for _ in range(20):
        assert not on.run(Op(name, MADE, args))
        on.run(Op(".nothing", 0, (), (MADE,)))
    way = on.stream._direct
    assert way is not None
    assert way.replayer is not None
    assert way.replayer.replayed + (way.recurring.launched if way.recurring is not None else 0) >= 10


def test_operands_are_computed_first_and_results_are_operands_of_what_is_gathered() -> None:
    on, device = notebook()
    on.run(Op("cupy.add", 70, (part(9), 1.0)), Op("cupy.matmul", 71, (Ref(70), part(9, 0, 1, OTHER))))
    on.run(
        Op("cupy.add", 72, (Ref(71), 0.5), (70,)),
        Op("cupy.mean", 73, (part(9, 4),)),
        Op("cupy.add", 74, (Ref(73), Ref(72))),
    )
    rising = np.arange(1.0, 10.0)
    assert on.contents(Ref(74)) == (rising * rising).sum() + 0.5 + 8.0
    assert device.reduced.calls == ["sum", "sum"]
    assert 71 not in on.stream.heap.objects  # no array was made of it


def test_spare_memory_does_not_grow() -> None:
    on, _ = notebook()
    for turn in range(12):
        made = 200 + 2 * turn
        on.run(Op("cupy.matmul", made, (part(2 + turn), part(2 + turn, 1))))
        on.run(Op("cupy.add", made + 1, (Ref(made), 1.0)), Op(".nothing", 0, (), (made, made + 1)))
    assert sum(map(len, on.stream.heap.places.spare.values())) <= 4


def test_without_memory_it_goes_cupys_way() -> None:
    on, device = notebook()
    on.stream.heap.places.give_back()
    for left in (0, 1):
        device.memory_by_address.left = left
        on.run(Op("cupy.matmul", MADE + left, (part(9), part(9))))
        device.memory_by_address.left = 100
        assert on.contents(Ref(MADE + left)) == (np.arange(9.0) ** 2).sum()
    assert not device.reduced.calls


def test_what_is_captured_has_gone_cupys_way_before() -> None:
    on, device = notebook()
    for turn in range(4):
        on.run(Op("cupy.dot", MADE + turn, (part(9), part(9))))
    assert done(on) == len(device.reduced.calls) == 3
    assert on.stream.has_lesson


def test_without_a_pool_it_goes_cupys_way() -> None:
    on, device = notebook()
    device.reduced.is_pooled = False
    on.run(Op("cupy.sum", MADE, (part(9),)))
    assert on.contents(Ref(MADE)) == 36.0
    assert not device.reduced.calls


def test_a_mean_is_not_summed_before_what_divides_is_compiled() -> None:
    on, device = notebook()
    device.runs.is_compiled = False
    device.runs.ready.clear()
    on.run(Op("cupy.mean", MADE, (part(9),)))
    assert on.contents(Ref(MADE)) == 4.0
    assert not device.reduced.calls


def test_they_can_be_left_out() -> None:
    on, device = notebook(tuple(name for name in PASSES if name != "reductions"))
    on.run(Op("cupy.sum", MADE, (part(9),)))
    assert on.contents(Ref(MADE)) == 36.0
    assert not device.reduced.calls
