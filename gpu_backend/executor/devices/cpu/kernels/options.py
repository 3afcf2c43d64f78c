"""Reads the options that a program gives for NVRTC or nvcc, and says what this machine's compiler is to be told.

Options that steer a GPU's code (its architecture, registers, fused arithmetic, ...) have no meaning here and are
dropped; what NVRTC does not know is refused, as NVRTC refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Taken over as they are, with or without a space before their value.
_TAKEN = {
    "-D": "-D",
    "--define-macro": "-D",
    "-U": "-U",
    "--undefine-macro": "-U",
    "-I": "-I",
    "--include-path": "-I",
    "-include": "-include",
    "--pre-include": "-include",
}

#: Dropped with the value that follows them if it is not part of the same word.
_DROPPED_WITH_VALUE = {
    "-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code", "-maxrregcount",
    "--maxrregcount", "-Xptxas", "--ptxas-options", "-Xcompiler", "--compiler-options", "-fmad", "--fmad", "-ftz",
    "--ftz", "-prec-div", "--prec-div", "-prec-sqrt", "--prec-sqrt", "-diag-suppress", "--diag-suppress",
    "-diag-error", "--diag-error", "-diag-warn", "--diag-warn", "--split-compile", "-split-compile",
    "-jump-table-density", "--jump-table-density", "-jtd", "--Ofast-compile", "-Ofc", "--modify-stack-limit",
    "-modify-stack-limit", "--device-stack-protector", "-device-stack-protector", "--frandom-seed", "-frandom-seed",
    "--optimization-info", "-opt-info", "--brief-diagnostics", "-brief-diag", "--pch-dir", "-pch-dir",
    "--pch-verbose", "-pch-verbose", "--pch-messages", "-pch-messages",
}  # fmt: skip

#: Dropped alone.
_DROPPED = {
    "-use_fast_math", "--use_fast_math", "-dc", "-rdc", "-dw", "-G", "--device-debug", "-lineinfo",
    "--generate-line-info", "-g", "-w", "--disable-warnings", "-dopt", "--dopt", "-dlto", "--dlink-time-opt",
    "-restrict", "--restrict", "-ewp", "--extra-device-vectorization", "-builtin-move-forward",
    "--builtin-move-forward", "-builtin-initializer-list", "--builtin-initializer-list", "-default-device",
    "--device-as-default-execution-space", "-device-int128", "--device-int128", "-no-source-include",
    "--no-source-include", "-err-no", "--display-error-number", "-minimal", "--minimal", "-extensible-whole-program",
    "--extensible-whole-program", "-m64", "--expt-relaxed-constexpr", "-expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "--extended-lambda", "-extended-lambda", "-time", "--time", "-pch", "--pch", "--device-c", "--device-w",
    "-extra-device-vectorization", "--gen-opt-lto", "-gen-opt-lto", "--no-cache", "-no-cache", "--device-float128",
    "-device-float128", "--no-display-error-number", "-no-err-no", "--fdevice-time-trace", "-fdevice-time-trace",
}  # fmt: skip

_VALUED_WORD = re.compile(r"^(-{1,2}[\w-]+)=(.*)$", re.DOTALL)
_STANDARD = re.compile(r"^-{1,2}std=(?:c|gnu)\+\+(\w+)$")


class UnknownOptionError(ValueError):
    """An option that NVRTC would not know either."""


def translate_options(options: Iterable[str]) -> tuple[str, ...]:
    """Return the flags of a system compiler for CUDA compile ``options``.

    Raises
    ------
    UnknownOptionError
        If NVRTC and nvcc have no such option. Nothing but the options named in this module ever reaches the compiler.
    """
    flags: list[str] = []
    standard = "17"
    words = list(options)
    position = 0
    while position < len(words):
        word = words[position].strip()
        position += 1
        if match := _STANDARD.match(word):
            standard = match[1]
        elif not word or word in _DROPPED or re.match(r"^-(O\d|-?relocatable-device-code)", word):
            continue
        elif word in _DROPPED_WITH_VALUE:
            position += 1
        elif word in _TAKEN and position < len(words):
            flags += [_TAKEN[word], words[position]]
            position += 1
        else:
            flags += _one_word(word)
    # Code for C++11 and 14 compiles as C++17, which the shim is written in.
    return ("-std=c++" + (standard if standard in ("20", "2a", "23", "2b") else "17"), *flags)


def _one_word(word: str) -> list[str]:
    if (match := _VALUED_WORD.match(word)) and match[1] in _TAKEN and match[1].startswith("--"):
        return [_TAKEN[match[1]], match[2]]
    if match and (match[1] in _DROPPED_WITH_VALUE or match[1] in _DROPPED):
        return []
    if word[:2] in ("-D", "-U", "-I") and len(word) > 2:
        return [word[:2], word[2:].strip()]
    raise UnknownOptionError(f"nvrtc: error: unrecognized option '{word}' found")
