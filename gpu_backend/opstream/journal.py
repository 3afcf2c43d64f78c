"""The journal: ops since the last durable point. What was lost on the way is sent again from here.

It does not know how much may be under way: that is the business of whoever sends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from gpu_backend.opstream.entry import Entry
from gpu_backend.opstream.marks import Marks
from gpu_backend.wire.errors import ProtocolError
from gpu_backend.wire.messages import Op

#: Ops that are done are kept until they are durable, but no more of them than so many, or so many bytes.
MOST_KEPT_OPS = 1 << 16
MOST_KEPT_BYTES = 256 << 20


E = TypeVar("E", bound=Entry)


class Journal(Generic[E]):
    """Entries, oldest first: those that are done and kept, those that are not done, those not sent yet.

    At most ``most_ops`` ops and ``most_bytes`` bytes are kept after they were done. At the bound nobody waits: the
    oldest are let go, and the journal `is_whole` no more until the durable point has passed them.

    Every change is one step, or may be done again, so an interrupt between any two bytecodes leaves the journal right.
    """

    def __init__(self, most_ops: int = MOST_KEPT_OPS, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self._most_ops, self._most_bytes = most_ops, most_bytes
        #: How far the ops are. To be moved by the journal only.
        self.marks = Marks()
        #: Number of the last op that need not be sent on this connection: it was, or the executor has it.
        self.cursor = 0
        self._pending: deque[E] = deque()
        self._kept: deque[E] = deque()
        self._let_go = 0

    @property
    def is_whole(self) -> bool:
        """True if every op is held that is not durable, so that all could be done again from there."""
        return self._let_go <= self.marks.durable

    # --- sending ------------------------------------------------------------------------------------------------------

    def append(self, entry: E) -> None:
        """Take the next entry; again is harmless, and takes in what it has grown by."""
        entry.last = last = entry.first + len(entry.ops) - 1
        self.marks.note_recorded(last)
        try:
            newest = self._pending[-1] if self._pending else None
        except IndexError:  # another thread has confirmed the last one between the two
            newest = None
        if newest is not entry:
            self._pending.append(entry)

    def next_unsent(self) -> E | None:
        """Return the oldest entry that has not been sent on this connection."""
        if self.cursor >= self.marks.recorded:
            return None
        found = None
        for entry in reversed(list(self._pending)):  # a copy is one step, a walk is not
            if entry.last <= self.cursor:
                break
            found = entry
        return found

    def note_sending(self, entry: E) -> None:
        """Note that ``entry`` is about to be sent: from now on the executor may speak of it."""
        self.marks.note_sent(entry.last)

    def note_sent(self, entry: E, size: int) -> None:
        """Note that ``entry``, the oldest unsent one, was sent, in a message of ``size`` bytes."""
        entry.size = size
        self.cursor = entry.last

    def take_apart(self, entry: E) -> None:
        """Part the ops of ``entry``, which cannot be sent as it is: each travels in a message of its own."""
        parts = [entry.part(place) for place in range(len(entry.ops))]
        self._pending = deque([part for one in list(self._pending) for part in (parts if one is entry else [one])])

    def let_fail(self, entry: E, reason: str) -> None:
        """Put an op that fails by ``reason`` in the place of the only one of ``entry``, which cannot be sent."""
        op = entry.ops[0]
        told = f"The arguments of {op.name} cannot be sent to the GPU: {reason}"
        drop = (*(op.drop or ()), *((op.reuse,) if op.reuse else ()))
        entry.ops, entry.frames, entry.bytes = [Op(".fail", op.out, (told,), drop, op.want)], [], 0

    def resume(self, taken: int) -> None:
        """Go on behind op ``taken``, which is the last that the executor has: the connection is new.

        Raises
        ------
        ProtocolError
            If it has an op that was never sent, or has one no more that it had.
        """
        if taken < self.marks.taken:
            raise ProtocolError(f"The executor has lost ops: it had taken {self.marks.taken}, and now {taken}.")
        self.marks.note_taken(taken)
        self.cursor = taken
        self._take_out_done()  # an interrupt may have struck when it was heard of

    # --- what is heard ------------------------------------------------------------------------------------------------

    def note_progress(self, applied: int, done: int) -> None:
        """Note that the executor has carried out every op up to ``applied``, and the device done those up to ``done``.

        Raises
        ------
        ProtocolError
            If they were never sent.
        """
        marks = self.marks
        marks.note_progress(applied, done)
        if marks.taken > self.cursor:
            self.cursor = marks.taken
        self._take_out_done()

    def _take_out_done(self) -> None:
        pending, done = self._pending, self.marks.done
        while pending and pending[0].last <= done:
            self._keep(pending[0])
            pending.popleft()

    def _keep(self, entry: E) -> None:
        before = self._kept[-1] if self._kept else None
        if before is entry:  # an interrupt struck before it was taken out
            return
        entry.kept_bytes = (before.kept_bytes if before is not None else 0) + entry.size
        self._kept.append(entry)
        while self._kept and self._keeps_too_much():
            self._let_go = self._kept[0].last
            self._kept.popleft()

    def _keeps_too_much(self) -> bool:
        oldest, newest = self._kept[0], self._kept[-1]
        if newest.last - oldest.first >= self._most_ops:
            return True
        return newest.kept_bytes - oldest.kept_bytes + oldest.size > self._most_bytes

    def note_durable(self, through: int) -> None:
        """Let go of every op up to ``through``, which are done: nobody will ask for them again."""
        self.marks.note_durable(through)
        kept, durable = self._kept, self.marks.durable
        while kept and kept[0].last <= durable:
            kept.popleft()

    def clear(self) -> None:
        """Forget everything: the executor that should have run it is gone."""
        self._pending.clear()
        self._kept.clear()
        self.marks.give_up()
        self.cursor = self.marks.recorded

    # --- what is held -------------------------------------------------------------------------------------------------

    def held(self) -> list[E]:
        """Return every entry with an op that is not durable, as far as they are kept."""
        kept, pending = list(self._kept), list(self._pending)
        return [*kept[: -1 if kept and pending and kept[-1] is pending[0] else None], *pending]

    def own(self) -> None:
        """Have nothing that is held lie in memory of others: they may change it from now on."""
        for entry in self.held():
            entry.own()

    def waiting(self) -> Iterator[tuple[E, int]]:
        """Yield where each op stands that is not known to be carried out, oldest first: its entry, its place there."""
        for entry in list(self._pending):
            for place in range(max(0, self.marks.applied + 1 - entry.first), len(entry.ops)):
                yield entry, place

    def computing(self) -> Iterator[tuple[E, int]]:
        """Yield where each op stands that the device was given and is not known to have done, newest first."""
        for entry in reversed(list(self._pending)):
            first, behind = max(entry.first, self.marks.done + 1), min(entry.end, self.marks.applied + 1)
            for number in reversed(range(first, behind)):
                yield entry, number - entry.first

    def find(self, number: int) -> tuple[E, int] | None:
        """Return where op ``number`` stands, unless it is known to be done."""
        for entry in list(self._pending):
            if entry.first <= number <= entry.last:
                return entry, number - entry.first
        return None
