"""``RawModule``: CUDA C++ source with several kernels and global variables.

Sources:
    constructor and method signatures are those of CuPy 14.2
    (https://docs.cupy.dev/en/stable/user_guide/kernel.html#raw-modules).
"""

from __future__ import annotations

from typing import Any, TextIO

from gpu_backend.devices.cpu.cuda_memory import MemoryPointer
from gpu_backend.devices.cpu.kernels.errors import CUDADriverError
from gpu_backend.devices.cpu.kernels.raw import RawKernel, check_type
from gpu_backend.devices.cpu.kernels.raw_source import LoadedSource, RawSource
from gpu_backend.devices.own_file import OwnFile


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
        if path is not None and not isinstance(path, OwnFile):
            raise ValueError("path is a file of the notebook's machine; its contents go to the device, not its name.")
        if name_expressions is not None:
            if code is None:
                raise ValueError("need CUDA C++ code for the requested kernels")
            if backend != "nvrtc":
                raise ValueError("only nvrtc supports retrieving the mangled names for the given name expressions")
            name_expressions = tuple(name_expressions)
        if jitify and (code is None or backend != "nvrtc"):
            raise ValueError("Jitify only supports NVRTC and does not support precompiled objects")
        check_type("options", options, tuple)
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
        kernel = RawKernel.of_module(self._source, name)
        kernel.compile()
        return kernel

    def get_global(self, name: str) -> MemoryPointer:
        """Return the memory of the global variable ``name``, a ``__constant__`` or ``__device__`` one.

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
