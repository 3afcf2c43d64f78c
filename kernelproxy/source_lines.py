"""Which line of the user's code recorded an op: cheap to note for every op, readable for the one that fails."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from kernelproxy import compiled

#: Tells what people call a file.
_name_of_file: Callable[[str], str] = str


def name_files_by(name_of_file: Callable[[str], str]) -> None:
    """Have files called what ``name_of_file`` calls them: a notebook knows its cells by their numbers."""
    global _name_of_file
    _name_of_file = name_of_file


def name_of_file(path: str) -> str:
    """Return what people call the file ``path``."""
    return _name_of_file(path)


def _folder(package: str) -> tuple[str, ...]:
    found = find_spec(package)  # imports nothing
    return (str(Path(found.origin).parent),) if found is not None and found.origin else ()


#: What is never the user's: this package; and what shows a cell's result, from within the cell.
_NOT_THEIRS = (str(Path(__file__).parent), *_folder("IPython"), *_folder("ipykernel"))
#: Files that were told apart so far. Each run of a cell is a file of its own.
_theirs: set[str] = set()
_not_theirs: set[str] = set()
_MOST_FILES = 4_096


class Site(NamedTuple):
    """A place in running code: its code object and the offset of the instruction in it."""

    code: CodeType
    instruction: int

    @property
    def line(self) -> int:
        """The line number, from 1."""
        for start, end, line in self.code.co_lines():
            if start <= self.instruction < end and line is not None:
                return line
        return self.code.co_firstlineno

    def describe(self) -> str:
        """Return ``file, line n: source`` as a traceback would."""
        text = linecache.getline(self.code.co_filename, self.line).strip()
        where = f"{name_of_file(self.code.co_filename)}, line {self.line}"
        return f"{where}: {text}" if text else where


_new, _getframe = tuple.__new__, sys._getframe  # found without asking what they are names of


def user_site(depth: int) -> Site | None:
    """Return the innermost place in the user's code, or a library's, looking from ``depth`` frames up.

    Who knows how many frames are ours at least need not have them looked at: each costs as much as a short function.
    """
    try:
        frame = _getframe(depth)
    except ValueError:  # none of them is the user's: a thread's target is a function of ours
        return None
    while frame.f_code.co_filename not in _theirs:  # asked for every op, and so answered by look-ups
        if frame.f_code.co_filename not in _not_theirs and _is_theirs(frame.f_code.co_filename):
            break
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return _new(Site, (frame.f_code, frame.f_lasti))


def _is_theirs(filename: str) -> bool:
    is_theirs = not filename.startswith(_NOT_THEIRS)
    known = _theirs if is_theirs else _not_theirs
    if len(known) >= _MOST_FILES:
        known.clear()
    known.add(filename)
    return is_theirs


compiled.learn(Site=Site, theirs=_theirs, not_theirs=_not_theirs, is_theirs=_is_theirs)
user_site = compiled.quick("site", user_site)
