"""Credit: how much may be under way to the executor, which keeps it in its memory until it is carried out."""

from __future__ import annotations

from collections import deque

from gpu_backend.wire.messages import Welcome
from kernelproxy.stream.batch import OpenBatch


class Credit:
    """What was sent on this connection and is not carried out. Written by whoever holds the connection.

    What is kept of it here, and for how long, is the journal's business and makes no difference.
    """

    def __init__(self) -> None:
        self._sent = self._applied = 0
        #: Last op and bytes of each message with buffers that is under way.
        self._messages: deque[tuple[int, int]] = deque()

    @property
    def ops_in_flight(self) -> int:
        """How many ops are under way."""
        return max(0, self._sent - self._applied)

    @property
    def bytes_in_flight(self) -> int:
        """How many bytes of buffers are under way."""
        return sum([size for _, size in list(self._messages)])

    def has_room(self, batch: OpenBatch, granted: Welcome) -> bool:
        """Tell whether ``batch`` may be sent by what the executor has ``granted``. Of bytes, one alone may be more."""
        if self.ops_in_flight + len(batch.ops) > granted.credit_ops:
            return False
        in_flight = self.bytes_in_flight if batch.bytes else 0
        return not in_flight or in_flight + batch.bytes <= granted.credit_bytes

    def note_sent(self, batch: OpenBatch) -> None:
        """Count ``batch`` as under way; again is harmless."""
        if batch.bytes and (not self._messages or self._messages[-1][0] < batch.last):
            self._messages.append((batch.last, batch.bytes))
        self._sent = max(self._sent, batch.last)

    def note_applied(self, through: int) -> None:
        """Count no op up to ``through`` as under way any more."""
        self._applied = max(self._applied, through)
        while self._messages and self._messages[0][0] <= self._applied:
            self._messages.popleft()

    def resume(self, taken: int) -> None:
        """Count nothing behind op ``taken`` as under way: what was lost with a connection is sent again."""
        self._messages = deque([one for one in list(self._messages) if one[0] <= taken])
        self._sent = taken
