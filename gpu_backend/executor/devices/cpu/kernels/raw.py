"""``RawKernel`` and ``RawModule``: kernels given as CUDA C++ source, run on this machine's processor.

Sources:
    constructor and call signatures, attribute names and the width of arguments are those of CuPy 14.2
    (https://docs.cupy.dev/en/stable/user_guide/kernel.html#raw-kernels).
"""

from __future__ import annotations

import operator
import platform
import re
import warnings
from typing import Any, TextIO

from gpu_backend.executor.devices.cpu.kernels import launch as limits
from gpu_backend.executor.devices.cpu.kernels.arguments import ArgumentBlock
from gpu_backend.executor.devices.cpu.kernels.errors import CUDADriverError
from gpu_backend.executor.devices.cpu.kernels.launch import KernelEntry
from gpu_backend.executor.devices.cpu.kernels.raw_source import GlobalVariable, LoadedSource, RawSource
from gpu_backend.executor.devices.cpu.kernels.source import blanked


def _typed(what: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(
            f"Argument '{what}' has incorrect type (expected {kind.__name__}, got {type(value).__name__})"
        )


def _extents(what: str, value: object, most: tuple[int, int, int]) -> tuple[int, int, int]:
    _typed(what, value, tuple)
    x, y, z = (max(1, operator.index(n)) for n in (*value, 1, 1)[:3])  # type: ignore[misc]
    if x > most[0] or y > most[1] or z > most[2]:
        raise CUDADriverError("CUDA_ERROR_INVALID_VALUE", f"invalid argument: {what} {(x, y, z)} exceeds {most}")
    return x, y, z


class RawKernel:
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
            _typed(what, value, kind)
        _typed("backend", backend, str)
        self._source = RawSource(code, options, backend, translate_cucomplex, enable_cooperative_groups, None)
        self._jitify = jitify
        self.code = code
        self.name = self.__name__ = name
        self.options = options
        self.backend = backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.file_path: str | None = None
        self._entry: KernelEntry | None = None
        self._settable = {"max_dynamic_shared_size_bytes": limits.DEFAULT_SHARED_BYTES}

    @classmethod
    def _of_module(cls, source: RawSource, name: str) -> RawKernel:
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
        args: tuple[Any, ...],
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
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE", f"invalid argument: {block3} is over 1024 threads a block")
        if shared > self._settable["max_dynamic_shared_size_bytes"]:
            raise CUDADriverError(
                "CUDA_ERROR_INVALID_VALUE",
                f"invalid argument: {shared} bytes of dynamic shared memory need max_dynamic_shared_size_bytes to be set",
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

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_entry": None}

    @property
    def attributes(self) -> dict[str, int]:
        """All attributes of the compiled kernel, by name."""
        return {name: getattr(self, name) for name in _ATTRIBUTES}

    @property
    def max_threads_per_block(self) -> int:
        """Most threads of a block."""
        return limits.MAX_BLOCK_THREADS if self.kernel else 0

    @property
    def shared_size_bytes(self) -> int:
        """0 for a source without ``__shared__`` arrays of constant size, else -1: their sizes are not kept."""
        fixed = re.search(r"(?<!extern )\b__shared__\b", blanked(self.code))
        return -1 if fixed and self.kernel else 0

    @property
    def const_size_bytes(self) -> int:
        """0: a processor keeps ``__constant__`` variables in ordinary memory."""
        return 0 if self.kernel else -1

    @property
    def local_size_bytes(self) -> int:
        """0: local variables that do not fit into registers lie on the thread's stack."""
        return 0 if self.kernel else -1

    @property
    def num_regs(self) -> int:
        """General registers of this machine's processor; a thread may use all of them."""
        return 31 if self.kernel and platform.machine() in ("aarch64", "arm64") else 16

    @property
    def ptx_version(self) -> int:
        """-1, "not existing": there is no PTX here."""
        return -1

    @property
    def binary_version(self) -> int:
        """-1, "not existing": the code is not of any GPU generation."""
        return -1

    @property
    def cache_mode_ca(self) -> int:
        """0: there is no such cache mode."""
        return 0 if self.kernel else -1

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Most dynamic shared memory of a block, in bytes. Can be set, up to 227 KiB as on Hopper."""
        return self._settable["max_dynamic_shared_size_bytes"] if self.kernel else -1

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if not 0 <= size <= limits.MAX_SHARED_BYTES:
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE", f"invalid argument: at most {limits.MAX_SHARED_BYTES} bytes")
        self._settable["max_dynamic_shared_size_bytes"] = operator.index(size)

    @property
    def preferred_shared_memory_carveout(self) -> int:
        """A hint without effect here; keeps what it is set to, -1 (no preference) at first."""
        return self._settable.get("preferred_shared_memory_carveout", -1)

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, fraction: int) -> None:
        self._settable["preferred_shared_memory_carveout"] = operator.index(fraction)


_ATTRIBUTES = (
    "max_threads_per_block",
    "shared_size_bytes",
    "const_size_bytes",
    "local_size_bytes",
    "num_regs",
    "ptx_version",
    "binary_version",
    "cache_mode_ca",
    "max_dynamic_shared_size_bytes",
    "preferred_shared_memory_carveout",
)


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


class RawModule:
    """CUDA C++ source with several kernels and global variables.

    Parameters
    ----------
    code
        The source. A compiled CUDA binary (``path``) is refused: it holds a GPU's code.
    path
        See ``code``.
    options, backend, translate_cucomplex, enable_cooperative_groups, jitify
        See :class:`RawKernel`.
    name_expressions
        C++ names of kernels ("f<int>", "ns::g"), each for :meth:`get_function`; needed for all without C linkage.
    """

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Any = None,
        jitify: bool | None = None,
    ) -> None:
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if name_expressions is not None:
            if code is None:
                raise ValueError("need CUDA C++ code for the requested kernels")
            if backend != "nvrtc":
                raise ValueError("only nvrtc supports retrieving the mangled names for the given name expressions")
            name_expressions = tuple(name_expressions)
        if jitify and (code is None or backend != "nvrtc"):
            raise ValueError("Jitify only supports NVRTC and does not support precompiled objects")
        _typed("options", options, tuple)
        self.code = code
        self.file_path = path
        self.options = options if code is not None else ()
        self.backend = backend if code is not None else "nvcc"
        self.enable_cooperative_groups = enable_cooperative_groups
        self.name_expressions = name_expressions
        self._source = RawSource(
            code or "", self.options, self.backend, translate_cucomplex, enable_cooperative_groups, name_expressions
        )

    @property
    def module(self) -> LoadedSource:
        """The compiled module."""
        return self._loaded()

    def _loaded(self, log_stream: TextIO | None = None) -> LoadedSource:
        if self.file_path is not None:
            raise _binary_error(self.file_path)
        return self._source.load(log_stream)

    def compile(self, log_stream: TextIO | None = None) -> None:
        """Compile now. What the compiler prints, if it has to run, goes to ``log_stream``."""
        self._loaded(log_stream)

    def get_function(self, name: str) -> RawKernel:
        """Return the kernel ``name``: with C linkage, or one of the ``name_expressions``.

        Raises
        ------
        CUDADriverError
            CUDA_ERROR_NOT_FOUND if there is no such kernel.
        """
        self._loaded()
        kernel = RawKernel._of_module(self._source, name)
        kernel._entry = kernel.kernel
        return kernel

    def get_global(self, name: str) -> GlobalVariable:
        """Return the global variable ``name`` (of ``__constant__`` or ``__device__`` memory), shaped like a
        ``cupy.cuda.MemoryPointer``.

        Raises
        ------
        CUDADriverError
            CUDA_ERROR_NOT_FOUND if there is no such variable.
        """
        return self._loaded().variable(name)


def _binary_error(path: str) -> Exception:
    try:
        with open(path, "rb"):
            pass
    except OSError:
        return CUDADriverError("CUDA_ERROR_FILE_NOT_FOUND", f"file not found: {path}")
    return CUDADriverError(
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        f"{path} holds code for a GPU, which the CPU device cannot run: give the CUDA C++ source as code=...",
    )
