"""CuPy's compilers, with the checks of every notebook's sources and options put before them.

All that CuPy compiles at run time, a program's kernels and its own, comes through ``_NVRTCProgram`` or, for kernels
written in Python that use Thrust, through ``compile_using_nvcc`` (cupy/cuda/compiler.py of CuPy 14.2). So the checks
stand there, and not at each of the classes that a program may use.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import cupy
from cupy.cuda import compiler
from cupy.fft import _config as fft_config

from gpu_backend.devices.compiling.options import RefusedOptionError, UnknownOptionError, checked_options
from gpu_backend.devices.compiling.sources import RefusedSourceError, check_source
from gpu_backend.devices.own_file import OwnFile

_REFUSED = (RefusedOptionError, UnknownOptionError, RefusedSourceError)
_NO_NVCC = (
    "backend='nvcc' runs compilers and linkers of the machine that computes, with options of their own, and is not "
    "served. Leave it out: NVRTC compiles the kernel."
)
_NO_LEGACY = (
    "cuFFT's legacy callbacks are compiled and linked by nvcc on the machine that computes, and are not served. "
    "Use cb_ver='jit'."
)


def install() -> None:
    """Put the checks before CuPy's compilers, once in a process."""
    program = compiler._NVRTCProgram
    if getattr(program, "is_checked", False):
        return
    program.is_checked = True
    program.__init__ = _source_checked(program.__init__)
    program.compile = _options_checked(program.compile)
    compiler._jitify_prep = _before_jitify(compiler._jitify_prep)
    compiler.compile_using_nvcc = _before_nvcc(compiler.compile_using_nvcc)
    fft_config._FFTConfig.set_cufft_callbacks = staticmethod(_checked_callbacks)


def checked_names() -> dict[str, Any]:
    """Return what stands here for the classes of raw kernels, by public name: they refuse what they cannot serve."""
    return {"cupy.RawKernel": _raw_kernel, "cupy.RawModule": _raw_module}


def _raw_kernel(code: str, name: str, options: Any = (), backend: str = "nvrtc", *args: Any, **others: Any) -> Any:
    _require_nvrtc(backend)
    return cupy.RawKernel(code, name, options, backend, *args, **others)


def _raw_module(*, path: str | None = None, backend: str = "nvrtc", **others: Any) -> Any:
    _require_nvrtc(backend)
    if path is not None and not isinstance(path, OwnFile):
        raise ValueError("path is a file of the notebook's machine; its contents go to the GPU, not its name.")
    return cupy.RawModule(path=None if path is None else str(path), backend=backend, **others)


def _require_nvrtc(backend: object) -> None:
    if backend == "nvcc":
        raise ValueError(_NO_NVCC)


@cache
def _folders() -> frozenset[str]:
    """Return the folders of headers that CuPy itself passes."""
    options = cupy._core.core.assemble_cupy_compiler_options(())
    return frozenset(os.path.realpath(option[2:]) for option in options if option.startswith("-I"))


def _is_served_folder(folder: str) -> bool:
    return os.path.realpath(folder) in _folders()


def _check(source: str, options: tuple[str, ...], name: str, expressions: Any = ()) -> None:
    """Check what a compiler is to be given; refusals are CuPy's own exception, as those of the compiler are."""
    try:
        check_source(source)
        for expression in expressions or ():
            check_expression(expression)
        list(checked_options(options, _is_served_folder))
    except _REFUSED as error:
        raise compiler.CompileException(f"{name}: {error}", source, name, options) from None


def check_expression(expression: str) -> None:
    """Refuse a name expression that is more than one: NVRTC pastes it into the source."""
    if "\n" in expression or "\r" in expression:
        raise RefusedSourceError(f"error: the name expression {expression!r} holds more than one line")
    check_source(expression)


def _source_checked(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def checked(
        self: Any, src: str | bytes, name: str = "default_program", headers: Any = (), include_names: Any = (),
        name_expressions: Any = None, method: str = "ptx",
    ) -> None:  # fmt: skip
        self.ptr = None  # its end looks at that, even if it never began
        text = src.decode() if isinstance(src, bytes) else src
        _check(text, (), os.path.basename(str(name)) or "kernel.cu", name_expressions)
        init(self, src, name, headers, include_names, name_expressions, method)

    return checked


def _options_checked(compile_: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(compile_)
    def checked(self: Any, options: tuple[str, ...] = (), log_stream: Any = None) -> Any:
        _check("", tuple(options), os.path.basename(str(self.name)) or "kernel.cu")
        return compile_(self, options, log_stream)

    return checked


def _before_jitify(prepare: Callable[..., Any]) -> Callable[..., Any]:
    """Return Jitify's first pass, which opens headers itself, with the checks before it."""

    @wraps(prepare)
    def checked(source: str, options: tuple[str, ...], cu_path: str) -> Any:
        _check(source, options, os.path.basename(cu_path) or "kernel.cu")
        return prepare(source, options, cu_path)

    return checked


def _before_nvcc(compile_: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(compile_)
    def checked(source: str, options: tuple[str, ...] = (), *args: Any, **kwargs: Any) -> Any:
        # CuPy's own words to nvcc come last, when it asks for its version.
        said = options[:-2] if options[-2:] == ("-o", "preprocess.ptx") else options
        _check(source, said, "kernel.cu")
        return compile_(source, options, *args, **kwargs)

    return checked


_set_callbacks = fft_config.set_cufft_callbacks


def _checked_callbacks(cb_load: Any = None, cb_store: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return CuPy's context of callbacks; those that CuPy compiles by NVRTC are checked there."""
    if kwargs.get("cb_ver", "legacy") != "jit":
        raise ValueError(_NO_LEGACY)
    return _set_callbacks(cb_load, cb_store, *args, **kwargs)
