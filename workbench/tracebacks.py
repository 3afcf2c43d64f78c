"""Which frames of a traceback people are shown: the user's own and those of the user's libraries, not ours.

A function that CuPy has in compiled code is, here, some Python functions of ours. IPython hides only frames that say so
themselves, one by one; here all of ours are left out while a traceback is put into words, whoever raised. The traceback
itself stays whole, so ``%debug`` finds every frame, and ``%gpu tracebacks full`` followed by ``%tb`` shows them.
Programs that `workbench run` starts end with such a traceback too.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kernelproxy import source_lines

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def _folders(*packages: str) -> tuple[str, ...]:
    """Return the folders of those of these packages that are installed; none is imported for it."""
    found = [find_spec(package) for package in packages]
    return tuple([f"{Path(one.origin).parent}/" for one in found if one is not None and one.origin])


#: What is compiled of ours (see `hatch_build.py`) names its source by the place in the package alone.
_OURS = (*_folders("workbench", "kernelproxy", "gpu_backend", "catalog"), "gpu_backend/")
#: What our own functions call: below them such a frame is as much ours, and any other is a function of the user's.
_ARRAYS = _folders("numpy", "scipy")
_STANDARD = f"{sysconfig.get_path('stdlib')}/"
_LIBRARIES = tuple([f"{sysconfig.get_path(kind)}/" for kind in ("purelib", "platlib")])
#: Exceptions of one chain that are looked at; a chain may be a ring.
_MOST_CHAINED = 100
#: What `timeit` calls the file of the code that it times.
_TIMED = "<timeit-src>"
#: Stands below the first traceback that was shortened.
_MORE = "(Frames of gpu-workbench are left out. `%gpu tracebacks full` and then `%tb` show them.)"

#: The same below that of a program; and the variable that it names.
FULL_VARIABLE = "GPU_WORKBENCH_TRACEBACKS"
_MORE_OF_PROGRAM = f"(Frames of gpu-workbench are left out. With {FULL_VARIABLE}=full they are shown.)"

Formatter = Callable[..., list[str]]


class Tracebacks:
    """Puts the tracebacks of an IPython shell into words."""

    def __init__(self, shell: InteractiveShell) -> None:
        #: Whether all frames are shown.
        self.is_full = False
        #: Whether people have read, in this kernel, that there is more; once is enough.
        self._has_told_more = False
        self._shell = shell
        self._handler: Any = shell.InteractiveTB
        self._formatter: Formatter = self._handler.structured_traceback
        self._thread_hook = threading.excepthook

    def load(self) -> None:
        """Begin."""
        self._handler.structured_traceback = self._format
        self._thread_hook, threading.excepthook = threading.excepthook, self._tell_of_thread
        source_lines.name_files_by(self._name_of_file)

    def unload(self) -> None:
        """Leave tracebacks to IPython."""
        vars(self._handler).pop("structured_traceback", None)
        if threading.excepthook == self._tell_of_thread:
            threading.excepthook = self._thread_hook
        source_lines.name_files_by(str)

    def _format(self, kind: Any, error: Any, trace: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        """Do what IPython's own formatter does. It calls itself, with a pair for ``trace``, for what is chained."""
        if self.is_full or not isinstance(trace, TracebackType):
            return self._formatter(kind, error, trace, *args, **kwargs)
        with shortened(error):
            lines = self._formatter(kind, error, without_ours(trace), *args, **kwargs)
        if not self._has_told_more and isinstance(error, Exception) and _has_ours(trace):
            self._has_told_more = True
            return [*lines, _MORE]
        return lines

    def _tell_of_thread(self, ended: threading.ExceptHookArgs) -> None:
        """Do what Python does where a thread of the user's ends by an exception: the shell does not hear of those."""
        if self.is_full:
            self._thread_hook(ended)
        else:
            _tell_short(ended, self._thread_hook)

    def _name_of_file(self, file: str) -> str:
        """Return what people call ``file``: the number of a cell, where it is one."""
        if file == _TIMED:
            return "timed code"
        name = self._shell.compile.format_code_name(file)
        return " ".join(name) if name is not None else file


def tell_of_programs() -> None:
    """Have exceptions that end this program, or a thread of it, told without our frames, unless it tells them itself.

    ``GPU_WORKBENCH_TRACEBACKS=full`` leaves all to Python.
    """
    if os.environ.get(FULL_VARIABLE) == "full":
        return
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _tell_of_end
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = lambda ended: _tell_short(ended, threading.__excepthook__)


def _tell_of_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    with shortened(error):
        sys.__excepthook__(kind, error, without_ours(trace))
    if _has_ours(trace) and sys.stderr is not None and sys.stderr.isatty():  # who reads a log looks at its last line
        sys.stderr.write(f"{_MORE_OF_PROGRAM}\n")


def _tell_short(ended: threading.ExceptHookArgs, tell: Callable[[threading.ExceptHookArgs], object]) -> None:
    with shortened(ended.exc_value):
        short = (ended.exc_type, ended.exc_value, without_ours(ended.exc_traceback), ended.thread)
        tell(threading.ExceptHookArgs(short))


@contextmanager
def shortened(error: BaseException | None) -> Iterator[None]:
    """Have ``error``, and all that led to it, without our frames for a while.

    What was raised and caught among our own frames, before something else was raised, is no part of the user's story.
    What the user was handling when they called us is.
    """
    before = [(one, one.__traceback__, one.__context__, one.__suppress_context__) for one in _chain(error)]
    try:
        _shorten([one for one, *_ in before])
        yield
    finally:
        for one, trace, context, is_suppressed in before:
            one.__traceback__, one.__context__, one.__suppress_context__ = trace, context, is_suppressed


def _shorten(chain: Sequence[BaseException]) -> None:
    for one in chain:
        trace, context = one.__traceback__, one.__context__
        one.__traceback__ = without_ours(trace)
        if one.__cause__ is None and (_is_raised_by_us(trace) or not one.__suppress_context__):
            one.__context__ = next(filter(_concerns_user, _chain(context)), None)
            one.__suppress_context__ = False


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found and len(found) < _MOST_CHAINED:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Return a copy of ``trace`` without our frames, and without those of the libraries that ours have called."""
    kept: TracebackType | None = None
    for one in reversed(_concerning(trace)):
        kept = TracebackType(kept, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return kept


def _has_ours(trace: TracebackType | None) -> bool:
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(_OURS):
            return True
        trace = trace.tb_next
    return False


def _is_raised_by_us(trace: TracebackType | None) -> bool:
    """Tell whether the last frame of ``trace`` is ours: a ``from None`` there hides what we caught, and no more."""
    file = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        trace = trace.tb_next
    return file.startswith(_OURS)


def _concerns_user(error: BaseException) -> bool:
    return bool(_concerning(error.__traceback__))


def _concerning(trace: TracebackType | None) -> list[TracebackType]:
    found = []
    is_below_ours = False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(_OURS):
            is_below_ours = True
        elif not (is_below_ours and _is_tool(file)):
            is_below_ours = False
            found.append(trace)
        trace = trace.tb_next
    return found


def _is_tool(file: str) -> bool:
    """Tell whether ``file`` is of the standard library, NumPy or SciPy; below ours it was called by us."""
    return file.startswith(_ARRAYS) or (file.startswith(_STANDARD) and not file.startswith(_LIBRARIES))
