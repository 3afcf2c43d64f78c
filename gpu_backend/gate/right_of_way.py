"""The word of shared memory by which a short op goes before its arbiter has been asked.

An arbiter takes two wake-ups to stop those who compute and to let them go on. A session that it has given a lane to
(see `orders`) takes the right of way itself for an op that is over sooner: whoever holds a turn launches nothing
meanwhile.

One memfd for each device, of two words: until when somebody has the right of way, in nanoseconds of the host's
monotonic clock, and who. Each is stored whole. Two who take it at once both go, and the later word counts; who finds
another's name leaves it alone.

All executors of the device can write there, and one of them may be hostile. So it is the reader who bounds what the
word can cost: it honours a taking for `SECONDS` and no longer, and for a tenth of its time in all, whatever is written.
"""

from __future__ import annotations

import mmap
import os

from gpu_backend.gate.words import Words
from gpu_backend.transport import sealed

__all__ = ["SECONDS", "Patience", "RightOfWay", "make"]

#: How long the right of way is had at most, seconds.
SECONDS = 5e-3
_NS = int(SECONDS * 1e9)
_SIZE = 16
#: One part in so many of its time is what a reader spends waiting for others' short ops; and how much of that it has
#: saved up at most, nanoseconds: several in a row take no longer.
_PART, _MOST_SAVED_NS = 10, 2 * _NS
#: Who waits looks again within so long, nanoseconds; else it went on meanwhile, and what it saw the begin of only is
#: thought to have lasted so long.
_AGAIN_NS, _UNSEEN_NS = 1_500_000, 300_000


def make() -> int:
    """Return the descriptor of a device's right of way, for all its executors."""
    return sealed.make("way", _SIZE)


class RightOfWay:
    """One process's view of a device's right of way. ``descriptor`` stays the caller's.

    Raises
    ------
    NotSealed
        If the descriptor is none of such memory.
    """

    def __init__(self, descriptor: int) -> None:
        sealed.require(descriptor, _SIZE)
        self._page = Words(mmap.mmap(descriptor, _SIZE))
        #: Until when somebody has it, and who; read by whoever is about to launch.
        self.words = self._page.words
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
        """Unmap the memory."""
        self._page.close()


class Patience:
    """How long one reader still lets others go first. Times in nanoseconds of its clock."""

    def __init__(self) -> None:
        self._saved = _MOST_SAVED_NS
        self._until = 0  # of the taking that is honoured, or that was
        self._word = 0
        self._at = 0  # when it last looked
        self._waits = False  # since then

    def holds(self, word: int, now: int) -> bool:
        """Return whether to wait at ``now`` for whoever wrote ``word``: until when it has the right of way."""
        self._pass(now, _UNSEEN_NS if self._at and now - self._at > _AGAIN_NS else _NS)
        if word != self._word:
            self._word, self._until = word, min(word, now + _NS)
        self._waits = now < self._until and self._saved > 0
        return self._waits

    def rest(self, now: int) -> None:
        """Count the wait that ends now, if there was one."""
        self._pass(now, _NS)

    def _pass(self, now: int, longest: int) -> None:
        passed = max(0, now - self._at) if self._at else 0
        if self._waits:
            self._saved -= min(passed, longest)
        self._saved = min(_MOST_SAVED_NS, self._saved + passed // _PART)
        self._at, self._waits = now, False
