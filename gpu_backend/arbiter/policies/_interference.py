"""How much sessions slow each other down, as it was measured, and as it is guessed of those that were not."""

from __future__ import annotations

from gpu_backend.arbiter.policies._profiles import Bound, bound_of
from gpu_backend.arbiter.views import SessionView

__all__ = ["Interference"]

#: With more measurements than this there is a prediction.
_ENOUGH = 21
_Kinds = frozenset[Bound]


class Interference:
    """Of pairs of sessions: the sum over both of (time together - time alone) / time alone, for the same work.

    Parameters
    ----------
    memory_seconds
        For so long a measured value holds; then the pair counts as never seen.
    """

    def __init__(self, memory_seconds: float = 30.0) -> None:
        self._memory = memory_seconds
        self._alone: dict[str, float] = {}  # ops in a second, by session
        self._measured: dict[frozenset[str], tuple[float, float]] = {}  # the value, and when
        self._of_kinds: dict[_Kinds, tuple[float, int]] = {}  # the sum of what was measured, and how often
        self._measurements = 0

    def is_known(self, session: str) -> bool:
        """Return whether the session's rate alone is known, without which nothing can be compared."""
        return session in self._alone

    def note_alone(self, session: str, rate: float) -> None:
        """Note how many ops a session finished in a second in which it had the device for itself."""
        before = self._alone.get(session)
        self._alone[session] = rate if before is None else (before + rate) / 2

    def note_together(self, one: SessionView, other: SessionView, rates: tuple[float, float], now: float) -> None:
        """Note how many each finished in a second beside the other. Both rates alone are known."""
        value = sum(self._alone[each.id] / rate - 1 for each, rate in zip((one, other), rates, strict=True))
        pair = frozenset((one.id, other.id))
        if pair in self._measured and now - self._measured[pair][1] <= self._memory:
            value = (self._measured[pair][0] + value) / 2
        self._measured[pair] = value, now
        total, count = self._of_kinds.get(_kinds(one, other), (0.0, 0))
        self._of_kinds[_kinds(one, other)] = total + value, count + 1
        self._measurements += 1

    def of(self, one: SessionView, other: SessionView, now: float) -> float:
        """Return what was measured of the two; else the mean of their kinds, where enough was measured; else 0."""
        value, at = self._measured.get(frozenset((one.id, other.id)), (0.0, now - 2 * self._memory))
        if now - at <= self._memory:
            return value
        total, count = self._of_kinds.get(_kinds(one, other), (0.0, 0))
        return total / count if count and self._measurements > _ENOUGH else 0.0

    def forget(self, session: str) -> None:
        """Drop what is known of a session that left."""
        self._alone.pop(session, None)
        for pair in [pair for pair in self._measured if session in pair]:
            del self._measured[pair]


def _kinds(one: SessionView, other: SessionView) -> _Kinds:
    return frozenset((bound_of(one), bound_of(other)))
