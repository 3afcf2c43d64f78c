"""How far the notebook may run ahead of the device: by half a second of the device's time, not by a number of ops.

What an op will take is what ops of the same name and about the same size took before, as the executor reports. Of ops
that were never timed a handful may be under way, and each is sent at once, until one was done so soon behind its being
sent that it cannot be long. So a loop of small ops runs ahead by thousands, one of large ones by
as many as are half a second's work, and whoever times a loop on the client comes near the device's own time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from operator import attrgetter
from time import monotonic

from gpu_backend.opstream.marks import Marks
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.costs import UNKNOWN_SECONDS, Cost, no_costs

#: Most work that may be under way, seconds of the device.
MOST_SECONDS = 0.5
#: What was expected and what was reported differ by less than this: nothing is learnt of that.
_LOW, _HIGH = 0.8, 1.25
#: Parts of batches whose times are not reported yet; an executor that reports none must not fill our memory.
_MOST_UNTIMED = 1_024
#: So many batches may be under way, or done by now, before it is looked which of them are.
_MOST_UNSEEN = 8
_SECONDS = attrgetter("seconds")


class Ahead:
    """The work that was sent and is not done, as ``marks`` say. Written by whoever holds the connection."""

    def __init__(self, marks: Marks) -> None:
        #: What ops take, by binary digits of the size in bytes and by kind; whoever records one looks there.
        self.costs = no_costs()
        #: By which it is known how soon what was sent is done.
        self.clock: Callable[[], float] = monotonic
        self._marks = marks
        #: Batches that were not done when they were last looked at, oldest first.
        self._sent: deque[OpenBatch] = deque()
        #: How long the device works on these at most; infinite if they have to be looked at.
        self._at_most = 0.0
        #: What is done and not timed yet, with what it was expected to take, seconds, 0 if nobody has asked; and the
        #: last op that was put there.
        self._untimed: deque[tuple[list[Cost], float]] = deque(maxlen=_MOST_UNTIMED)
        self._listed = 0
        #: The last op that was done when the executor last said how long it has worked.
        self._timed = 0
        self._busy_seconds = 0.0

    @property
    def seconds(self) -> float:
        """How long the device will work on what is under way, about."""
        done = self._marks.done
        sent = [batch for batch in list(self._sent) if batch.last > done]
        if not sent:
            return 0.0
        for batch in sent:
            batch.seconds = batch.seconds or _sum(batch.costs)  # of what is waited for nobody has asked so far
        begun = sent[0].costs[: max(0, done - sent[0].first + 1)]
        return sum([batch.seconds for batch in sent]) - sum([cost.seconds for cost in begun])

    def has_room(self, batch: OpenBatch) -> bool:
        """Tell whether ``batch`` may be sent beside what is under way. One alone may be as long as it is."""
        batch.seconds = _sum(batch.costs)
        if self._at_most + batch.seconds <= MOST_SECONDS and len(self._sent) < _MOST_UNSEEN:
            return True  # as nearly always
        self._take_out_done()
        return not self._sent or max(0.0, self.seconds) + batch.seconds <= MOST_SECONDS

    def note_sent(self, batch: OpenBatch) -> None:
        """Count ``batch`` as under way; again, as after a lost connection, is harmless."""
        sent, batch.sent_at = self._sent, self.clock()
        if not batch.seconds:  # nobody has asked whether there is room: it is waited for
            self._take_out_done()
        if not sent or batch.first > sent[-1].first:
            # First: what an interrupt has counted twice is looked at, and what it has not would never be counted.
            self._at_most += _at_most(batch)
            sent.append(batch)

    def _take_out_done(self) -> None:
        done, sent = self._marks.done, self._sent
        if not sent or sent[0].first > done:
            return
        try:
            self._take_out(done)
        finally:
            self._at_most = sum(map(_at_most, sent))

    def _take_out(self, done: int) -> None:
        sent = self._sent
        while sent and (batch := sent[0]).first <= done:
            if batch.last <= done and self._listed < batch.first:  # as nearly all: at once, and as a whole
                if batch.costs and batch.costs[-1].is_long:  # for which it was sent
                    batch.costs[-1].note_done_within(self.clock() - batch.sent_at)
                self._untimed.append((batch.costs, batch.seconds))
                self._listed = batch.last
                sent.popleft()
                continue
            part = batch.costs[max(0, self._listed - batch.first + 1) : done - batch.first + 1]
            if part:
                self._untimed.append((part, 0.0))
            self._listed = max(self._listed, min(done, batch.last))
            if batch.last > done:
                break
            sent.popleft()

    def note_time(self, busy_seconds: float, dropped_through: int) -> None:
        """Learn from what the device has worked for this session, up to the last op done.

        Nothing is learnt of a time in which ops were dropped, which the executor says of those up to
        ``dropped_through``: they took none.
        """
        if not 0 <= busy_seconds < inf:
            return
        self._take_out_done()
        were_dropped, self._timed = self._timed < dropped_through, self._marks.done
        seconds, self._busy_seconds = busy_seconds - self._busy_seconds, busy_seconds
        untimed, self._untimed = list(self._untimed), deque(maxlen=_MOST_UNTIMED)
        if seconds < 0 or were_dropped or _is_as_expected(untimed, seconds):
            return
        costs = [cost for part, _ in untimed for cost in part]
        if costs:
            _learn(costs, seconds)

    def resume(self, taken: int) -> None:
        """Count nothing behind op ``taken`` as under way: what was lost with a connection is sent again."""
        self._sent = deque([batch for batch in list(self._sent) if batch.first <= taken])
        self._at_most = sum(map(_at_most, self._sent))

    def clear(self) -> None:
        """Forget what is under way: the executor that should have run it is gone. What ops take is still known."""
        self._sent.clear()
        self._at_most = 0.0
        self._untimed.clear()
        self._busy_seconds = 0.0


def _sum(costs: list[Cost]) -> float:
    seconds: float = sum(map(_SECONDS, costs))
    return seconds


def _at_most(batch: OpenBatch) -> float:
    """Return how long ``batch`` takes at most; infinite if nobody asked, or it is to be seen how soon it is done."""
    return batch.seconds if batch.seconds and not (batch.costs and batch.costs[-1].is_long) else inf


def _is_as_expected(parts: list[tuple[list[Cost], float]], seconds: float) -> bool:
    """Tell whether all was known, and took about what was expected when it was sent, which was summed up then."""
    expected = sum([of_part or _sum(costs) for costs, of_part in parts])
    return 0 < expected < UNKNOWN_SECONDS and _LOW < seconds / expected < _HIGH


def _learn(costs: list[Cost], seconds: float) -> None:
    """Learn from ops that took ``seconds`` together: of what was not known first, else of all in proportion."""
    unknown = [cost for cost in costs if not cost.is_known]
    if unknown:
        known_seconds = sum([cost.seconds for cost in costs if cost.is_known])
        left = max(seconds - known_seconds, seconds * len(unknown) / len(costs))  # the known ones may be known wrongly
        for cost in set(unknown):
            cost.learn(left / len(unknown))
        return
    ratio = seconds / sum([cost.seconds for cost in costs])
    if not _LOW < ratio < _HIGH:
        for cost in set(costs):
            cost.learn(cost.seconds * ratio)
