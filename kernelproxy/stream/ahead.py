"""How far the notebook may run ahead of the device: by half a second of the device's time, not by a number of ops.

What an op will take is what ops of the same name and about the same size took before, as the executor reports. Of ops
that were never timed a handful may be under way. So a loop of small ops runs ahead by thousands, one of large ones by
as many as are half a second's work, and whoever times a loop on the client comes near the device's own time.
"""

from __future__ import annotations

from collections import deque
from math import inf

from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.costs import Cost, no_costs

#: Most work that may be under way, seconds of the device.
MOST_SECONDS = 0.5
#: What was expected and what was reported differ by less than this: nothing is learnt of that.
_LOW, _HIGH = 0.8, 1.25
#: Parts of batches whose times are not reported yet; an executor that reports none must not fill our memory.
_MOST_UNTIMED = 1_024


class Ahead:
    """The work that was sent and is not done. Written by whoever holds the connection."""

    def __init__(self) -> None:
        #: What ops take, by binary digits of the size in bytes and by kind; whoever records one looks there.
        self.costs = no_costs()
        #: Number of the last op that is known to be done.
        self.done = 0
        self._sent: deque[OpenBatch] = deque()
        self._untimed: deque[list[Cost]] = deque(maxlen=_MOST_UNTIMED)
        self._busy_seconds = 0.0

    @property
    def seconds(self) -> float:
        """How long the device will work on what is under way, about."""
        sent = list(self._sent)
        if not sent:
            return 0.0
        begun = sent[0].costs[: max(0, self.done - sent[0].first + 1)]
        return sum([batch.seconds for batch in sent]) - sum([cost.seconds for cost in begun])

    def has_room(self, batch: OpenBatch) -> bool:
        """Tell whether ``batch`` may be sent beside what is under way. One alone may be as long as it is."""
        batch.seconds = sum([cost.seconds for cost in batch.costs])
        return not self._sent or max(0.0, self.seconds) + batch.seconds <= MOST_SECONDS

    def note_sent(self, batch: OpenBatch) -> None:
        """Count ``batch`` as under way; again, as after a lost connection, is harmless."""
        if not self._sent or batch.first > self._sent[-1].first:
            self._sent.append(batch)

    def note_done(self, through: int) -> None:
        """Count no op up to ``through`` as under way any more."""
        before, through = self.done, min(through, self._sent[-1].last if self._sent else 0)
        if through <= before:
            return
        for batch in list(self._sent):
            if batch.first > through:
                break
            start = max(0, before - batch.first + 1)
            self._untimed.append(batch.costs[start : through - batch.first + 1])
            if batch.last <= through:
                self._sent.popleft()
        self.done = through

    def note_time(self, busy_seconds: float, were_dropped: bool) -> None:
        """Learn from what the device has worked for this session, up to the last op done; not where some never ran."""
        if not 0 <= busy_seconds < inf:
            return
        seconds, self._busy_seconds = busy_seconds - self._busy_seconds, busy_seconds
        untimed, self._untimed = list(self._untimed), deque(maxlen=_MOST_UNTIMED)
        costs = [cost for part in untimed for cost in part]
        if costs and seconds >= 0 and not were_dropped:
            _learn(costs, seconds)

    def resume(self, taken: int) -> None:
        """Count nothing behind op ``taken`` as under way: what was lost with a connection is sent again."""
        self._sent = deque([batch for batch in list(self._sent) if batch.first <= taken])

    def clear(self) -> None:
        """Forget what is under way: the executor that should have run it is gone. What ops take is still known."""
        self._sent.clear()
        self._untimed.clear()
        self._busy_seconds = 0.0


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
