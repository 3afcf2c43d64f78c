"""The word of shared memory by which a short op goes before its arbiter has been asked.

An arbiter takes two wake-ups to stop those who compute and to let them go on. A session that it has given a lane to
(see `gate`) takes the right of way itself for an op that is over sooner: whoever holds a turn launches nothing
meanwhile. The right ends by itself, so a death in the middle holds nobody up for longer than `SECONDS`.

One file for each device, of two words: until when somebody has the right of way, in nanoseconds of the host's monotonic
clock, and who. Each is stored whole. Two who take it at once both go, and the later word counts; who finds another's
name leaves it alone.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

__all__ = ["SECONDS", "RightOfWay"]

#: How long the right of way is had at most, seconds.
SECONDS = 5e-3
_NS = int(SECONDS * 1e9)
_SIZE = 16


class RightOfWay:
    """One process's view of a device's right of way; the file is made by whoever comes first."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            os.ftruncate(descriptor, _SIZE)
            self._map = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)
        #: Until when somebody has it, and who; read by whoever is about to launch.
        self.words = memoryview(self._map).cast("q")
        self._me = os.getpid()

    def take(self, now_ns: int) -> None:
        """Have the right of way from now on."""
        self.words[1] = self._me
        self.words[0] = now_ns + _NS

    def give_back(self) -> None:
        """Leave the way to others, unless somebody else has it by now."""
        if self.words[1] == self._me:
            self.words[0] = 0

    def close(self) -> None:
        """Unmap the file, which stays."""
        self.words.release()
        self._map.close()
