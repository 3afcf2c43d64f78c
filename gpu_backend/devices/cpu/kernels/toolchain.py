"""Finds the machine's C++ compiler and says how it must be called.

The system's g++ or clang++ is taken if there is one, else the ``ziglang`` wheel, which is a whole clang. A name in the
environment variable ``CXX`` goes before all. Nothing is looked for before the first kernel is compiled.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gpu_backend.devices.cpu.kernels.errors import NoCompilerError

#: The C++ side of this package.
SHIM = Path(__file__).parent / "shim"

#: Integers wrap and pointers may be punned, as on the GPU; nothing that changes a floating-point result is allowed.
SEMANTICS = (
    "-O3",
    "-fPIC",
    "-shared",
    "-Wl,-Bsymbolic",  # a kernel's `index` or `time` is its own, not that of C's library
    "-fwrapv",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-semantic-interposition",
    "-fvisibility-inlines-hidden",
)

#: Warnings go to the log that ``compile(log_stream=...)`` shows; these are about the shim's way, not about the kernel.
WARNINGS = (
    "-Wall",
    "-Wno-unknown-pragmas",
    "-Wno-unused-function",
    "-Wno-sign-compare",
    "-Wno-strict-aliasing",
)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler."""

    command: tuple[str, ...]  #: how to start it
    family: str  #: "gcc", "clang" or "zig"
    version: str  #: what ``--version`` says first; a part of every cache key
    flags: tuple[str, ...]  #: what it needs beyond ``SEMANTICS``

    @property
    def identity(self) -> str:
        """What of the compiler and of this processor the code that it makes depends on."""
        return "\0".join((self.version, *self.flags, *SEMANTICS, processor()))


@functools.cache
def processor() -> str:
    """Return a text that is the same only on processors that run the same native code."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return platform.machine() + platform.processor()
    features = sorted({line for line in text.splitlines() if line.split(":")[0].strip() in ("flags", "Features")})
    return platform.machine() + hashlib.sha256("\n".join(features).encode()).hexdigest()


@functools.cache
def find_compiler() -> Compiler:
    """Return the compiler of this machine.

    Raises
    ------
    NoCompilerError
        If there is none; its message says what to install.
    """
    named = shlex.split(os.environ.get("CXX", ""))
    for command in ([named] if named else []) + [["g++"], ["clang++"], ["c++"]]:
        path = shutil.which(command[0])
        if path and (compiler := _examined((path, *command[1:]))):
            return compiler
    if importlib.util.find_spec("ziglang") and (compiler := _examined((sys.executable, "-m", "ziglang", "c++"))):
        return compiler
    raise NoCompilerError


def _examined(command: tuple[str, ...]) -> Compiler | None:
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    version = done.stdout.splitlines()[0] if done.stdout else ""
    native = "-mcpu=native" if platform.machine() in ("aarch64", "arm64") else "-march=native"
    if "ziglang" in command:
        # Without libc++, whose build would take two minutes at the very first kernel; the shim needs no C++ library.
        # By zig's defaults undefined behaviour traps and assertions are off, neither of which is a GPU's way.
        return Compiler(command, "zig", version, ("-mcpu=native", "-fno-sanitize=undefined", "-UNDEBUG"))
    if "clang" in version.lower():
        return Compiler(command, "clang", version, (native,))
    return Compiler(command, "gcc", version, (native, "-fno-gnu-unique", *_x86_flags(version)))


def _x86_flags(version: str) -> tuple[str, ...]:
    if platform.machine() not in ("x86_64", "AMD64"):
        return ()
    # Landing pads for indirect branches are of no use to code that lives for one process.
    flags: tuple[str, ...] = ("-fcf-protection=none",)
    number = re.search(r"(\d+)\.(\d+)\.\d+\s*$", version)
    if number and int(number[1]) == 12 and int(number[2]) < 3:
        # GCC 12.0 to 12.2 fuse pairs like (a + b*c, a - b*c) in spite of -ffp-contract=off (its bug 107647): complex
        # quotients then differ from NumPy's in the last bit. Without such instructions they cannot.
        flags += ("-mno-fma", "-mno-avx512f")
    return flags


@functools.cache
def shim_digest() -> str:
    """Return a digest of every file of the shim: kernels are compiled anew when it changes."""
    digest = hashlib.sha256()
    for path in sorted(SHIM.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(SHIM)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
