"""What part of the measured time of ops that ran side by side was the device's own."""

from __future__ import annotations

from collections import deque

__all__ = ["Overlap"]

#: Ops shorter than this, seconds, are over before it matters who else runs.
_LONG_SECONDS = 0.005
#: Changes that are remembered: far more than there are in the time of one op.
_MOST_CHANGES = 512
#: What is longer ago than this, seconds, is forgotten when nothing long is under way.
_MEMORY_SECONDS = 60.0


class Overlap:
    """How many sessions had a long op under way, and when.

    Where several have one, the driver gives them equal turns, and the time between an op's two events is the time of
    all. Charged as it is measured, a second of the device would be counted once for each of them.

    A session is looked at when its ops change, and while they may yet prove long: not at each report of another, which
    many have under way.
    """

    def __init__(self) -> None:
        self._long: set[str] = set()  # sessions with a long op under way
        self._young: dict[str, float] = {}  # those whose ops are not long so far, and since when they run
        self._changes: deque[tuple[float, int]] = deque([(float("-inf"), 0)], maxlen=_MOST_CHANGES)

    def fly(self, session: str, op_seconds: float, since: float) -> None:
        """A session has ops under way since then, as long as these by what is known of it. The next `note` sees it."""
        self.land(session)
        if op_seconds > _LONG_SECONDS:
            self._long.add(session)
        else:
            self._young[session] = since

    def land(self, session: str) -> None:
        """A session has no op under way any more. The next `note` sees it."""
        self._long.discard(session)
        self._young.pop(session, None)

    def note(self, now: float) -> None:
        """See how many sessions have a long op under way from ``now`` on."""
        for session in [key for key, since in self._young.items() if now - since > _LONG_SECONDS]:
            del self._young[session]
            self._long.add(session)
        count, changes = len(self._long), self._changes
        if count != changes[-1][1]:
            changes.append((now, count))
        elif not count and len(changes) > 1 and now - changes[-1][0] > _MEMORY_SECONDS:
            changes.clear()
            changes.append((now, 0))

    @property
    def is_clear(self) -> bool:
        """Whether nothing long was under way in all the time that is remembered."""
        return len(self._changes) == 1 and not self._changes[0][1]

    def own(self, seconds: float, session: str, now: float) -> float:
        """Return the device's part of ``seconds`` that were measured of a session up to ``now``, the last `note`."""
        more = 0 if session in self._long else 1  # beside those with a long op
        if self._changes[-1][1] + more <= 1 and self._changes[-1][0] <= now - seconds:
            return seconds
        begin, end, own = now - seconds, now, 0.0
        for at, count in reversed(self._changes):
            start = max(at, begin)
            if start < end:
                own += (end - start) / max(1, count + more)
                end = start
            if at <= begin:
                break
        return own
