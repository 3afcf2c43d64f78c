"""The logs of the pool's processes: one format, no line that a peer's words could forge, and no file without end."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from contextlib import suppress
from typing import TextIO

from gpu_backend.wire.words import printable

__all__ = ["BoundedHandler", "LineFormatter", "set_up"]

#: Above this a log is cut to its newest half.
_MOST_BYTES = 16 << 20
_LONGEST_LINE = 2_000
_LONGEST_TRACEBACK = 20_000


def set_up() -> None:
    """Log to standard error, which `spawn` has made a file. Called once by each process of the pool, first of all."""
    handler = BoundedHandler()
    handler.setFormatter(LineFormatter("%(asctime)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class LineFormatter(logging.Formatter):
    """Makes one printable line of a record. Those of a traceback follow it, indented: none can pass for a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line of ``record``."""
        return printable(super().formatMessage(record), _LONGEST_LINE)

    def formatException(self, ei: object) -> str:  # noqa: N802
        """Return the traceback of ``ei``; of a long one the end, which names the error."""
        lines = super().formatException(ei)[-_LONGEST_TRACEBACK:].splitlines()  # type: ignore[arg-type]
        return "\n".join(f"    {printable(line, _LONGEST_LINE)}" for line in lines)


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Writes to standard error; a file that this appends to is cut to its newest half above ``most_bytes``.

    It is cut in place, not rotated: what Python, a library or a child writes there goes to the same file for good. What
    another process writes in the very moment in which it is cut is lost.
    """

    def __init__(self, stream: TextIO | None = None, most_bytes: int = _MOST_BYTES) -> None:
        super().__init__(stream)
        self._most_bytes = most_bytes

    def emit(self, record: logging.LogRecord) -> None:
        """Write ``record``. Called by `logging`, under this handler's lock."""
        super().emit(record)
        # In an executor's sandbox a file cannot be opened again: its agent ends one that has written too much.
        with suppress(OSError, ValueError):
            _keep_newest(self.stream.fileno(), self._most_bytes)


def _keep_newest(descriptor: int, most_bytes: int) -> None:
    about = os.fstat(descriptor)
    # Elsewhere than behind `O_APPEND` the next write would go to where the end was.
    if about.st_size <= most_bytes or not stat.S_ISREG(about.st_mode):
        return
    if not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND:
        return
    with open(f"/proc/self/fd/{descriptor}", "rb") as file:  # ours is for writing only
        file.seek(-(most_bytes // 2), os.SEEK_END)
        kept = file.read(most_bytes)
        end_of_line = kept.find(b"\n", 0, _LONGEST_TRACEBACK)  # of one that is whole no more; if it has any
        kept = kept[end_of_line + 1 :] + file.read()  # what others have written meanwhile
    os.ftruncate(descriptor, 0)
    with open(descriptor, "ab", closefd=False) as file:
        file.write(kept)
