"""``bincount`` on a GPU by kernels of our own: CuPy looks at all numbers twice, and waits each time, before it counts.

How many bins there are the host has to know, here as there, so it waits once: for the least and the greatest number.
Counts are whole numbers, so they are CuPy's however they come about. Weights are added up by CuPy's own kernel, and
many bins are counted CuPy's way: where most numbers are alike, the blocks of threads would stand in line for one bin.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from cupy._statistics import histogram
from cupy.cuda import memory, runtime, stream

from gpu_backend.devices.bin_source import (
    BIN_SOURCE,
    COUNT,
    EXTREMES,
    EXTREMES_OF_ALL,
    FEW_BINS,
    MOST_BLOCKS,
    THREADS,
    kernel_name,
)
from gpu_backend.devices.cuda_word_kernels import WORD, WordKernel

#: Larger arrays keep the device busy by themselves, and of more sums CuPy shall say that there is no memory.
_MOST_ELEMENTS, _MOST_BINS = 1 << 26, 1 << 26
#: How many parameters the kernels of a type have.
_PARAMETERS = {EXTREMES: 3, COUNT: 4}
#: So many numbers are worth a block.
_OF_BLOCK = 2048


class Bins:
    """Counts numbers on one GPU."""

    def __init__(self) -> None:
        self._module = cupy.RawModule(code=BIN_SOURCE, options=("--std=c++17",))
        self._of_all = WordKernel(self._module, EXTREMES_OF_ALL, 3)
        self._by_type: dict[str, tuple[WordKernel, WordKernel]] = {}
        self._stage = cupy.cuda.alloc_pinned_memory(2 * WORD)
        self._found = (ctypes.c_longlong * 2).from_address(self._stage.ptr)

    def _kernels(self, dtype_char: str) -> tuple[WordKernel, WordKernel]:
        held = self._by_type.get(dtype_char)
        if held is None:
            looks, counts = (
                WordKernel(self._module, kernel_name(verb, dtype_char), words) for verb, words in _PARAMETERS.items()
            )
            held = self._by_type[dtype_char] = looks, counts
        return held

    def extremes(self, numbers: cupy.ndarray) -> tuple[int, int]:
        """Return the least and the greatest of ``numbers``, which lie in a row; waits for them."""
        looks, _ = self._kernels(numbers.dtype.char)
        blocks = _blocks(numbers.size)
        found = memory.alloc(2 * blocks * WORD)
        looks.launch(blocks, THREADS, numbers.data.ptr, numbers.size, found.ptr)
        self._of_all.launch(1, THREADS, found.ptr, blocks, self._stage.ptr)
        runtime.streamSynchronize(0)
        low, high = self._found
        return low, high

    def count(self, numbers: cupy.ndarray, bins: int) -> cupy.ndarray:
        """Return how often each number below ``bins``, of which there are few, comes. Others are not counted."""
        _, counts = self._kernels(numbers.dtype.char)
        found = cupy.zeros((bins,), np.intp)
        words = numbers.data.ptr, numbers.size, found.data.ptr, bins
        counts.launch(_blocks(numbers.size), THREADS, *words)
        return found


@functools.cache
def _bins() -> Bins:
    return Bins()


def counted_in_bins() -> dict[str, Callable[..., Any]]:
    """Return what stands for CuPy's functions that count, by public name: all else that they do is CuPy's."""
    return {"cupy.bincount": _bincount}


def compile_bins() -> None:
    """Have the kernels compiled."""
    _bins()


@functools.wraps(cupy.bincount)
def _bincount(x: Any, weights: Any = None, minlength: Any = None) -> Any:
    if not _fits(x, weights, minlength):
        return cupy.bincount(x, weights, minlength)
    low, high = _bins().extremes(x)
    bins = max(high + 1, minlength or 0)
    if low < 0 or bins > (FEW_BINS if weights is None else _MOST_BINS):
        return cupy.bincount(x, weights, minlength)
    if weights is None:
        return _bins().count(x, bins)
    sums = cupy.zeros((bins,), np.float64)
    histogram._bincount_with_weight_kernel(x, weights, sums)
    return sums


def _fits(x: Any, weights: Any, minlength: Any) -> bool:
    """Tell whether these are numbers in a row, weights for them if any, and a number of bins; in the default stream."""
    return (
        type(x) is cupy.ndarray
        and x.ndim == 1
        and x.dtype.kind in "biu"
        and x._c_contiguous
        and 0 < x.size <= _MOST_ELEMENTS
        and (weights is None or (type(weights) is cupy.ndarray and weights.shape == x.shape))
        and (minlength is None or (type(minlength) is int and 0 <= minlength <= _MOST_BINS))
        and not stream.get_current_stream().ptr
    )


def _blocks(elements: int) -> int:
    return min(MOST_BLOCKS, -(-elements // _OF_BLOCK))
