"""Credit: how much may be under way to the executor, which keeps it in its memory until it is carried out."""

from __future__ import annotations

from collections import deque

from gpu_backend.opstream.marks import Marks
from gpu_backend.wire.messages import Welcome
from kernelproxy import compiled
from kernelproxy.stream.batch import OpenBatch


class Credit:
    """What was sent on this connection and is not carried out. Written by whoever holds the connection.

    How far the ops are carried out is read from ``marks``: an interrupt can leave no two counts of it that differ.
    What is kept of it here, and for how long, is the journal's business and makes no difference.
    """

    __slots__ = ("_marks", "_messages", "_sent")

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._sent = 0
        #: Last op and bytes of each message with buffers that may be under way.
        self._messages: deque[tuple[int, int]] = deque()

    @property
    def ops_in_flight(self) -> int:
        """How many ops are under way."""
        return max(0, self._sent - self._marks.applied)

    @property
    def bytes_in_flight(self) -> int:
        """How many bytes of buffers are under way."""
        applied = self._marks.applied
        return sum([size for last, size in list(self._messages) if last > applied])

    def has_room(self, batch: OpenBatch, granted: Welcome) -> bool:
        """Tell whether ``batch`` may be sent by what the executor has ``granted``. Of bytes, one alone may be more."""
        if self._sent - self._marks.applied > granted.credit_ops - len(batch.ops):
            return False
        in_flight = self.bytes_in_flight if batch.bytes else 0
        return not in_flight or in_flight + batch.bytes <= granted.credit_bytes

    def note_sent(self, batch: OpenBatch) -> None:
        """Count ``batch`` as under way; again is harmless."""
        last, messages = batch.last, self._messages
        while messages and messages[0][0] <= self._marks.applied:
            messages.popleft()
        if batch.bytes and (not messages or messages[-1][0] < last):
            messages.append((last, batch.bytes))
        if last > self._sent:
            self._sent = last

    def resume(self, taken: int) -> None:
        """Count nothing behind op ``taken`` as under way: what was lost with a connection is sent again."""
        self._messages = deque([one for one in list(self._messages) if one[0] <= taken])
        self._sent = taken


compiled.learn(Credit=Credit)
