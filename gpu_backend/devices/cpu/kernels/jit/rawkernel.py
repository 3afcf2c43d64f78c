"""``cupyx.jit.rawkernel``: a kernel written in Python.

Sources:
    the language, its typing and the ways to call are those of CuPy 14.2
    (https://docs.cupy.dev/en/stable/user_guide/kernel.html#jit-kernel-definition).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.kernels.arguments import ByValue
from gpu_backend.devices.cpu.kernels.cached_codes import CachedCodes
from gpu_backend.devices.cpu.kernels.jit.function_source import FunctionSource, function_source
from gpu_backend.devices.cpu.kernels.jit.program import compile_function
from gpu_backend.devices.cpu.kernels.jit.values import ArrayOf, Mode, Scalar, Void, scalar_type
from gpu_backend.devices.cpu.kernels.raw import RawKernel

Argument = Scalar | ArrayOf


class JitRawKernel(CachedCodes):
    """A kernel written in Python; compiled for each combination of argument types when it is first called.

    Parameters
    ----------
    function
        A Python function, or its source.
    mode
        "cuda" (ints have 32 bits where they fit, floats have 32) or "numpy".
    device
        Whether only other kernels may call it.
    """

    def __init__(
        self, function: Callable[..., object] | FunctionSource, mode: Mode = "cuda", device: bool = False
    ) -> None:
        self._function = function
        self._mode = mode
        self.is_device_kernel = device
        self.__name__ = getattr(function, "__name__", None) or getattr(function, "name", "kernel")
        self._kernels: dict[tuple[Argument, ...], RawKernel] = {}

    @functools.cached_property
    def source(self) -> FunctionSource:
        """The source. Read when first needed, because a function may name others that are defined after it."""
        return self._function if isinstance(self._function, FunctionSource) else function_source(self._function)

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple[object, ...],
        shared_mem: int = 0,
        stream: object = None,
    ) -> None:
        """Run the kernel; parameters as for :meth:`.raw.RawKernel.__call__`.

        Raises
        ------
        TypeError
            If an argument is neither an array nor a number.
        """
        types = tuple(_type_of(arg, self._mode) for arg in args)
        kernel = self._kernels.get(types)
        if kernel is None:
            kernel = self._kernels[types] = self._compiled(types)
        kernel(
            grid, block, tuple(_packed(arg, kind) for arg, kind in zip(args, types, strict=True)), shared_mem=shared_mem
        )

    def _compiled(self, types: tuple[Argument, ...]) -> RawKernel:
        made = compile_function(self.source, 'extern "C" __global__', self._mode, types, Void())
        return RawKernel(f'#include "gpu/python.h"\n{made.code}', made.name)

    def __getitem__(self, grid_and_block: tuple[Any, Any]) -> Callable[..., None]:
        """Return the kernel with grid and block set, to be called with its arguments alone, as in Numba."""
        grid, block = (part if isinstance(part, tuple) else (part, 1, 1) for part in grid_and_block)

        def call(*args: Any, **kwargs: Any) -> None:
            self(grid, block, args, **kwargs)

        return call

    def _codes(self) -> dict[tuple[Argument, ...], str]:
        return {types: kernel.code for types, kernel in self._kernels.items()}


def rawkernel(*, mode: Mode = "cuda", device: bool = False) -> Callable[[Callable[..., Any]], JitRawKernel]:
    """Return a decorator that makes a kernel of a function."""

    def wrap(function: Callable[..., object]) -> JitRawKernel:
        kernel = JitRawKernel(function, mode, device)
        functools.update_wrapper(kernel, function)
        return kernel

    return wrap


def _type_of(arg: object, mode: Mode) -> Argument:
    if isinstance(arg, np.ndarray):
        return ArrayOf(arg.dtype, arg.ndim, arg.flags.c_contiguous)
    if isinstance(arg, bool | int | float | complex | np.generic):
        return scalar_type(arg, mode)
    raise TypeError(f"{type(arg)} is not supported for RawKernel")


def _packed(arg: Any, kind: Argument) -> ByValue:
    """Return the argument as the kernel's parameter lies in memory: a number, or a CArray."""
    if isinstance(kind, Scalar):
        return ByValue(np.array(arg, kind.dtype))
    if not kind.ndim:
        return ByValue.of_bytes(struct.pack("=Q", arg.ctypes.data))
    numbers = (arg.size, *arg.shape, *arg.strides)
    return ByValue.of_bytes(struct.pack(f"=Q{len(numbers)}q", arg.ctypes.data, *numbers))
