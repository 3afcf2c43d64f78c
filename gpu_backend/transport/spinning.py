"""How long to look for something without sleeping: as long as that has paid lately. Pure.

To be woken costs more than most answers take, and a processor that spins is one that nobody else has. So the time
grows where what was waited for came a little too late for it, and is the least again as soon as something took so long
that no spinning would have helped, as virtual machines poll before they halt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["MOST_SECONDS", "Spinning"]

#: So long at most, seconds: for programs that pause a few milliseconds between two questions.
MOST_SECONDS: Final = 6e-3


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
        #: How long to spin now.
        self.seconds = least

    def note(self, waited: float, has_come: bool = True) -> None:
        """Take in how long was waited, awake or asleep; ``has_come`` says whether it came by then."""
        if waited > MOST_SECONDS or (self.seconds > self._least and not self._has_spare()):
            self.seconds = self._least
        elif has_come and waited > self.seconds and self._has_spare():
            self.seconds = min(MOST_SECONDS, 2 * self.seconds)
