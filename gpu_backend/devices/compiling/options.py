"""Which options a notebook may give to the compiler of its kernels: a list of those that only steer the code.

What names a file or a folder, writes one, or hands options on to a tool that could, is refused with the reason; what
is on no list at all is refused as NVRTC refuses what it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

_NUMBER, _SWITCH = r"\d{1,9}", r"true|false"
_ARCHITECTURE = (
    r"(?:arch=)?(?:compute|sm|lto)_\d{1,3}[af]?(?:,code=\[?(?:(?:compute|sm|lto)_\d{1,3}[af]?,?)+\]?)?|native"
)
_ASSEMBLER = (
    r"-{1,2}(?:v|w|verbose|warn-[\w-]+|O\d|opt-level[= ]\d|d[ls]cm=\w+|fmad[= ](?:true|false)|maxrregcount[= ]\d+)"
)

#: Options with a value, which may follow after "=" or as the next option, and what the value may be.
_VALUED: dict[str, str] = {
    **dict.fromkeys(("std",), r"(?:c|gnu)\+\+\w{2}"),
    **dict.fromkeys(("arch", "gpu-architecture", "gpu-code", "code", "gencode", "generate-code"), _ARCHITECTURE),
    **dict.fromkeys(("maxrregcount", "split-compile", "jump-table-density", "jtd", "frandom-seed"), _NUMBER),
    **dict.fromkeys(("fmad", "ftz", "prec-div", "prec-sqrt", "modify-stack-limit", "brief-diagnostics", "brief-diag",
                     "builtin-move-forward", "builtin-initializer-list", "device-stack-protector", "use_fast_math",
                     "relocatable-device-code", "rdc"), _SWITCH),
    **dict.fromkeys(("diag-suppress", "diag-error", "diag-warn"), r"\d+(?:,\d+)*"),
    **dict.fromkeys(("Ofast-compile", "Ofc"), r"0|min|mid|max"),
    **dict.fromkeys(("optimization-info", "opt-info"), r"inline"),
    **dict.fromkeys(("ptxas-options", "Xptxas"), rf"{_ASSEMBLER}(?:[, ]{_ASSEMBLER})*"),
}  # fmt: skip

#: Options without one.
_PLAIN = frozenset({
    "use_fast_math", "dc", "rdc", "dw", "G", "device-debug", "lineinfo", "generate-line-info", "g", "w",
    "disable-warnings", "dopt", "dlto", "dlink-time-opt", "restrict", "ewp", "extra-device-vectorization",
    "builtin-move-forward", "builtin-initializer-list", "default-device", "device-as-default-execution-space",
    "device-int128", "device-float128", "no-source-include", "err-no", "no-err-no", "display-error-number",
    "no-display-error-number", "minimal", "extensible-whole-program", "m64", "expt-relaxed-constexpr",
    "expt-extended-lambda", "extended-lambda", "device-c", "device-w", "gen-opt-lto", "no-cache",
    "O0", "O1", "O2", "O3", "relocatable-device-code",
})  # fmt: skip

#: Options that NVRTC or nvcc has and no notebook may give: with or without a value, in either spelling.
_REFUSED = frozenset({
    "include", "pre-include", "o", "output-file", "odir", "output-directory", "keep", "keep-dir", "save-temps", "time",
    "fdevice-time-trace", "pch", "create-pch", "use-pch", "pch-dir", "pch-verbose", "pch-messages", "optf",
    "options-file", "Xcompiler", "compiler-options", "Xlinker", "linker-options", "Xnvlink", "nvlink-options",
    "Xarchive", "ccbin", "compiler-bindir", "isystem", "system-include", "L", "library-path", "l", "library",
    "use-local-env", "run", "dryrun", "ldir", "libdevice-directory", "dump-callgraph", "objdir-as-tempdir",
    "input-drive-prefix", "archive-options", "x",
})  # fmt: skip

#: Folders with CUDA's or CuPy's headers, wherever they are: a program may name the one that it knows.
_OF_CUDA = re.compile(r"(?:^|/)(?:cuda[^/]*|cupy/_core|nvidia/\w+)/(?:targets/[\w-]+/)?include(?:/cccl)?/?$")
_MACRO = re.compile(r"[A-Za-z_]\w*(?:\([\w, .]*\))?(?:=(?P<value>.*))?")
_NAME = re.compile(r"[A-Za-z_]\w*")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
#: The one header that CuPy's Jitify puts before sources, which comes with it and is no file.
_OF_JITIFY = (("include", "jitify_preinclude.h"), ("pre-include", "jitify_preinclude.h"))


class UnknownOptionError(ValueError):
    """An option that NVRTC would not know either."""


class RefusedOptionError(ValueError):
    """An option that names files or folders of the machine that compiles, or hands on what could."""


class Option(NamedTuple):
    """An option that was let pass: its name without dashes, and its value, None if it has none."""

    name: str
    value: str | None


def checked_options(options: Iterable[str], is_served_folder: Callable[[str], bool]) -> Iterator[Option]:
    """Yield what ``options`` say, each looked up in the list.

    Parameters
    ----------
    options
        As a program gives them: "-DN=4", "--define-macro=N=4", or "-D" and then "N=4".
    is_served_folder
        Whether headers may be looked for in a folder, beside those that by their name are CUDA's or CuPy's.

    Raises
    ------
    RefusedOptionError, UnknownOptionError
        At the first that no notebook may give, or that is none.
    """
    words = iter([*options])
    for word in words:
        text = word.strip()
        if not text:
            continue
        if _UNPRINTABLE.search(text):
            raise RefusedOptionError(f"error: the option {word!r} holds characters that no option has")
        name, value = _parted(text)
        if value is None and (name in _SHORT.values() or name in _VALUED) and name not in _PLAIN:
            value = next(words, "").strip()
        yield _checked(text, name, value, is_served_folder)


#: Options whose value may follow without anything between.
_SHORT = {"-D": "define-macro", "-U": "undefine-macro", "-I": "include-path"}


def _parted(text: str) -> tuple[str, str | None]:
    if text[:2] in _SHORT:
        return _SHORT[text[:2]], text[2:].strip() or None
    if not text.startswith("-"):
        return text, None
    name, found, value = re.sub("^--?", "", text).partition("=")
    if not found and " " in name:  # "--define-macro N", as one word
        name, found, value = name.partition(" ")
    return name.strip(), value.strip() if found else None


def _checked(text: str, name: str, value: str | None, is_served_folder: Callable[[str], bool]) -> Option:
    if name == "include-path":
        if not value or ".." in value or not (_OF_CUDA.search(value) or is_served_folder(value)):
            raise RefusedOptionError(
                f"error: the option '{text}' names a folder; kernels of this pool include headers of CUDA, CuPy and "
                "C++, which are found without it. Put the text of a header of your own into the source."
            )
    elif name in _SHORT.values():
        _check_macro(text, name, value or "")
    elif _is_listed(text, name, value) or (name, value) in _OF_JITIFY:
        pass
    elif name in _REFUSED or text[:2] in ("-o", "-l", "-L", "-x"):
        raise RefusedOptionError(
            f"error: the option '{text}' is about files, folders or other tools of the machine that compiles, "
            "which no kernel of this pool may name; leave it out."
        )
    else:
        raise UnknownOptionError(f"nvrtc: error: unrecognized option '{text}' found")
    return Option(name, value)


def _is_listed(text: str, name: str, value: str | None) -> bool:
    if value is None:
        return text.startswith("-") and name in _PLAIN
    return name in _VALUED and re.fullmatch(_VALUED[name], value) is not None


def _check_macro(text: str, name: str, value: str) -> None:
    found = (_MACRO if name == "define-macro" else _NAME).fullmatch(value)
    # A blank and a dash, or an "@", would be another option to a compiler that parts words once more.
    if found is None or re.search(r"\s(?:-{1,2}[A-Za-z]|@)", value):
        raise RefusedOptionError(f"error: the option '{text}' defines no macro: write -DNAME or -DNAME=value")
