"""The journal: ops that the executor has not confirmed. After a lost connection they are sent again from here."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from time import monotonic

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.messages import Op
from kernelproxy.source_lines import Site
from kernelproxy.stream.costs import Cost


class OpenBatch:
    """Ops being recorded. The first has number ``first``. ``sites`` holds, by place, where each was recorded.

    ``costs`` holds what each will take, and ``seconds`` their sum as the batch was last looked at to be sent.
    ``made`` is the layout of what the last op makes, if that op may be told into which memory.
    """

    __slots__ = ("bytes", "costs", "first", "frames", "made", "ops", "seconds", "sites")

    def __init__(self, first: int) -> None:
        self.first = first
        self.ops: list[Op] = []
        self.made: Layout | None = None
        self.frames: list[Frame] = []
        self.sites: dict[int, Site | None] = {}
        self.costs: list[Cost] = []
        self.seconds = 0.0
        self.bytes = 0

    @property
    def last(self) -> int:
        """Number of the last op."""
        return self.first + len(self.ops) - 1

    def add(self, op: Op, site: Site | None, cost: Cost, made: Layout | None = None) -> int:
        """Append ``op``, which was recorded at ``site`` and will take ``cost``, and return its place."""
        place = len(self.ops)
        self.sites[place] = site
        self.made = None  # an interrupt before the op is there leaves the one before it as it is
        self.ops.append(op)
        self.made = made
        self.costs.append(cost)
        return place

    def successor(self) -> OpenBatch:
        """Return the empty batch that goes on where this one ends."""
        return OpenBatch(self.last + 1)

    def part(self, place: int) -> OpenBatch:
        """Return a batch with nothing but the op at ``place``."""
        part = OpenBatch(self.first + place)
        part.ops, part.frames, part.bytes = [self.ops[place]], self.frames, self.bytes
        part.sites, part.costs = {0: self.sites.get(place)}, self.costs[place : place + 1]
        return part


class Journal:
    """Sealed batches, oldest first: those sent and unconfirmed, then those not sent yet.

    Every change is one step, so an interrupt between any two bytecodes leaves the journal right.
    """

    def __init__(self) -> None:
        self._batches: deque[OpenBatch] = deque()
        #: Number of the last op that was sent on this connection.
        self.sent = 0
        #: Number of the last op that is known to be carried out, and when it was seen that the ops go on.
        self.applied = 0
        self.moved_at = 0.0
        #: When the executor last said that it is no further, and how many of those ops the device still computed then.
        self.heard_at = 0.0
        self.unfinished = 0
        self._done: OpenBatch | None = None

    @property
    def first(self) -> int:
        """Number of the oldest op held; 0 if none is."""
        return self._batches[0].first if self._batches else 0

    @property
    def ops_in_flight(self) -> int:
        """How many ops are sent and unconfirmed."""
        return max(0, self.sent - self.first + 1) if self._batches else 0

    @property
    def bytes_in_flight(self) -> int:
        """How many bytes of buffers are sent and unconfirmed."""
        return sum([batch.bytes for batch in list(self._batches) if batch.last <= self.sent])

    def append(self, batch: OpenBatch) -> None:
        """Take a sealed batch; again is harmless."""
        try:
            newest = self._batches[-1] if self._batches else None
        except IndexError:  # another thread has confirmed the last one between the two
            newest = None
        if newest is not batch:
            self._batches.append(batch)

    def next_unsent(self) -> OpenBatch | None:
        """Return the oldest batch that has not been sent on this connection."""
        found = None
        if not self._batches:
            return None
        for batch in reversed(list(self._batches)):  # a copy is one step, a walk is not
            if batch.last <= self.sent:
                break
            found = batch
        return found

    def note_sent(self, batch: OpenBatch) -> None:
        """Count ``batch``, the oldest unsent one, as under way."""
        if batch.first == self.first:
            self.moved_at = monotonic()
        self.sent = batch.last

    def has_room(self, batch: OpenBatch, credit_ops: int, credit_bytes: int) -> bool:
        """Tell whether the executor accepts ``batch`` beside what is under way. One alone may be as large as it is."""
        if self.ops_in_flight + len(batch.ops) > credit_ops:
            return False
        in_flight = self.bytes_in_flight if batch.bytes else 0
        return not in_flight or in_flight + batch.bytes <= credit_bytes

    def take_apart(self, batch: OpenBatch, reason: str) -> None:
        """Part the ops of ``batch``, which cannot be sent; where it is one op, put one that fails by ``reason``."""
        if len(batch.ops) > 1:
            parts = [batch.part(place) for place in range(len(batch.ops))]
            self._batches = deque([part for one in list(self._batches) for part in (parts if one is batch else [one])])
            return
        op = batch.ops[0]
        told = f"The arguments of {op.name} cannot be sent to the GPU: {reason}"
        drop = (*(op.drop or ()), *((op.reuse,) if op.reuse else ()))
        batch.ops, batch.frames, batch.bytes = [Op(".fail", op.out, (told,), drop, op.want)], [], 0

    def trim(self, applied: int) -> None:
        """Forget what the executor has carried out: every op up to ``applied``."""
        if applied > self.applied:
            self.applied, self.moved_at = applied, monotonic()
        while self._batches and self._batches[0].last <= applied:
            self._done = self._batches.popleft()
            self._done.frames = []

    def resend_after(self, taken: int) -> None:
        """Count as sent what the executor has taken, and nothing more: the connection is new."""
        self.sent = taken

    def clear(self) -> None:
        """Forget everything: the executor that should have run it is gone."""
        if self._batches:
            self.applied = self._batches[-1].last
        self._batches.clear()
        self.sent = self.unfinished = 0

    def note_said(self, applied: int) -> None:
        """Note that the executor has said how far it is: if that is no news, it is really there."""
        if applied <= self.applied:
            self.heard_at = monotonic()

    def waiting(self) -> Iterator[tuple[Op, Site | None]]:
        """Yield the ops that are not known to be carried out, oldest first, and where each was recorded."""
        for batch in list(self._batches):
            for place in range(max(0, self.applied + 1 - batch.first), len(batch.ops)):
                yield batch.ops[place], batch.sites.get(place)

    def newest_done(self) -> tuple[Op, Site | None] | None:
        """Return the last op known to be carried out, and where it was recorded, if it was the last of a batch."""
        batch = self._done
        if batch is None or batch.last != self.applied:
            return None
        return batch.ops[-1], batch.sites.get(len(batch.ops) - 1)

    def pending(self) -> list[tuple[int, Op]]:
        """Return every op held, with its number."""
        return [(batch.first + place, op) for batch in list(self._batches) for place, op in enumerate(batch.ops)]

    def sites(self) -> dict[int, Site | None]:
        """Return where each op held was recorded, by its number."""
        return {batch.first + place: site for batch in list(self._batches) for place, site in batch.sites.items()}

    def at(self, seq: int) -> tuple[Op | None, Site | None]:
        """Return op ``seq`` and where it was recorded, if it is still held."""
        for batch in list(self._batches):
            if batch.first <= seq <= batch.last:
                place = seq - batch.first
                return batch.ops[place], batch.sites.get(place)
        return None, None
