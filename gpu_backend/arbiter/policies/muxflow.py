"""Offline work gets the complement of what online work uses, and online work never waits for a gate."""

from __future__ import annotations

from math import floor, inf
from typing import ClassVar

from gpu_backend.arbiter.views import DeviceView, SessionView, Slice, Suggestion
from gpu_backend.gate.terms import SessionClass

__all__ = ["MuxFlow"]

#: The share of offline work goes by tens of per cent, between these.
_STEPS = 10
_LEAST, _MOST = 1, 9


class MuxFlow:
    """Online sessions are never held back; all offline ones together are busy for the part of time that these leave.

    Taken from the paper's abstract: offline (best-effort) workloads run at the same time as online ones, which keep
    their speed, with a share of the device that is allocated dynamically; and from a re-implementation by others, for
    the paper's own formula could not be read: the share is what the online activity leaves, in tens of per cent, 10 at
    least and 90 at most. Here that is the duty of the offline gates: after an op they pause so long that offline work
    is busy for that part of the time, divided equally among the offline sessions that wait.

    Not done here: a share is a part of time and not of the SMs, which cannot be given to a process that runs; whether
    kernels do run at the same time is the driver's to say, which does that under MPS only. The activity of the SMs is
    not seen either: an online session counts as active while it has something queued, so that one that is slowed down
    claims more and not less. The activity is that of the last second, while the original follows a forecast of some
    kind that was not read. What protects memory is the pool's limit on each session, and what contains faults is that
    each session is a process of its own, both whatever the policy. Which offline work comes beside which online work is
    no question of one device: the rule of placement `interference` answers it for each newcomer by itself, where the
    original matches all at once; who has a place is not moved. Sessions of the class best-effort are offline and all
    others online.

    Sources: Zhao et al., MuxFlow, arXiv 2303.13803 (abstract), and Liu et al., SCIENCE CHINA Information Sciences
    67(12), 2024, doi 10.1007/s11432-024-4227-2 (abstract); for the formula the re-implementation in
    PACELab/PEACE-artifact.

    Parameters
    ----------
    period_seconds
        After which the share is set anew.
    """

    name: ClassVar[str] = "muxflow"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = False

    def __init__(self, period_seconds: float = 1.0) -> None:
        self._period = period_seconds
        self._share = _LEAST / _STEPS
        self._since: float | None = None  # when the period began; None without online sessions
        self._seen_at = self._active = 0.0  # up to when activity is counted, and how much of it in this period
        self._was_active = False

    @property
    def share(self) -> float:
        """Which part of the time offline sessions may be busy beside online ones."""
        return self._share

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return endless slices, those of offline sessions at their part of the share."""
        online = [session for session in view.sessions if not _is_offline(session)]
        offline = [session for session in view.waiting if _is_offline(session)]
        if not online:
            self._since = None
            return Suggestion(tuple([Slice(session.id) for session in offline]))
        self._count(view.now, any(session.queued_ops for session in online))
        slices = [Slice(session.id) for session in online]
        slices += [Slice(session.id, duty=self._share / len(offline)) for session in offline]
        assert self._since is not None
        return Suggestion(tuple(slices), self._since + self._period if offline or self._was_active else inf)

    def _count(self, now: float, is_active: bool) -> None:
        """Count activity up to ``now``, and set the share where a period has ended."""
        if self._since is None:
            # Nothing is known of who has just come: they are taken to want all there is.
            self._share, self._since, self._active = _LEAST / _STEPS, now, 0.0
        else:
            self._active += (now - self._seen_at) * self._was_active
            if now >= self._since + self._period:
                idle = 1.0 - self._active / (now - self._since)
                self._share = min(_MOST, max(_LEAST, floor(_STEPS * idle + 0.5))) / _STEPS
                self._since, self._active = now, 0.0
        self._seen_at, self._was_active = now, is_active


def _is_offline(session: SessionView) -> bool:
    return session.terms.kind is SessionClass.BEST_EFFORT
