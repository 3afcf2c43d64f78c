"""The journal: ops that the executor has not confirmed. After a lost connection they are sent again from here."""

from __future__ import annotations

from collections import deque

from gpu_backend.wire.codec import Frame
from gpu_backend.wire.messages import Op
from kernelproxy.source_lines import Site


class OpenBatch:
    """Ops being recorded. The first has number ``first``."""

    __slots__ = ("bytes", "first", "frames", "ops", "sites")

    def __init__(self, first: int) -> None:
        self.first = first
        self.ops: list[Op] = []
        self.frames: list[Frame] = []
        self.sites: list[Site | None] = []
        self.bytes = 0

    @property
    def last(self) -> int:
        """Number of the last op."""
        return self.first + len(self.ops) - 1

    def successor(self) -> OpenBatch:
        """Return the empty batch that goes on where this one ends."""
        return OpenBatch(self.last + 1)


class Journal:
    """Sealed batches, oldest first: those sent and unconfirmed, then those not sent yet."""

    def __init__(self) -> None:
        self._batches: deque[OpenBatch] = deque()
        self._sent = 0
        self.ops_in_flight = 0
        self.bytes_in_flight = 0

    @property
    def first(self) -> int:
        """Number of the oldest op held; 0 if none is."""
        return self._batches[0].first if self._batches else 0

    def append(self, batch: OpenBatch) -> None:
        """Take a sealed batch; again is harmless."""
        if not self._batches or self._batches[-1] is not batch:
            self._batches.append(batch)

    def next_unsent(self) -> OpenBatch | None:
        """Return the oldest batch that has not been sent on this connection."""
        return self._batches[self._sent] if self._sent < len(self._batches) else None

    def note_sent(self, batch: OpenBatch) -> None:
        """Count ``batch``, the oldest unsent one, as under way."""
        self._sent += 1
        self.ops_in_flight += len(batch.ops)
        self.bytes_in_flight += batch.bytes

    def trim(self, applied: int) -> None:
        """Forget what the executor has carried out: every op up to ``applied``."""
        while self._sent and self._batches[0].last <= applied:
            batch = self._batches.popleft()
            self._sent -= 1
            self.ops_in_flight -= len(batch.ops)
            self.bytes_in_flight -= batch.bytes

    def resend_all(self) -> None:
        """Count nothing as sent: the connection is new."""
        self._sent = self.ops_in_flight = self.bytes_in_flight = 0

    def clear(self) -> None:
        """Forget everything: the executor that should have run it is gone."""
        self._batches.clear()
        self.resend_all()

    def site(self, seq: int) -> Site | None:
        """Return where op ``seq`` was recorded, if it is still held."""
        for batch in self._batches:
            if batch.first <= seq <= batch.last:
                return batch.sites[seq - batch.first]
        return None
