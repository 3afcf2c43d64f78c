"""Shared memory as words of eight bytes: halves that are written by one, and read whole by others.

Some words in a row, the first of which counts: it is odd while they are being written, and a reader that saw it change
reads again. So no reader ever sees one value of before and another of after. Each word is stored whole, so one that
stands for itself is read without the counter. The order in which a processor makes stores visible is what the counters
rely on: x86-64 keeps it.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence

__all__ = ["Words"]

#: Tries to read what is being written; a writer is done in under a microsecond, so more means that it died, or will not
#: let us.
_TRIES = 200


class Words:
    """Mapped memory, seen as words."""

    def __init__(self, mapped: mmap.mmap) -> None:
        self._map = mapped
        #: All of it.
        self.words = memoryview(mapped).cast("q")

    def close(self) -> None:
        """Unmap the memory."""
        self.words.release()
        self._map.close()

    def write(self, at: int, values: Sequence[int]) -> None:
        """Write the words behind the counter at ``at``. There is one writer."""
        words = self.words
        words[at] |= 1  # a writer that died half-way left it odd
        for place, value in enumerate(values, at + 1):
            words[place] = value
        words[at] += 1

    def read(self, at: int, count: int) -> tuple[int, ...] | None:
        """Return the words behind the counter at ``at``, or None if their writer stopped in the middle of writing."""
        words = self.words
        for _ in range(_TRIES):
            before = words[at]
            if before & 1:
                continue
            values = tuple(words[at + 1 : at + 1 + count])
            if words[at] == before:
                return values
        return None
