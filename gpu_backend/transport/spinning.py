"""How long to look for something without sleeping: as long as that has paid lately. Pure.

To be woken costs more than most answers take, and a processor that spins is one that nobody else has. So the time
grows where what was waited for came a little too late for it, as virtual machines poll before they halt. Where
something took so long that no spinning would have helped, no more is spun than was a tenth of it: programs ask often
and pause in between, and what one pause would undo each of them had to learn again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["MOST_SECONDS", "Spinning"]

#: So long at most, seconds: for programs that pause a few milliseconds between two questions.
MOST_SECONDS: Final = 6e-3
#: What may be spun in vain, of what was waited.
_IN_VAIN: Final = 0.1


class Spinning:
    """How long to spin, seconds.

    Parameters
    ----------
    least
        What is spun at any rate.
    has_spare
        Whether more may be: it takes a processor that nobody else wants.
    """

    def __init__(self, least: float, has_spare: Callable[[], bool]) -> None:
        self._least = least
        self._has_spare = has_spare
        self._paying = least

    @property
    def seconds(self) -> float:
        """How long to spin now. For who begins to wait: to ask what the system has to spare takes a while sometimes."""
        return self._paying if self._paying > self._least and self._has_spare() else self._least

    def note(self, waited: float) -> None:
        """Take in how long was waited, awake and asleep, for what has come now."""
        if waited > MOST_SECONDS:
            self._paying = max(self._least, min(self._paying, _IN_VAIN * waited))
        elif waited > self._paying:
            self._paying = min(MOST_SECONDS, 2 * self._paying)
