"""Whether it pays to compute on the side: like a spinning wait, it goes on as long as it has paid lately."""

from __future__ import annotations

#: What a trip, or a trip saved, allows to be computed, in ops; a trip takes as long as 20 to 40 small ops of NumPy.
GRANT = 64
#: The most that may be allowed at a time.
MOST = 8 * GRANT
#: An op costs one, and one more for each so many bytes that it deals with.
_BYTES_OF_ONE = 1 << 14
#: After so many grants in vain nothing is computed; after so many trips it is tried again.
_MOST_IN_VAIN, _TRIED_AGAIN = 5, 256


class Worth:
    """Counts what is spent on computing and what that has saved.

    Nothing is computed until a read of a small array has cost a trip.

    Attributes
    ----------
    budget
        How much may be computed now, in ops; 0 for nothing.
    """

    __slots__ = ("_in_vain", "_trips", "budget")

    def __init__(self) -> None:
        self.budget = 0
        self._in_vain = 0
        self._trips = 0

    def note_trip(self) -> None:
        """A read of a small array took a trip: what led to it might have been computed."""
        self._trips += 1
        if self._trips % _TRIED_AGAIN == 0:
            self._in_vain = 0
        if self._in_vain < _MOST_IN_VAIN:
            self.budget = min(MOST, self.budget + (GRANT >> self._in_vain))

    def note_saved(self) -> None:
        """What was computed has saved a trip."""
        self._in_vain = 0
        budget = self.budget + GRANT
        self.budget = budget if budget < MOST else MOST  # `min` takes longer

    def spend(self, nbytes: int) -> None:
        """An op that deals with so many bytes is computed, or was tried."""
        self.budget -= 1 + nbytes // _BYTES_OF_ONE
        if self.budget <= 0:
            self.budget = 0
            self._in_vain += 1
