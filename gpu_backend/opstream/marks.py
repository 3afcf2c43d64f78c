"""How far a stream of ops has come: marks that only grow, and none of which passes the one before it."""

from __future__ import annotations

from gpu_backend.wire.errors import ProtocolError


class Marks:
    """Numbers of ops, which count from 1, as whoever records them knows them; 0 while there is none.

    ``recorded >= sent >= taken >= applied >= done >= durable`` at every moment, also where an interrupt strikes between
    two steps. What implies another mark moves that first: an op that is done was taken.
    """

    __slots__ = ("_applied", "_done", "_durable", "_recorded", "_sent", "_taken")

    def __init__(self) -> None:
        self._recorded = self._sent = self._taken = self._applied = self._done = self._durable = 0

    @property
    def recorded(self) -> int:
        """The last op that was recorded."""
        return self._recorded

    @property
    def sent(self) -> int:
        """The last op that may have left this process, on any connection: no later one is known to anybody."""
        return self._sent

    @property
    def taken(self) -> int:
        """The last op that the executor has: it need not be sent again."""
        return self._taken

    @property
    def applied(self) -> int:
        """The last op that the executor has carried out, or given to the device: its place in the queue is free."""
        return self._applied

    @property
    def done(self) -> int:
        """The last op that the device has done."""
        return self._done

    @property
    def durable(self) -> int:
        """The last op that nobody will ever ask for again."""
        return self._durable

    def note_recorded(self, through: int) -> None:
        """Every op up to ``through`` is recorded."""
        self._recorded = max(self._recorded, through)

    def note_sent(self, through: int) -> None:
        """Every op up to ``through`` is about to be sent.

        Raises
        ------
        ValueError
            If it is not recorded.
        """
        if through > self._recorded:
            raise ValueError(f"Op {through} cannot be sent: {self._recorded} are recorded.")
        self._sent = max(self._sent, through)

    def note_taken(self, through: int) -> None:
        """The executor says that it has every op up to ``through``.

        Raises
        ------
        ProtocolError
            If it was never sent; so do `note_applied` and `note_done`.
        """
        if through > self._sent:
            raise ProtocolError(f"The executor speaks of op {through}, and op {self._sent} is the last that was sent.")
        self._taken = max(self._taken, through)

    def note_applied(self, through: int) -> None:
        """The executor says that it has carried out every op up to ``through``."""
        self.note_taken(through)
        self._applied = max(self._applied, through)

    def note_done(self, through: int) -> None:
        """The executor says that the device has done every op up to ``through``."""
        self.note_applied(through)
        self._done = max(self._done, through)

    def note_durable(self, through: int) -> None:
        """No op up to ``through`` will be asked for again.

        Raises
        ------
        ValueError
            If it is not done.
        """
        if through > self._done:
            raise ValueError(f"Op {through} cannot be durable: {self._done} are done.")
        self._durable = max(self._durable, through)

    def give_up(self) -> None:
        """Count all that is recorded as done with: those who had it are gone, and nobody will do it."""
        self._sent = self._recorded
        self.note_done(self._recorded)
        self._durable = self._recorded
