"""One executor between two looks at it."""

from __future__ import annotations

from gpu_backend.metering.audit import Look
from gpu_backend.metering.meters import Meter

__all__ = ["FOREVER_NS", "Watch"]

#: When an opening without an end ends.
FOREVER_NS = 2**62
#: The first moments of a turn may go by before its executor is awake, or for one short op, nanoseconds.
_TURN_FREE_NS = 5_000_000
#: What is seen at a look may have gone on for so long before it, seconds.
_LATEST_SECONDS = 0.3
#: How late the driver is believed to be, nanoseconds: who is watched can hold it up.
_MOST_LATE_NS = 1_000_000_000
#: Where meters are rough, so much of what is seen may be of others for each second that these have copied: copies need
#: no processor of a GPU, and the driver takes them for the work of whoever had it last, and for more than they are.
_COPIES = 2.0


class Watch:
    """What happened since an executor was last looked at: when it was allowed to compute, and when it was seen to.

    Times of moments are nanoseconds of the host's monotonic clock.
    """

    def __init__(self, meter: Meter, pid: int, now_ns: int) -> None:
        self._meter, self._pid = meter, pid
        self._lag_ns = int(meter.lag * 1e9)
        #: What ran before a gate was shut may be seen after it; where meters are rough, what was used at all counts.
        self._tail_ns = 0 if meter.is_rough else self._lag_ns
        self._seen = meter.seen(pid)
        self._allowed = 0.0  # what the device can have done for it at most, of what is still to be seen
        self._at = self._mark = self._active_at = now_ns
        self._from = self._until = 0  # of the opening
        self._open_ns = self._held_ns = 0
        self._has_lane = False
        self._was_claiming = False
        self._ops = self._other_ns = 0
        self._excused, self._copied_at = 0.0, now_ns
        #: Whether the opening is a turn of its own, for which it said that it had work.
        self.is_turn = False
        #: What its reports added.
        self.reported = 0.0

    def begin(self, now_ns: int, until_ns: int, is_turn: bool, has_lane: bool) -> None:
        """Another order holds: open until then, or shut if that is past."""
        self._count(now_ns)
        if self.is_turn:
            self._held_ns += max(0, min(now_ns, self._until) - self._from - _TURN_FREE_NS)
        if until_ns > now_ns:
            self._from, self._until = now_ns, until_ns
        else:
            self._until = min(self._until, now_ns)
        self.is_turn, self._has_lane = is_turn, has_lane

    def _count(self, now_ns: int) -> None:
        self._open_ns += max(0, min(now_ns, self._until + self._tail_ns) - max(self._mark, self._from))
        self._mark = max(self._mark, now_ns)

    def look(self, now_ns: int, is_claiming: bool, ops_done: int, other_ns: int, copied: float = 0.0) -> Look:
        """Return what happened, and begin anew. ``copied`` is for how long others say that they copied, seconds."""
        self._count(now_ns)
        seconds = max(0, now_ns - self._at) / 1e9
        seen, self._seen = self._seen, self._meter.seen(self._pid)
        self._allowed = min(self._allowed + seconds, seconds + _LATEST_SECONDS)
        new = None
        if seen is not None and self._seen is not None:
            new = min(max(0.0, self._seen - seen), self._allowed)
            self._allowed -= new
        has_progress = ops_done != self._ops
        # Not an open gate alone, which nobody need have passed; nor ops that are said to be done while it was shut.
        if self.reported or is_claiming or (has_progress and (self._open_ns or self._has_lane)):
            self._active_at = now_ns
        if self._meter.is_rough:
            self._excuse(min(copied, seconds), now_ns)  # they say it, and it took no longer
            if max(self._meter.as_of(now_ns), now_ns - _MOST_LATE_NS) - self._active_at < self._lag_ns:
                new = None  # it may be of then, whenever it is heard
            elif new is not None:
                new = self._of_its_own(new)
        is_free = self._has_lane and has_progress
        look = Look(
            seconds=seconds, seen=new, seen_part=self._meter.part,
            reported=self.reported, open=seconds if is_free else min(seconds, self._open_ns / 1e9),
            other=max(0, other_ns - self._other_ns) / 1e9, held=self._held_ns / 1e9,
            is_claiming=is_claiming or self._was_claiming, claims_on=is_claiming and self._was_claiming,
            has_progress=has_progress,
        )  # fmt: skip
        self._at, self._was_claiming, self._ops, self._other_ns = now_ns, is_claiming, ops_done, other_ns
        self._open_ns = self._held_ns = 0
        self.reported = 0.0
        return look

    def _excuse(self, copied: float, now_ns: int) -> None:
        """Note for how long others copied: it may be seen for as long as anything is seen late."""
        if copied:
            self._copied_at = now_ns
        elif now_ns - self._copied_at > self._lag_ns:
            self._excused = 0.0
        self._excused = min(self._excused + copied, self._lag_ns / 1e9)

    def _of_its_own(self, seen: float) -> float:
        """Return what of ``seen`` cannot be copies that others made."""
        excused = min(seen, _COPIES * self._excused)
        self._excused -= excused / _COPIES
        return seen - excused
