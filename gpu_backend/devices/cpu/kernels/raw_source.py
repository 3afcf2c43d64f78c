"""From the source of a raw kernel to loaded kernels: which names are compiled, and what a look-up finds."""

from __future__ import annotations

import ctypes
import functools
import re
from dataclasses import dataclass
from typing import TextIO

from gpu_backend.devices.compiling.options import RefusedOptionError, UnknownOptionError
from gpu_backend.devices.cpu.cuda_memory import MemoryPointer, memory_of_global
from gpu_backend.devices.cpu.kernels.errors import CompileException, CUDADriverError
from gpu_backend.devices.cpu.kernels.launch import KernelEntry
from gpu_backend.devices.cpu.kernels.module import Module, TranslationUnit, build
from gpu_backend.devices.cpu.kernels.options import translate_options
from gpu_backend.devices.cpu.kernels.source import blanked, find_kernels, translate

FILE_NAME = "kernel.cu"


class _Symbol(ctypes.Structure):
    """Elf64_Sym, whose size field is all that is read."""

    _fields_ = (
        ("name", ctypes.c_uint32),
        ("info", ctypes.c_uint8),
        ("other", ctypes.c_uint8),
        ("section", ctypes.c_uint16),
        ("value", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
    )


class _SymbolInfo(ctypes.Structure):
    _fields_ = (
        ("file_name", ctypes.c_char_p),
        ("file_base", ctypes.c_void_p),
        ("symbol_name", ctypes.c_char_p),
        ("symbol_address", ctypes.c_void_p),
    )


def symbol_size(address: int) -> int:
    """Return the bytes of the dynamic symbol at ``address``, or 0 where the system's loader cannot tell."""
    info = _SymbolInfo()
    symbol = ctypes.POINTER(_Symbol)()
    try:
        find = ctypes.CDLL(None).dladdr1
    except AttributeError:  # a C library other than glibc
        return 0
    by_symbol = 1
    found = find(ctypes.c_void_p(address), ctypes.byref(info), ctypes.byref(symbol), ctypes.c_int(by_symbol))
    return int(symbol.contents.size) if found and info.symbol_address == address else 0


@dataclass
class LoadedSource:
    """A compiled source: look-ups by name.

    ``mapping`` gives the name expressions' own names, as CuPy's module does.
    """

    source: RawSource
    module: Module

    @property
    def mapping(self) -> dict[str, str]:
        """Name expressions and the names they were compiled under."""
        return {name: name for name in self.source.name_expressions or ()}

    def kernel(self, name: str) -> KernelEntry:
        """Return the kernel ``name``, or raise CUDA_ERROR_NOT_FOUND."""
        if found := self.module.kernels.get(name):
            return found
        if found := self.source.hidden_kernel(name):
            return found
        raise CUDADriverError("CUDA_ERROR_NOT_FOUND", f"named symbol not found: '{name}'")

    def variable(self, name: str) -> MemoryPointer:
        """Return the memory of the global variable ``name``, or raise CUDA_ERROR_NOT_FOUND."""
        address = self.module.global_address(name)
        if address is None:
            raise CUDADriverError("CUDA_ERROR_NOT_FOUND", f"named symbol not found: '{name}'")
        return MemoryPointer(memory_of_global(address, symbol_size(address), self.module), 0)


@dataclass(frozen=True)
class RawSource:
    """Source and options of a raw kernel or module; equal ones share one loaded module, as in CuPy."""

    code: str
    options: tuple[str, ...]
    backend: str
    translate_cucomplex: bool
    cooperative: bool
    name_expressions: tuple[str, ...] | None

    def load(self, log_stream: TextIO | None = None) -> LoadedSource:
        """Return the loaded module, compiled if need be.

        Raises
        ------
        CompileException
            If the compiler refuses the source or an option.
        """
        return _load(self) if log_stream is None else self._load(log_stream)

    def _load(self, log_stream: TextIO | None) -> LoadedSource:
        kernels = [k.qualified for k in find_kernels(self.code).values() if k.linkage == "C"]
        entries = {name.rpartition("::")[2]: name for name in kernels}
        entries.update({name: name for name in self.name_expressions or ()})
        try:
            module = build(self._unit(entries), log_stream, self.code)
        except CompileException as error:
            dropped = _undeclared(str(error)) - set(self.name_expressions or ())
            if not dropped & entries.keys():
                raise
            # A kernel in a branch that the preprocessor drops is not there to be named.
            kept = {name: expression for name, expression in entries.items() if name not in dropped}
            module = build(self._unit(kept), log_stream, self.code)
        return LoadedSource(self, module)

    def hidden_kernel(self, name: str) -> KernelEntry | None:
        """Return a kernel that macros or included files define, or None if they do not."""
        if name in find_kernels(self.code) or not re.fullmatch(r"[A-Za-z_]\w*", name):
            return None
        if not re.search(r"#\s*(?:define|include|if)", self.code) and "__global__" in blanked(self.code):
            return None
        try:
            return build(self._unit({name: name}), None, self.code).kernels.get(name)
        except CompileException:
            return None

    def _unit(self, entries: dict[str, str]) -> TranslationUnit:
        try:
            flags = translate_options(self.options)
        except (UnknownOptionError, RefusedOptionError) as error:
            raise CompileException(str(error), self.code, FILE_NAME, self.options, self.backend) from None
        if self.translate_cucomplex:
            flags += ("-DGPU_TRANSLATE_CUCOMPLEX",)
        if self.cooperative:
            flags += ("-DGPU_COOPERATIVE",)
        # As with NVRTC, kernels may launch kernels only in code that is to be linked.
        launches = "<<<" in self.code and bool({"-dc", "-rdc=true", "--relocatable-device-code=true"} & {*self.options})
        if launches:
            flags += ("-DGPU_DYNAMIC",)
        pairs = tuple((expression, name) for name, expression in entries.items())
        return TranslationUnit("kernel.h", translate(self.code, launches=launches), pairs, flags, FILE_NAME)


def _undeclared(message: str) -> set[str]:
    """Return the names that the table of kernels uses and the source turns out not to declare."""
    lines = [line for line in message.splitlines() if line.startswith("name expressions:") and "error" in line]
    pattern = r"error: (?:use of undeclared identifier )?'(?:\w+::)*(\w+)'"
    return {match[1] for line in lines if (match := re.search(pattern, line))}


@functools.cache
def _load(source: RawSource) -> LoadedSource:
    return source._load(None)
