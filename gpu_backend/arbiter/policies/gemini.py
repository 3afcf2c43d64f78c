"""A token per device, owed by request, bounded by limit, for a time that fits the session's bursts."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from gpu_backend.arbiter.policies._bursts import BurstEstimate
from gpu_backend.arbiter.policies._usage import SlidingUsage
from gpu_backend.arbiter.views import DeviceView, SessionView, Slice, Suggestion

__all__ = ["Gemini"]


class Gemini:
    """One session holds the token; the others wait, whatever it does with it.

    Taken from the paper's code: exactly one holder; usage is the time of holding within a sliding window, overuse
    (work that outlasts the quota) added to it and halved where it overlaps the next holder; first the one that stands
    first in the queue without any history, then those owed time by ``missing / (missing + usage)``, then the one that
    used least, never one at its limit; quota ``0.5 x estimated burst + 0.5 x former quota`` between the minimum and
    limit x window, the base quota while no burst is known; the burst is the longest of the last 3 s, with gaps under
    2 ms closed; a burst is not begun that would outlast the quota: the token goes back instead.

    Not done here: a burst is a run of ops between two moments with an empty queue, timed by the device's events, not
    a run of launches between two host waits; and the client asks for nothing, its gate opens and shuts. Like the
    original it keeps the device idle while the holder pauses within its quota, and while everybody is at their limit.

    Sources: NTHU-LSALAB/Gemini at abe1f88 (scheduler, hook library, predictor); Chen et al., Gemini, IEEE TCC 11(1),
    2023, doi 10.1109/TCC.2021.3119205.
    """

    name: ClassVar[str] = "gemini"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = False

    #: The quota of a session whose bursts are not known yet.
    base_quota_seconds: ClassVar[float] = 0.25
    min_quota_seconds: ClassVar[float] = 0.1
    window_seconds: ClassVar[float] = 10.0
    #: Part of the new quota that comes from the burst.
    update_rate: ClassVar[float] = 0.5

    def __init__(self) -> None:
        self._usage = SlidingUsage(self.window_seconds)
        self._bursts: dict[str, BurstEstimate] = {}
        self._quota: dict[str, float] = {}
        self._holder = ""
        self._start = self._end = 0.0

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return the token's holder until its quota ends."""
        now = view.now
        sessions = {session.id: session for session in view.sessions}
        self._observe(view, sessions)
        holder = sessions.get(self._holder)
        if holder is not None and not self._is_given_back(holder, now):
            return Suggestion((Slice(self._holder, self._end),))
        self._close(holder, now)
        chosen = self._choose(view.waiting, now)
        if chosen is None:
            return Suggestion(ask_again_at=self._usage.next_exit(now) + 0.01 if view.waiting else inf)
        self._holder, self._start, self._end = chosen.id, now, now + self._next_quota(chosen, now)
        return Suggestion((Slice(chosen.id, self._end),))

    def _observe(self, view: DeviceView, sessions: dict[str, SessionView]) -> None:
        for session in view.sessions:
            bursts = self._bursts.get(session.id) or self._bursts.setdefault(session.id, BurstEstimate())
            bursts.observe(session.queued_ops > 0, session.used_seconds, view.now)
        for gone in view.left:
            self._bursts.pop(gone, None)
            self._quota.pop(gone, None)
            self._usage.forget(gone)
            self._holder = "" if self._holder == gone else self._holder
        for charge in view.charges:
            if charge.terms.session != self._holder and charge.terms.session in sessions:
                self._charge_overuse(charge.terms.session, charge.seconds, view.now)

    def _is_given_back(self, holder: SessionView, now: float) -> bool:
        if now >= self._end:
            return True
        burst = self._bursts[holder.id].seconds(now)
        return not holder.queued_ops and now - self._start + burst >= self._end - self._start

    def _close(self, holder: SessionView | None, now: float) -> None:
        if holder is not None:
            self._usage.add(holder.id, self._start, now)
        self._holder = ""

    def _charge_overuse(self, session: str, seconds: float, now: float) -> None:
        """Charge what outlasted a quota: half of it where another held the token meanwhile."""
        overlap = min(seconds, max(0.0, now - self._start)) if self._holder else 0.0
        self._usage.add(session, now - seconds, now - overlap / 2)
        self._start = min(self._start + overlap / 2, now)

    def _choose(self, waiting: tuple[SessionView, ...], now: float) -> SessionView | None:
        window = self.window_seconds
        used = {session.id: self._usage.of(session.id, now) for session in waiting}
        if waiting and not used[waiting[0].id]:
            return waiting[0]

        def order(session: SessionView) -> tuple[bool, float]:
            missing = session.terms.request * window - used[session.id]
            if missing > 0:
                return False, -missing / (missing + used[session.id])
            return True, used[session.id]

        allowed = [session for session in waiting if session.terms.limit * window - used[session.id] > 1e-9]
        return min(allowed, key=order, default=None)

    def _next_quota(self, session: SessionView, now: float) -> float:
        burst = self._bursts[session.id].seconds(now)
        quota = self.base_quota_seconds
        if burst:
            former = self._quota.get(session.id, self.base_quota_seconds)
            quota = self.update_rate * burst + (1 - self.update_rate) * former
        quota = min(max(quota, self.min_quota_seconds), session.terms.limit * self.window_seconds)
        self._quota[session.id] = quota
        return quota
