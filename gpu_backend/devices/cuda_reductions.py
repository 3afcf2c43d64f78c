"""Sums, products and extremes of whole arrays by CUB: as CuPy computes them, without looking each time for a way."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cupy
from cupy import _core
from cupy.cuda import cub
from cupy.cuda.memory import MemoryPointer, UnownedMemory

from gpu_backend.devices.blocks import Block
from gpu_backend.devices.reductions import Reduce
from gpu_backend.opstream.layout import Layout

#: ``ACCELERATOR_CUB`` of ``cupy/_core/_accelerator.pxd``.
_CUB = 1
#: CUB counts elements by 32-bit numbers.
_MOST_ELEMENTS = 0x7FFFFFFF
#: Characters of the dtypes that CUB adds and multiplies; CuPy widens others first. And of those that it compares.
_WIDE = frozenset("lqLQfdFD")
_COMPARED = _WIDE | frozenset("bBhHiI")
_AXES = [tuple(range(ndim)) for ndim in range(65)]
_METHODS = {
    "sum": (cub.CUPY_CUB_SUM, _WIDE),
    "prod": (cub.CUPY_CUB_PROD, _WIDE),
    "max": (cub.CUPY_CUB_MAX, _COMPARED),
    "min": (cub.CUPY_CUB_MIN, _COMPARED),
}
_FUNCTIONS = {"cupy.amax": "max", "cupy.amin": "min", **{f"cupy.{name}": name for name in _METHODS}}
#: By public name.
_REDUCTIONS = {**_FUNCTIONS, **{f"cupy.ndarray.{name}": name for name in _METHODS}}


class CudaReductions:
    """Calls CUB on one GPU; see the seam."""

    def __init__(self, device: cupy.cuda.Device) -> None:
        self._device = int(device)

    def has_pool(self) -> bool:
        """Tell whether memory comes from a pool now; see the seam."""
        return isinstance(getattr(cupy.cuda.get_allocator(), "__self__", None), cupy.cuda.MemoryPool)

    def reduction(self, name: str, layout: Layout) -> Reduce | None:
        """Return what reduces arrays that lie so; see the seam."""
        method = _REDUCTIONS.get(name)
        if method is None or not layout.c_contiguous or not 0 < layout.size <= _MOST_ELEMENTS:
            return None
        op, characters = _METHODS[method]
        dtype = layout.dtype
        if dtype.char not in characters or not dtype.isnative or _core.get_routine_accelerators()[:1] != [_CUB]:
            return None
        size, nbytes, device, reduce = layout.size, layout.nbytes, self._device, cub.device_reduce

        def run(address: int) -> Block:
            lying = MemoryPointer(UnownedMemory(address, nbytes, None, device), 0)
            made = reduce(cupy.ndarray(size, dtype, lying), op, _AXES[1], ()).data
            return Block(made.ptr, made, made.mem.size)

        return run


def whole_reductions() -> dict[str, Callable[..., Any]]:
    """Return what stands for CuPy's methods and functions that reduce, by public name.

    CuPy takes 1 µs of the 10 of such an op to find out that CUB can do it. Contiguous arrays of which nothing more is
    asked take the short way there; all else goes CuPy's way, so that every result is the same to the bit. Source:
    ``cub_reduction`` in ``cupy/cuda/cub.pyx`` of CuPy 14.2.
    """
    methods = {f"cupy.ndarray.{name}": name for name in _METHODS}
    return {
        **{name: _whole(getattr(cupy.ndarray, method), *_METHODS[method]) for name, method in methods.items()},
        **{name: _whole(getattr(cupy, name[5:]), *_METHODS[method]) for name, method in _FUNCTIONS.items()},
    }


def _whole(general: Callable[..., Any], op: Any, characters: frozenset[str]) -> Callable[..., Any]:
    plain, reduce, accelerators = cupy.ndarray, cub.device_reduce, _core.get_routine_accelerators
    chosen = accelerators()
    if chosen[:1] != [_CUB]:
        return general

    @functools.wraps(general)
    def whole(array: Any, *args: Any, **kwargs: Any) -> Any:
        if (
            args
            or kwargs
            or type(array) is not plain
            or array.dtype.char not in characters
            or not array._c_contiguous
            or array.size > _MOST_ELEMENTS
            or accelerators() is not chosen  # the program chose others: CuPy makes a new list of them
        ):
            return general(array, *args, **kwargs)
        return reduce(array, op, _AXES[array.ndim], ())

    return whole
