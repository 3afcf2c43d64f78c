"""Reads the options that a program gives for NVRTC or nvcc, and says what this machine's compiler is to be told.

Options that steer a GPU's code (its architecture, registers, fused arithmetic, ...) have no meaning here and are
dropped; what no notebook may give is refused on every device alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpu_backend.devices.compiling.options import checked_options

_TAKEN = {"define-macro": "-D", "undefine-macro": "-U"}


def translate_options(options: Iterable[str]) -> tuple[str, ...]:
    """Return the flags of a system compiler for CUDA compile ``options``.

    Raises
    ------
    UnknownOptionError, RefusedOptionError
        If NVRTC and nvcc have no such option, or no notebook may give it. Nothing but macros and the version of C++
        ever reaches the compiler.
    """
    flags: list[str] = []
    standard = "17"
    for name, value in checked_options(options, _no_folder):
        if name == "std":
            standard = (value or "").rpartition("+")[2]
        elif name in _TAKEN:
            flags += [_TAKEN[name], value or ""]
    # Code for C++11 and 14 compiles as C++17, which the shim is written in.
    return ("-std=c++" + (standard if standard in ("20", "2a", "23", "2b") else "17"), *flags)


def _no_folder(folder: str) -> bool:
    """Return False: the headers of this device are found without being told where."""
    return False
