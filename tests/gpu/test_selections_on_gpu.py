"""What a mask chooses on a GPU by kernels of our own is what CuPy gives, to the bit, wherever it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.selection_source import SCAN_THREADS, TILE

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

SIZES = [1, 31, 256, 257, TILE - 1, TILE, TILE + 1, 10 * TILE + 77, (SCAN_THREADS + 3) * TILE + 5]
PARTS = [0.0, 0.003, 0.5, 1.0]


@pytest.fixture(scope="module")
def resolve() -> Callable[[str], Any]:
    from gpu_backend.devices.cuda import CudaDevice

    return CudaDevice().resolve


@pytest.fixture(scope="module")
def moved() -> list[str]:
    """Return what was moved by kernels of our own, as it goes on."""
    from gpu_backend.devices import cuda_selections

    kernels, found = cuda_selections._selections(), []
    move = kernels._move

    def noted(verb: str, *args: Any) -> None:
        found.append(verb)
        move(verb, *args)

    kernels._move = noted  # type: ignore[method-assign]
    return found


def _drawn(size: int, dtype: str, row: tuple[int, ...], part: float) -> tuple[Any, Any]:
    """Return an array that begins one element behind where memory does, and a mask that chooses ``part`` of it."""
    import cupy

    numbers = np.random.default_rng(size)
    host = numbers.integers(0, 256, (size + 1) * int(np.prod(row)) * np.dtype(dtype).itemsize, np.uint8)
    host = host % 2 if dtype == "?" else host
    array = cupy.asarray(host).view(dtype)[int(np.prod(row)) :].reshape(size, *row)
    return array, cupy.asarray(numbers.random(size) < part)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("dtype", ["?", "e", "f", "d", "F", "D", "b", "H", "l"])
def test_elements(resolve: Callable[[str], Any], moved: list[str], dtype: str, part: float) -> None:
    for size in SIZES:
        array, mask = _drawn(size, dtype, (), part)
        before = len(moved)
        found, expected = resolve("cupy.ndarray.__getitem__")(array, mask), array[mask]
        assert (found.shape, found.dtype, found.strides) == (expected.shape, expected.dtype, expected.strides)
        assert found.tobytes() == expected.tobytes()
        assert len(moved) == before + (expected.size > 0)
        ours, theirs = array.copy(), array.copy()
        resolve("cupy.ndarray.__setitem__")(ours, mask, found[::-1].copy())
        theirs[mask] = found[::-1]
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("row", [(2,), (3, 5), (1,), (0,), (17,), (40,)])
def test_rows(resolve: Callable[[str], Any], moved: list[str], row: tuple[int, ...]) -> None:
    for size in SIZES[:-1]:
        array, mask = _drawn(size, "d", row, 0.4)
        found, expected = resolve("cupy.ndarray.__getitem__")(array, mask), array[mask]
        assert (found.shape, found.tobytes()) == (expected.shape, expected.tobytes())
        ours, theirs = array.copy(), array.copy()
        resolve("cupy.ndarray.__setitem__")(ours, mask, -found)
        theirs[mask] = -found
        assert ours.tobytes() == theirs.tobytes()
    table, chosen = array.reshape(mask.size, 1, *row), mask.reshape(mask.size, 1)
    assert resolve("cupy.ndarray.__getitem__")(table, chosen).tobytes() == table[chosen].tobytes()


def test_what_is_no_mask_of_the_first_axes_goes_cupys_way(resolve: Callable[[str], Any], moved: list[str]) -> None:
    import cupy

    getitem, setitem = (resolve(f"cupy.ndarray.__{verb}item__") for verb in ("get", "set"))
    array, mask = _drawn(5000, "d", (), 0.5)
    before = len(moved)
    assert getitem(array, 3) == array[3]
    assert getitem(array, slice(2, 9)).tobytes() == array[2:9].tobytes()
    assert getitem(array[::2], mask[::2]).tobytes() == array[::2][mask[::2]].tobytes()
    assert getitem(array, mask.get()).tobytes() == array[mask].tobytes()
    with pytest.raises(IndexError):
        getitem(array, cupy.ones(4, bool))
    with pytest.raises(ValueError, match=r"broadcast|shape"):
        setitem(array, mask, cupy.ones(int(mask.sum()) + 1))
    setitem(array, mask, 7)
    assert (array[mask] == 7).all()
    setitem(array, mask, cupy.full(1, 8.0))
    assert (array[mask] == 8).all()
    assert len(moved) == before
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        assert getitem(array, mask).size == int(mask.sum())
    assert len(moved) == before
