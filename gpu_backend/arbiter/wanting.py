"""Who wants the device, by what executors said last, and for how long anybody did. Pure.

What each of them wanted does not tell: where all wait for their notebooks by turns, somebody always wants the device.
"""

from __future__ import annotations

__all__ = ["Wanting"]


class Wanting:
    """All executors of one device. Times are nanoseconds; what is said of the past changes nothing."""

    def __init__(self, now_ns: int) -> None:
        #: For how long anybody wanted it, up to now.
        self.by_any_ns = 0
        self._now_ns = now_ns
        self._those: set[str] = set()

    def pass_time(self, now_ns: int) -> None:
        """Let time pass in which those wanted it who did so far."""
        passed = max(0, now_ns - self._now_ns)
        self._now_ns += passed
        if self._those:
            self.by_any_ns += passed

    def note(self, key: str, is_wanting: bool) -> None:
        """Note whether one of them wants it from now on."""
        if is_wanting:
            self._those.add(key)
        else:
            self._those.discard(key)
