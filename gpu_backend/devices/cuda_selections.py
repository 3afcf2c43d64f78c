"""``x[mask]`` and ``x[mask] = values`` on a GPU by three kernels: CuPy scans the mask by a dozen, and each is a wait.

What is moved is moved as it is, so the bits are CuPy's. How many elements a mask chooses the host has to know, here as
there: it is what ``x[mask]`` has for a shape.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from math import prod
from typing import Any

import cupy
from cupy.cuda import memory, runtime, stream

from gpu_backend.devices.cuda_word_kernels import WORD, WordKernel
from gpu_backend.devices.selection_source import (
    COUNT,
    GATHER,
    PLACE,
    SCAN_THREADS,
    SCATTER,
    SELECTION_SOURCE,
    THREADS,
    TILE,
    UNITS,
)

#: Larger masks keep the device busy by themselves; and of longer rows each thread would move too much.
_MOST_ELEMENTS, _MOST_ROW_BYTES = 1 << 26, 128


class Selections:
    """Chooses elements by masks on one GPU."""

    def __init__(self) -> None:
        module = cupy.RawModule(code=SELECTION_SOURCE, options=("--std=c++17",))
        self._count, self._place = WordKernel(module, COUNT, 3), WordKernel(module, PLACE, 3)
        self._moves = {
            verb: {size: WordKernel(module, f"{verb}{size}", 6) for size in UNITS} for verb in (GATHER, SCATTER)
        }
        self._stage = cupy.cuda.alloc_pinned_memory(WORD)
        self._chosen = ctypes.c_longlong.from_address(self._stage.ptr)

    def gather(self, array: cupy.ndarray, mask: cupy.ndarray) -> cupy.ndarray:
        """Return ``array[mask]``, of two that `_fits` says are served."""
        places, chosen = self._counted(mask)
        made = cupy.ndarray((chosen, *array.shape[mask.ndim :]), array.dtype)
        if made.size:
            self._move(GATHER, array.data.ptr, mask, places, _row_bytes(array, mask), made.data.ptr)
        return made

    def scatter(self, array: cupy.ndarray, mask: cupy.ndarray, values: cupy.ndarray) -> bool:
        """Do ``array[mask] = values``, of three that are served, if as many are chosen; tell whether they were."""
        places, chosen = self._counted(mask)
        if chosen != len(values):
            return False
        if values.size:
            self._move(SCATTER, values.data.ptr, mask, places, _row_bytes(array, mask), array.data.ptr)
        return True

    def _counted(self, mask: cupy.ndarray) -> tuple[Any, int]:
        """Return where it stands how many are chosen before each tile, and how many are in all; waits for that."""
        tiles = -(-mask.size // TILE)
        places = memory.alloc(tiles * WORD)
        self._count.launch(tiles, THREADS, mask.data.ptr, mask.size, places.ptr)
        self._place.launch(1, SCAN_THREADS, places.ptr, tiles, self._stage.ptr)
        runtime.streamSynchronize(0)
        return places, self._chosen.value

    def _move(self, verb: str, of: int, mask: cupy.ndarray, places: Any, row_bytes: int, into: int) -> None:
        size = next(one for one in UNITS if not (row_bytes % one or of % one or into % one))
        tiles = -(-mask.size // TILE)
        words = (of, mask.data.ptr, mask.size, places.ptr, row_bytes // size, into)
        self._moves[verb][size].launch(tiles, THREADS, *words)


@functools.cache
def _selections() -> Selections:
    return Selections()


def chosen_by_masks() -> dict[str, Callable[..., Any]]:
    """Return what stands for CuPy's methods that take a mask, by public name: all else that they do is CuPy's."""
    return {"cupy.ndarray.__getitem__": _getitem, "cupy.ndarray.__setitem__": _setitem}


def compile_selections() -> None:
    """Have the kernels compiled."""
    _selections()


def _getitem(array: Any, index: Any) -> Any:
    if _fits(array, index):
        return _selections().gather(array, index)
    return array[index]


def _setitem(array: Any, index: Any, values: Any) -> None:
    if not (
        type(values) is cupy.ndarray
        and _fits(array, index)
        and _fits_values(array, index, values)
        and _selections().scatter(array, index, values)
    ):
        array[index] = values


def _fits(array: Any, mask: Any) -> bool:
    """Tell whether ``mask`` is one, for the first axes of ``array``, and both lie in a row; in the default stream."""
    return (
        type(mask) is cupy.ndarray
        and mask.dtype.char == "?"
        and type(array) is cupy.ndarray
        and 0 < mask.ndim <= array.ndim
        and array.shape[: mask.ndim] == mask.shape
        and mask._c_contiguous
        and array._c_contiguous
        and 0 < mask.size <= _MOST_ELEMENTS
        and 0 < _row_bytes(array, mask) <= _MOST_ROW_BYTES
        and not stream.get_current_stream().ptr
    )


def _fits_values(array: Any, mask: Any, values: Any) -> bool:
    """Tell whether ``values`` are rows of ``array`` and lie in a row, apart from it."""
    start, end = array.data.ptr, array.data.ptr + array.nbytes
    low, high = values.data.ptr, values.data.ptr + values.nbytes
    return bool(
        values.dtype == array.dtype
        and values.ndim == 1 + array.ndim - mask.ndim
        and values.shape[1:] == array.shape[mask.ndim :]
        and values._c_contiguous
        and (high <= start or end <= low)
        and (mask.data.ptr >= end or mask.data.ptr + mask.nbytes <= start)
    )


def _row_bytes(array: Any, mask: Any) -> int:
    size: int = prod(array.shape[mask.ndim :]) * array.itemsize
    return size
