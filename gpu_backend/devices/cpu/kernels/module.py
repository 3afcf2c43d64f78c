"""Compiles CUDA C++ for this machine and loads the result."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from gpu_backend.devices.compiling.sources import RefusedSourceError, check_source
from gpu_backend.devices.cpu.kernels import toolchain
from gpu_backend.devices.cpu.kernels.cache import KernelCache, default_directory
from gpu_backend.devices.cpu.kernels.errors import CompileException
from gpu_backend.devices.cpu.kernels.launch import Entry, KernelEntry

_cache: KernelCache | None = None


def set_cache_directory(directory: str | os.PathLike[str]) -> None:
    """Keep compiled kernels in ``directory`` from now on; see :class:`~.cache.KernelCache`."""
    global _cache
    _cache = KernelCache(Path(directory))


def kernel_cache() -> KernelCache:
    """Return the cache in use, at first that of :func:`~.cache.default_directory`."""
    global _cache
    if _cache is None:
        _cache = KernelCache(default_directory())
    return _cache


@dataclass(frozen=True)
class TranslationUnit:
    """All that the code of a module depends on, but for the compiler.

    ``header`` is the header of the shim that ``source`` builds on, ``entries`` are the kernels as C++ names them, each
    with the name under which it is looked up, and ``flags`` come from :func:`~.options.translate_options`.
    """

    header: str
    source: str
    entries: tuple[tuple[str, str], ...]
    flags: tuple[str, ...]
    file_name: str

    def text(self) -> str:
        """Return the whole C++ text."""
        rows = "".join(f"    gpu::entry<{expression}>({_c_string(name)}),\n" for expression, name in self.entries)
        return (
            f'#include "gpu/{self.header}"\n'
            f'#line 1 "{self.file_name}"\n{self.source}\n'
            f'#line 1 "name expressions"\n'
            f"static const gpu::Entry gpu_entries[] = {{\n{rows}    {{nullptr, nullptr, 0, nullptr}}\n}};\n"
            f'extern "C" __attribute__((visibility("default")))\n'
            f"const gpu::Entry *gpu_entry(int index) {{ return &gpu_entries[index]; }}\n"
        )

    def digest(self, compiler: toolchain.Compiler) -> str:
        """Return the name of this unit's code in the cache."""
        parts = (self.text(), *self.flags, compiler.identity, toolchain.shim_digest())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def _c_string(text: str) -> str:
    return '"' + "".join(c if c.isalnum() or c in " _<>:,*&()" else f"\\{ord(c):03o}" for c in text) + '"'


class Module:
    """A loaded shared object: its kernels and its global variables."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        find = self._library.gpu_entry
        find.restype = ctypes.POINTER(Entry)
        self.kernels: dict[str, KernelEntry] = {}
        index = 0
        while (entry := find(index).contents).name:
            kernel = KernelEntry(entry, self._library)
            self.kernels[kernel.name] = kernel
            index += 1

    def global_address(self, name: str) -> int | None:
        """Return the address of the global variable ``name``, or None if there is none."""
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(self._library, name))
        except ValueError:
            return None


def build(unit: TranslationUnit, log_stream: TextIO | None = None, original: str | None = None) -> Module:
    """Return the module of ``unit``, compiled unless it is in the cache.

    Parameters
    ----------
    unit
        What to compile.
    log_stream
        Takes what the compiler prints; the compiler runs for it even if the module is in the cache.
    original
        The source to keep in an exception, when ``unit`` holds a translation of it.

    Raises
    ------
    CompileException
        If the compiler refuses the source; its message is the compiler's.
    NoCompilerError
        If this machine has no compiler.
    """
    compiler = toolchain.find_compiler()
    cache = kernel_cache()
    digest = unit.digest(compiler)
    if log_stream is not None and cache.path(digest).exists():
        with tempfile.TemporaryDirectory(prefix="gpu-kernel-") as directory:
            log_stream.write(_compile(compiler, unit, Path(directory, "again.so"), original or unit.source))
        log_stream = None

    def compile_to(path: Path) -> None:
        log = _compile(compiler, unit, path, original or unit.source)
        if log_stream is not None:
            log_stream.write(log)

    try:
        return _load(cache.get(digest, compile_to))
    except OSError:
        # The file is not what was written: a full disk or a crash long ago. Once more, from the source.
        cache.discard(digest)
        return _load(cache.get(digest, compile_to))


@functools.cache
def _load(path: Path) -> Module:
    return Module(path)


def _compile(compiler: toolchain.Compiler, unit: TranslationUnit, target: Path, original: str) -> str:
    try:
        check_source(unit.text())
    except RefusedSourceError as error:
        raise CompileException(f"{unit.file_name}: {error}", original, unit.file_name, unit.flags) from None
    with tempfile.TemporaryDirectory(prefix="gpu-kernel-") as directory:
        source = Path(directory, "kernel.cpp")
        source.write_text(unit.text(), encoding="utf-8")
        command = [*compiler.command, *toolchain.SEMANTICS, *compiler.flags, *toolchain.WARNINGS]
        if compiler.family == "zig" and not _wants_cxx_library(unit.source):
            command += ["-nostdinc++", "-nostdlib++"]
        command += ["-s", "-I", str(toolchain.SHIM), *unit.flags, "-o", str(target), str(source), "-lm", "-lpthread"]
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", cwd=directory, env=environment,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    log = done.stdout + done.stderr
    if done.returncode != 0:
        raise CompileException(_explained(log, unit), original, unit.file_name, unit.flags, compiler.family)
    return log


def _wants_cxx_library(source: str) -> bool:
    return re.search(r"#\s*include\s*<(?!cmath|cassert|cstdio)[\w/]+>", source) is not None


def _explained(log: str, unit: TranslationUnit) -> str:
    """Return the compiler's text with what only we know: NVRTC's own words for it, or why it cannot work here."""
    log = re.sub(r"fatal error: '?([^':\n]+)'?:? (?:No such file or directory|file not found)",
                 r'catastrophic error: cannot open source file "\1"', log)  # fmt: skip
    before, _, _ = log.partition("name expressions:")
    if "error:" in before:  # the table of kernels fails only because the source does
        log = before
    if re.search(r"\basm\b[\s\w]*\(", unit.source):
        log += "\nnote: this kernel contains inline PTX (asm), which the CPU device cannot run."
    return log
