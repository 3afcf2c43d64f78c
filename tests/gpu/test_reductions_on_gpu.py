"""Reductions of whole arrays on a GPU: the short way to CUB gives what CuPy's own way gives, to the bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.config import PASSES
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, View
from tests.unit.executor.program.played import PlayedNotebook

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

NAMES = [f"{owner}.{name}" for owner in ("cupy.ndarray", "cupy") for name in ("sum", "prod", "max", "min")]
DTYPES = "?bHlQefD"


def own(qualname: str) -> Any:
    """Return CuPy's own function."""
    import cupy

    owner, _, name = qualname.rpartition(".")
    return getattr(cupy.ndarray if owner == "cupy.ndarray" else cupy, name)


def outcome(function: Any, *args: Any, **kwargs: Any) -> object:
    """Return what came of the call, comparable: dtype, shape and bytes, or the error."""
    try:
        made = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return made.dtype.char, made.shape, made.get().tobytes()


@pytest.mark.parametrize("qualname", [*NAMES, "cupy.amax", "cupy.amin"])
def test_every_array_is_reduced_as_by_cupy(qualname: str) -> None:
    import cupy

    from gpu_backend.devices import open_device

    function = open_device("cuda").resolve(qualname)
    assert function.__doc__ == own(qualname).__doc__
    random = np.random.default_rng(1)
    for char in DTYPES:
        array = cupy.asarray((random.random((30, 40)) * 3 + 0.5).astype(char))
        for one in (array, array.ravel()[:7], array[0, 0], array[:0]):
            assert outcome(function, one) == outcome(own(qualname), one), (char, one.shape)
    array = cupy.arange(1200.0).reshape(30, 40)
    for one in (array.T, array[1:, ::2]):
        assert outcome(function, one) == outcome(own(qualname), one), one.strides
    for kwargs in ({"axis": 0}, {"axis": None}, {"axis": (0, 1), "keepdims": True}, {"out": cupy.empty((), "f8")}):
        assert outcome(function, array, **kwargs) == outcome(own(qualname), array, **kwargs), kwargs
    assert outcome(function, array, 1) == outcome(own(qualname), array, 1)
    assert outcome(function, [1.0, 2.0]) == outcome(own(qualname), [1.0, 2.0])


def test_accelerators_that_a_program_chose_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy
    from cupy import _core
    from cupy.cuda import cub

    from gpu_backend.devices import cuda_reductions

    ways: list[int] = []
    device_reduce = cub.device_reduce
    monkeypatch.setattr(cub, "device_reduce", lambda *given: ways.append(len(given)) or device_reduce(*given))
    total = cuda_reductions.whole_reductions()["cupy.ndarray.sum"]
    array = cupy.arange(1000.0)
    assert float(total(array)) == 499_500
    assert ways == [4]
    chosen = _core.get_routine_accelerators()
    _core.set_routine_accelerators([])
    try:
        assert float(total(array)) == 499_500
    finally:
        _core.set_routine_accelerators(chosen)
    assert ways == [4]


#: What is reduced in a loop on slices: of how many elements at most, how often, under which handles.
LONGEST, TURNS, FIRST, MADE = 40_000, 80, 1, 100
OF_ONE = [*NAMES, "cupy.amax", "cupy.amin", "cupy.mean", "cupy.ndarray.mean"]
INNER = ["cupy.matmul", "cupy.dot", "cupy.ndarray.dot"]


