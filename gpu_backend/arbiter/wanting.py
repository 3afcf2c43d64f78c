"""Who wants the device, by what executors said last, and how much of the time in which anybody did it was unused. Pure.

What each of them wanted does not tell: where all wait for their notebooks by turns, somebody always wants the device.
"""

from __future__ import annotations

__all__ = ["Wanting"]


class Wanting:
    """All executors of one device. Times are nanoseconds; what is said of the past changes nothing."""

    def __init__(self, now_ns: int) -> None:
        #: For how long anybody wanted it, less what was counted as used. It falls where that is known only later.
        self.unused_ns = 0
        self._now_ns = now_ns
        self._those: set[str] = set()

    def pass_time(self, now_ns: int) -> None:
        """Let time pass in which those wanted it who did so far."""
        passed = max(0, now_ns - self._now_ns)
        self._now_ns += passed
        if self._those:
            self.unused_ns += passed

    def note(self, key: str, is_wanting: bool) -> None:
        """Note whether one of them wants it from now on."""
        if is_wanting:
            self._those.add(key)
        else:
            self._those.discard(key)

    def note_used(self, used_ns: int) -> None:
        """Note what one of them has used."""
        self.unused_ns -= used_ns
