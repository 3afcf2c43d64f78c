"""Finds what in a source of CUDA C++ would make a compiler open or look for a file, and refuses all but known headers.

Compilers differ in how they read odd text: backslashes before blanks at a line's end, raw strings, quotes that nobody
closes. So this goes by suspicion. Where the characters of a directive stand, in whatever comment or string, its operand
must be a header that is served; if it is not, the text is read once more as every compiler reads it, to let pass what
is only a comment. A text that is suspect and can be read in several ways is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gpu_backend.devices.compiling.headers import is_served

_HOW_ELSE = (
    "kernels of this pool include headers of CUDA, CuPy and C++ by their names; put the text of a header of your own "
    "into the source"
)
_GAP = r"(?:[ \t\v\f\r]|/\*.*?\*/)*"
_NAME = r"""(?:"(?P<quoted>[^"\n]*)"|<(?P<angled>[^>\n]*)>)"""
_DIRECTIVE = re.compile(rf"(?:\#|%:){_GAP}(?P<word>include_next|include|import|embed)\b{_GAP}(?:{_NAME})?", re.DOTALL)
_LINE = re.compile(
    rf"(?:\#|%:){_GAP}(?:(?P<word>line)\b|(?=\d)){_GAP}"
    rf"(?P<told>\d+{_GAP}(?:\"(?P<file>[^\"\n]*)\"|(?=//|\n|\Z)))?",
    re.DOTALL,
)
_LOOK_UP = re.compile(rf"\b__has_(?:include|embed)\w*{_GAP}(?:\({_GAP}{_NAME}{_GAP}\))?", re.DOTALL)
_IS_DEFINED = re.compile(rf"(?:\bdefined{_GAP}\(?|(?:\#|%:){_GAP}(?:ifdef|ifndef|elifdef|elifndef)){_GAP}\Z", re.DOTALL)
#: Pragmas and assembler words that bring files in, in whatever string they stand.
_FILE_WORDS = re.compile(r"\b(?:pch_preprocess|include_alias|incbin)\b|\bGCC[\s\\\"]+dependency\b|\.include\s*\\?\"")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]|\?\?[=/]")
_SPLICE = re.compile(r"\\\r?\n")
_LOOSE_SPLICE = re.compile(r"\\[ \t\v\f\r]*\n")
_WORDS_BEFORE_DEFINED = 200

#: Comments and literals, and what may not stand in a text that has to be read in one way only.
_TOKEN = re.compile(
    r"""
    (?P<blank>//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
    | (?P<odd>["']|/\*|\d[\w.]*'|\bu?8?[LU]?R")
    | \w+ | .
    """,
    re.VERBOSE | re.DOTALL,
)


class RefusedSourceError(ValueError):
    """A source that would bring in a file, or look for one."""


class _Suspicion(NamedTuple):
    place: int
    is_directive: bool
    reason: str


def check_source(source: str) -> None:
    """Let ``source`` pass if all that it includes, and looks for, are headers that are served.

    Raises
    ------
    RefusedSourceError
        If not; its message says what, and what to do instead. It begins as a compiler's does.
    """
    if found := _CONTROL.search(source):
        raise RefusedSourceError(f"error: a kernel's source may not hold {found[0]!r}: compilers read it differently")
    if found := _FILE_WORDS.search(source):
        raise RefusedSourceError(f"error: {found[0]!r} brings a file into a program, which no kernel of this pool may")
    texts = {pattern.sub("", source) for pattern in (_SPLICE, _LOOSE_SPLICE)}
    for text in texts:
        suspicions = list(_suspicions(text))
        if suspicions and (live := _live(text, suspicions, is_plain=len(texts) == 1)):
            raise RefusedSourceError(live.reason)


def _suspicions(text: str) -> Iterator[_Suspicion]:
    for found in _DIRECTIVE.finditer(text):
        name = found["quoted"] or found["angled"] or ""
        if found["word"] == "embed" or not is_served(name):
            yield _Suspicion(found.start(), True, _not_opened(name or f"#{found['word']} of a macro"))
    for found in _LINE.finditer(text):
        # Compilers show lines of the file that is named in their messages.
        if (found["word"] and not found["told"]) or re.search(r"[/\\]", found["file"] or ""):
            yield _Suspicion(found.start(), True, "error: #line may name no file of a folder, nor come of a macro")
    for found in _LOOK_UP.finditer(text):
        name = found["quoted"] or found["angled"] or ""
        before = text[max(0, found.start() - _WORDS_BEFORE_DEFINED) : found.start()]
        if not is_served(name) and not (name == "" and _IS_DEFINED.search(before)):
            yield _Suspicion(found.start(), False, _not_opened(name or found[0].split("(")[0].strip()))


def _not_opened(name: str) -> str:
    return f'catastrophic error: cannot open source file "{name}": {_HOW_ELSE}'


def _live(text: str, suspicions: list[_Suspicion], is_plain: bool) -> _Suspicion | None:
    """Return the first of ``suspicions`` that is neither in a comment nor in a string; any, if that cannot be told."""
    if not is_plain:
        return suspicions[0]
    blanked: list[str] = []
    for token in _TOKEN.finditer(text):
        if token["odd"]:
            return suspicions[0]
        blanked.append(re.sub(r"[^\n]", " ", token[0]) if token["blank"] else token[0])
    code = "".join(blanked)
    for one in sorted(suspicions):
        if code[one.place].isspace():
            continue
        if not one.is_directive or not code[code.rfind("\n", 0, one.place) + 1 : one.place].strip():
            return one
    return None