def _numbers(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    drawn = np.random.default_rng(5)
    made = drawn.normal(size=LONGEST) * 10.0 ** drawn.integers(-3, 4, LONGEST)
    made = made + 1j * made[::-1] if dtype.kind == "c" else np.abs(made) if dtype.kind == "u" else made
    made = made.astype(dtype)
    if dtype.kind in "fc":
        made[LONGEST - 50], made[LONGEST - 60] = np.nan, np.inf
    return made


def _slice(drawn: random.Random, dtype: np.dtype[Any], length: int) -> View:
    step = drawn.choice([1, 1, 1, 3, -1]) if length < LONGEST // 3 else 1
    first = (length - 1) * -step if step < 0 else drawn.choice([0, 1, LONGEST - 1 - (length - 1) * step])
    return View(FIRST, max(first, 0) * dtype.itemsize, (length,), (step * dtype.itemsize,), dtype.str, "C")


@pytest.mark.parametrize("char", "?bBhHiIlLqQefdFD")
def test_slices_of_ever_new_lengths_are_reduced_to_the_same_bits(char: str) -> None:
    from gpu_backend.devices.cuda import CudaDevice

    device, dtype, drawn = CudaDevice(), np.dtype(char), random.Random(char)
    on, plain = PlayedNotebook(PASSES, device), PlayedNotebook((), device)
    for one in (on, plain):
        one.stream.heap.put(FIRST, device.upload(_numbers(dtype)))
        one.stream.heap.ownership.own(FIRST)
    for _ in range(TURNS):
        length = drawn.choice([1, 2, 3, 7, 31, 33, 100, 255, 257, 1000, 4097, LONGEST - 1])
        length += drawn.randrange(0, 1 + LONGEST - 1 - length) // drawn.choice([1, 10, 1000])
        name = drawn.choice([*OF_ONE, *INNER * 2])
        args = tuple(_slice(drawn, dtype, length) for _ in range(1 + (name in INNER)))
        told = [[str(answer.error) for answer in one.run(Op(name, MADE, args))] for one in (on, plain)]
        assert told[0] == told[1], (name, args)
        if not told[0]:
            contents = [one.contents(Ref(MADE)) for one in (on, plain)]
            assert contents[0].dtype == contents[1].dtype, (name, args)
            assert contents[0].tobytes() == contents[1].tobytes(), (name, args)
        for one in (on, plain):
            one.run(Op(".nothing", 0, (), (MADE,)))
    assert on.stream._direct is not None
    assert on.stream._direct.reductions is not None
    assert char not in "lLqQfdFD" or on.stream._direct.reductions.done > TURNS // 4


def test_other_accelerators_are_the_programs() -> None:
    from cupy import _core

    from gpu_backend.devices.cuda import CudaDevice

    device = CudaDevice()
    on, plain = PlayedNotebook(PASSES, device), PlayedNotebook((), device)
    assert on.stream._direct is not None
    assert on.stream._direct.reductions is not None
    chosen, done = _core.get_routine_accelerators(), []
    try:
        for turn, accelerators in enumerate((chosen, [], chosen)):
            for one in (on, plain):
                one.run(Op("cupy.linspace", FIRST, (0.0, 1.0, 5000)))
                _core.set_routine_accelerators(accelerators)
                one.run(Op("cupy.sum", MADE, (View(FIRST, 0, (4097 + turn,), (8,), "<f8", "C"),)))
            assert on.contents(Ref(MADE)).tobytes() == plain.contents(Ref(MADE)).tobytes(), accelerators
            done.append(on.stream._direct.reductions.done)
            for one in (on, plain):
                one.run(Op(".nothing", 0, (), (FIRST, MADE)))
    finally:
        _core.set_routine_accelerators(chosen)
    assert done == [1, 1, 2]


def test_what_comes_again_is_launched_again_and_without_a_pool_nothing_piles_up() -> None:
    import cupy

    from gpu_backend.devices.cuda import CudaDevice

    on = PlayedNotebook(PASSES, CudaDevice())
    assert on.stream._direct is not None
    assert on.stream._direct.replayer is not None
    on.run(Op("cupy.arange", FIRST, (0.0, 5000.0)))
    args = tuple(View(FIRST, 8 * first, (4000,), (8,), "<f8", "C") for first in (0, 3))
    for turn in range(40):
        on.run(Op("cupy.dot", MADE + turn, args, (MADE + turn - 1,) if turn else None))
    assert on.stream._direct.replayer.replayed > 0
    allocator, places = cupy.cuda.get_allocator(), on.stream.heap.places
    try:
        cupy.cuda.set_allocator(None)
        for turn in range(60):
            on.run(Op("cupy.sum", 200 + turn, (View(FIRST, 0, (100 + turn,), (8,), "<f8", "C"),), (199 + turn,)))
    finally:
        cupy.cuda.set_allocator(allocator)
    assert all(size % 512 == 0 for size in places.spare), places.spare.keys()
