"""Where the user reads what is waited for: a line of a terminal here; a notebook brings one of its own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Notice(Protocol):
    """One line, which is kept up to date."""

    def show(self, text: str, part: float | None = None) -> None:
        """Show ``text`` in place of what was shown before; ``part``, from 0 to 1, says how much is done."""

    def close(self, text: str) -> None:
        """Show ``text`` for good, or until something else is shown."""


class TerminalNotice:
    """A line on standard error: over and over in a terminal, only its news in a log."""

    def __init__(self) -> None:
        self._place = ""

    def show(self, text: str, part: float | None = None) -> None:
        """Write ``text`` over the line, or where it goes to a file, once for each place in the queue."""
        if sys.stderr.isatty():
            _overwrite(text)
        elif (place := text.partition(";")[0]) != self._place:
            self._place = place
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def close(self, text: str) -> None:
        """Write ``text`` and end the line."""
        sys.stderr.write(f"\r\x1b[K{text}\n" if sys.stderr.isatty() else f"{text}\n")
        sys.stderr.flush()


class PassingNotice:
    """A line on standard error where that is a terminal, which leaves no trace. Nothing anywhere else."""

    def show(self, text: str, part: float | None = None) -> None:
        """Write ``text`` over the line."""
        if sys.stderr.isatty():
            _overwrite(text)
            sys.stderr.flush()

    def close(self, text: str) -> None:
        """Clear the line."""
        self.show("")


def _overwrite(text: str) -> None:
    """Write over the line as much of ``text`` as there is room for: a longer line could not be written over again."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):  # no terminal after all, or one without a size
        columns = shutil.get_terminal_size().columns
    sys.stderr.write(f"\r\x1b[K{text if len(text) < columns else text[: columns - 2] + '…'}")


@dataclass
class Notices:
    """What makes the notice of a wait in the pool's queue, and that of other waits; a notebook has one of its own."""

    of_queue: Callable[[], Notice] = TerminalNotice
    of_sign: Callable[[], Notice] = PassingNotice
