"""``RawKernel``: a kernel given as CUDA C++ source, run on this machine's processor.

Sources:
    constructor and call signatures, attribute names and the width of arguments are those of CuPy 14.2
    (https://docs.cupy.dev/en/stable/user_guide/kernel.html#raw-kernels).
"""

from __future__ import annotations

import operator
import warnings
from typing import TextIO

from gpu_backend.devices.cpu.kernels import launch as limits
from gpu_backend.devices.cpu.kernels.arguments import ArgumentBlock
from gpu_backend.devices.cpu.kernels.errors import CUDADriverError
from gpu_backend.devices.cpu.kernels.kernel_attributes import KernelAttributes
from gpu_backend.devices.cpu.kernels.launch import KernelEntry
from gpu_backend.devices.cpu.kernels.raw_source import RawSource


def check_type(what: str, value: object, kind: type) -> None:
    """Raise ``TypeError`` unless ``value`` is a ``kind``."""
    if not isinstance(value, kind):
        raise TypeError(f"Argument '{what}' has incorrect type (expected {kind.__name__}, got {type(value).__name__})")


def _extents(what: str, value: object, most: tuple[int, int, int]) -> tuple[int, int, int]:
    check_type(what, value, tuple)
    x, y, z = (max(1, operator.index(n)) for n in (*value, 1, 1)[:3])  # type: ignore[misc]
    if x > most[0] or y > most[1] or z > most[2]:
        raise CUDADriverError("CUDA_ERROR_INVALID_VALUE", f"invalid argument: {what} {(x, y, z)} exceeds {most}")
    return x, y, z


class RawKernel(KernelAttributes):
    """A kernel of CUDA C++ source.

    It is compiled when it is first called or one of its attributes is read.

    Parameters
    ----------
    code
        The source.
    name
        The kernel's name in it; the kernel must have C linkage.
    options
        Compile options of NVRTC or nvcc; those that only steer a GPU's code are ignored.
    backend
        "nvrtc" or "nvcc"; the machine's own compiler either way.
    translate_cucomplex
        Make ``cuComplex.h``'s types those of ``complex<T>``.
    enable_cooperative_groups
        Let all blocks of a grid run at the same time, so that they may wait for one another.
    jitify
        Accepted and without meaning here.
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool | None = None,
    ) -> None:
        for what, value, kind in (("code", code, str), ("name", name, str), ("options", options, tuple)):
            check_type(what, value, kind)
        check_type("backend", backend, str)
        self._source = RawSource(code, options, backend, translate_cucomplex, enable_cooperative_groups, None)
        self._jitify = jitify
        super().__init__(code)
        self.name = self.__name__ = name
        self.options = options
        self.backend = backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.file_path: str | None = None
        self._entry: KernelEntry | None = None

    @classmethod
    def of_module(cls, source: RawSource, name: str) -> RawKernel:
        """Return the kernel ``name`` of a module's ``source``."""
        kernel = cls(
            source.code, name, source.options, source.backend, translate_cucomplex=source.translate_cucomplex,
            enable_cooperative_groups=source.cooperative,
        )  # fmt: skip
        kernel._source = source
        return kernel

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple[object, ...],
        *,
        shared_mem: int = 0,
        stream: object = None,
    ) -> None:
        """Run the kernel and wait for its end.

        Parameters
        ----------
        grid, block
            Up to three extents: blocks of the grid, threads of a block.
        args
            The arguments, as :mod:`.arguments` describes. Fewer than the kernel has parameters is a ``TypeError``.
        shared_mem
            Dynamic shared memory of a block, in bytes.
        stream
            Accepted and without meaning: this device has one order of work.

        Raises
        ------
        CompileException
            If the source does not compile; at the first call only.
        CUDADriverError
            If the launch exceeds a limit, or the kernel failed an assertion or trapped.
        """
        entry = self.kernel
        grid3 = _extents("grid", grid, limits.MAX_GRID)
        block3 = _extents("block", block, limits.MAX_BLOCK)
        shared = operator.index(shared_mem)
        if block3[0] * block3[1] * block3[2] > limits.MAX_BLOCK_THREADS:
            raise CUDADriverError(
                "CUDA_ERROR_INVALID_VALUE", f"invalid argument: {block3} is over 1024 threads a block"
            )
        if shared > self._settable["max_dynamic_shared_size_bytes"]:
            raise CUDADriverError(
                "CUDA_ERROR_INVALID_VALUE",
                f"invalid argument: {shared} bytes of dynamic shared memory: set max_dynamic_shared_size_bytes first",
            )
        if self.enable_cooperative_groups:
            grid3 = _cooperative_grid(grid3)
        block_of_arguments = ArgumentBlock(self.name, args, entry.sizes)
        entry.launch(grid3, block3, block_of_arguments.address, shared)

    @property
    def kernel(self) -> KernelEntry:
        """The compiled kernel."""
        if self._entry is None:
            self._entry = self._source.load().kernel(self.name)
        return self._entry

    def compile(self, log_stream: TextIO | None = None) -> None:
        """Compile now. What the compiler prints, if it has to run, goes to ``log_stream``."""
        self._entry = self._source.load(log_stream).kernel(self.name)


def _cooperative_grid(grid: tuple[int, int, int]) -> tuple[int, int, int]:
    most = limits.MAX_COOPERATIVE_BLOCKS
    if grid[0] * grid[1] * grid[2] <= most:
        return grid
    if grid[1] == grid[2] == 1:
        warnings.warn(
            f"The grid size will be reduced from {grid[0]} to {most}, as the specified grid size exceeds the limit.",
            stacklevel=3,
        )
        return most, 1, 1
    raise ValueError(f"The specified grid size ({grid[0]} * {grid[1]} * {grid[2]}) exceeds the limit ({most}).")
