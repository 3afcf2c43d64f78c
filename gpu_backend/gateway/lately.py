"""What sessions used and wanted of their devices lately, by what is on the books of their arbiters. Pure."""

from __future__ import annotations

import numpy as np

from gpu_backend.gateway.filling import Floats
from gpu_backend.gateway.seats import Moves

__all__ = ["Lately"]

#: What was used and wanted longer ago than this counts little, seconds.
_MEMORY_SECONDS = 1.5
#: Bookings closer than this say too little of a rate, seconds.
_SHORTEST_SECONDS = 0.4
#: The least that each rate can be: what was unused can turn out to have been used, by an op of many seconds.
_LEAST = np.array([0.0, 0.0, -60.0])


class Lately:
    """The rates of sessions, which are numbered: parts of a device's time, 0 to 1; 0 while only one booking is known.

    A row of the books is the seconds that were used, those that were wanted, those in which the device was wanted and
    unused, and up to when: see `PoolShares.hear`. The third are of the device, so of those too who have left, and what
    is known late falls into another second: newcomers' are smoothed from the first on.
    """

    def __init__(self, books: Floats, rates: Floats | None = None) -> None:
        """Begin with ``books``; ``rates`` are NaN of whom they are not known."""
        self._books = books
        self._rates = np.full((len(books), 3), np.nan) if rates is None else rates
        self._rates[:, 2] = np.nan_to_num(self._rates[:, 2])

    @property
    def used(self) -> Floats:
        """What each session used."""
        return np.nan_to_num(self._rates[:, 0])

    @property
    def wanted(self) -> Floats:
        """What each session wanted, used or not."""
        return np.nan_to_num(self._rates[:, 1])

    @property
    def unused(self) -> Floats:
        """What of each session's device anybody wanted and nobody used, as far as that is told."""
        return np.maximum(0.0, self._rates[:, 2])

    def take(self, books: Floats) -> None:
        """Take in what is on the books now."""
        seconds = books[:, 3:] - self._books[:, 3:]
        has_restarted = seconds < 0  # the clock of its node began anew
        is_due = seconds >= _SHORTEST_SECONDS
        rates = np.clip((books - self._books)[:, :3] / np.where(is_due, seconds, 1.0), _LEAST, 1.0)
        news = np.where(np.isnan(self._rates), 1.0, 1.0 - np.exp(-np.maximum(0.0, seconds) / _MEMORY_SECONDS))
        before = np.nan_to_num(self._rates)
        self._rates = np.where(is_due, before + news * (rates - before), self._rates)
        self._books = np.where(is_due | has_restarted, books, self._books)

    def moved(self, moves: Moves, books: Floats) -> Lately:
        """Return the same of those who are there now, by their new numbers; newcomers begin with ``books``."""
        known = moves.kept(self._books, np.nan)
        return Lately(np.where(np.isnan(known), books, known), moves.kept(self._rates, np.nan))
