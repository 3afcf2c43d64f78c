"""How far a stream of ops has come: marks that only grow, and none of which passes the one before it."""

from __future__ import annotations

from gpu_backend.wire.errors import ProtocolError


class Marks:
    """Numbers of ops, which count from 1, as whoever records them knows them; 0 while there is none.

    ``recorded >= sent >= taken >= applied >= done >= durable`` at every moment, also where an interrupt strikes between
    two steps. What implies another mark moves that first: an op that is done was taken. Whoever wants to know how far
    the ops are reads it here, and keeps no count of its own that could fall behind.

    Attributes
    ----------
    recorded
        The last op that was recorded.
    sent
        The last op that may have left this process, on any connection: no later one is known to anybody.
    taken
        The last op that the executor has: it need not be sent again.
    applied
        The last op that the executor has carried out, or given to the device: its place in the queue is free.
    done
        The last op that the device has done.
    durable
        The last op that nobody will ever ask for again.
    """

    __slots__ = ("applied", "done", "durable", "recorded", "sent", "taken")

    def __init__(self) -> None:
        self.recorded = self.sent = self.taken = self.applied = self.done = self.durable = 0

    def note_recorded(self, through: int) -> None:
        """Every op up to ``through`` is recorded."""
        if through > self.recorded:
            self.recorded = through

    def note_sent(self, through: int) -> None:
        """Every op up to ``through`` is about to be sent.

        Raises
        ------
        ValueError
            If it is not recorded.
        """
        if through > self.recorded:
            raise ValueError(f"Op {through} cannot be sent: {self.recorded} are recorded.")
        if through > self.sent:
            self.sent = through

    def note_taken(self, through: int) -> None:
        """The executor says that it has every op up to ``through``.

        Raises
        ------
        ProtocolError
            If it was never sent; so does `note_progress`.
        """
        if through > self.sent:
            raise ProtocolError(f"The executor speaks of op {through}, and op {self.sent} is the last that was sent.")
        if through > self.taken:
            self.taken = through

    def note_progress(self, applied: int, done: int) -> None:
        """The executor says that it has carried out every op up to ``applied``, the device those up to ``done``."""
        through = applied if applied > done else done
        self.note_taken(through)
        if through > self.applied:
            self.applied = through
        if done > self.done:
            self.done = done

    def note_durable(self, through: int) -> None:
        """No op up to ``through`` will be asked for again.

        Raises
        ------
        ValueError
            If it is not done.
        """
        if through > self.done:
            raise ValueError(f"Op {through} cannot be durable: {self.done} are done.")
        if through > self.durable:
            self.durable = through

    def give_up(self) -> None:
        """Count all that is recorded as done with: those who had it are gone, and nobody will do it."""
        self.sent = self.recorded
        self.note_progress(self.recorded, self.recorded)
        self.durable = self.recorded
