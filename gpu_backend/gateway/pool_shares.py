"""What part of each device a user is to have, so that their share is of the pool. Time and use in, weights out. Pure.

An arbiter divides its device by weights and knows no other. Here it is known what every user uses and wants on all of
them, as their arbiters have it on their books; from that follows what a fair pool would give each user on each device
(`filling`), and so by how much a user's weight is to be smaller where they have much of their share from elsewhere.
A device is never told to stand idle, nor to whom it belongs: only how those who want it at the same time divide it. So
it wastes nothing and asks nobody, and where nothing is heard from here any more, its last weights hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_backend.gateway.filling import Flags, Floats, Ints, Vessel
from gpu_backend.gateway.lately import Lately
from gpu_backend.gateway.seats import Bench, Seat, Seats

__all__ = ["PoolShares", "Weights", "capacity", "demand"]

#: How much of a device all those together keep who have their share from elsewhere: nobody starves behind the others.
_LEAST = 0.01
#: Weights that would change by less, as a fraction and as a part of the whole, stay as they were told.
_SAME, _SAME_OF_ALL = 0.01, 0.002
#: What somebody is taken to use at least of a device that they want all the time.
_AWAITED = 0.05
#: What there is of a device at least, whatever is said to be wanted and is not used.
_LEAST_CAPACITY = 0.5
#: So much more than was seen is taken to be wanted. Too much costs nothing, for what one does not use the others have;
#: too little would give others what one could use.
_LEEWAY = 1.1


class Weights(NamedTuple):
    """By what the weights of a user and of their group are multiplied on one device: above 0, at most 1."""

    user: float = 1.0
    group: float = 1.0


class _Heard(NamedTuple):
    """What was heard last of a device."""

    bench: Bench
    books: Floats
    is_steered: bool


def demand(used: Floats, wanted: Floats) -> Floats:
    """Return which part of a device each session would use alone, by what it used and wanted, as parts of time.

    Whoever waits for each result before they go on thinks for ``1 - wanted``, however long they are kept waiting.
    """
    wanted = np.maximum(used, wanted)
    used = np.maximum(used, _AWAITED * wanted)
    return np.minimum(1.0, _LEEWAY * used / np.where(used > 0, used + 1.0 - wanted, 1.0))


def capacity(device: Ints, used: Floats, wanted: Floats, unused: Floats) -> Floats:
    """Return what there is of each device while somebody wants it: its time, less what nobody can use of it.

    Between two turns, and while all who have one wait for their notebooks, a device stands still, so who has one to
    themselves has less than the whole.

    Parameters
    ----------
    device
        Of each session, its device: ascending, from 0, and none left out.
    used, wanted
        Parts of time, as for `demand`.
    unused
        In which part of the time anybody wanted its device and nobody used it, or less where that is not told: somebody
        wanted it at least while one of them did.
    """
    in_all = np.bincount(device, used)
    most_wanted = np.zeros_like(in_all)
    np.maximum.at(most_wanted, device, np.maximum(wanted, in_all[device] + unused))
    is_wanted = most_wanted > 0
    return np.where(is_wanted, np.clip(in_all / np.where(is_wanted, most_wanted, 1.0), _LEAST_CAPACITY, 1.0), 1.0)


class PoolShares:
    """The ledger of the pool: it hears what arbiters have counted and says what weights they are to divide by.

    To hear is to keep; all is reckoned at once when it settles, so a step costs the same few sorts and sums of arrays
    for few sessions as for many.
    """

    def __init__(self) -> None:
        self._heard: dict[Vessel, _Heard] = {}
        self._seats = Seats({})
        self._lately = Lately(np.zeros((0, 4)))
        self._groups, self._users = self._seats.fill_groups(np.zeros(0)), self._seats.fill_users(np.zeros(0))
        self._told = np.zeros((0, 2))  # of each claim, what its user's and their group's weights are multiplied by

    def hear(self, device: Vessel, seats: Sequence[Seat], books: npt.ArrayLike, is_steered: bool = True) -> None:
        """Take in what is on the books of a device's arbiter; it counts from when the ledger next settles.

        Parameters
        ----------
        device
            Which.
        seats
            Every session that is on it now; who is not named has left.
        books
            A row for each: the seconds that it used and that it wanted, which only grow, those in which anybody wanted
            the device and nobody used it, and up to when, by the clock of its node. An array is kept, and not to be
            written to any more.
        is_steered
            Whether its arbiter divides by weights. What is used where it does not counts, and is steered elsewhere.
        """
        rows = np.asarray(books, np.float64)
        rows = rows if rows.ndim == 2 else rows.reshape(-1, 4)
        self._heard[device] = _Heard(self._bench(device, tuple(seats)), rows, is_steered)

    def hear_all(self, seats: Mapping[Vessel, tuple[Seat, ...]], books: Floats) -> None:
        """Take in the books of several devices, which divide by weights: the rows of one device after the other."""
        begin, heard = 0, self._heard
        for device, there in seats.items():
            end = begin + len(there)
            heard[device] = _Heard(self._bench(device, there), books[begin:end], True)
            begin = end

    def _bench(self, device: Vessel, there: tuple[Seat, ...]) -> Bench:
        """Return the bench of those who are on a device: the one that it was, if they are the same."""
        before = self._heard.get(device)
        if before is not None and (before.bench.seats is there or before.bench.seats == there):
            return before.bench
        return Bench(there)

    def forget(self, gone: Iterable[Vessel]) -> None:
        """Devices are not there any more, or have not been heard for long: what they give counts no more."""
        for device in gone:
            self._heard.pop(device, None)

    @property
    def devices(self) -> frozenset[Vessel]:
        """The devices that were heard of."""
        return frozenset(self._heard)

    def settle(self) -> None:
        """Divide the pool anew by what was heard."""
        heard = {device: each for device, each in self._heard.items() if each.bench.seats}
        benches, before = {device: each.bench for device, each in heard.items()}, self._seats.benches
        books = np.concatenate([np.zeros((0, 4)), *[each.books for each in heard.values()]])
        if list(benches.values()) != list(before.values()) or list(benches) != list(before):
            self._seat(Seats(benches, self._seats), books)
        self._lately.take(books)
        self._divide(np.array([each.is_steered for each in heard.values()], np.bool_))

    def weights(self, device: Vessel, user: str, group: str) -> Weights:
        """Return by what the weights of a user, who has a session on ``device``, are multiplied there."""
        heard, claim = self._heard.get(device), self._seats.claims.number(device, (user, group))
        if heard is None or not heard.is_steered or claim is None:
            return Weights()
        return Weights(*self._told[claim].tolist())

    def user_weights(self) -> Floats:
        """Return of each session what the weight of its user is multiplied by: the devices as they were first heard of.

        Those of a device stand as they were heard. The same as `weights` says of each, without being asked by name.
        """
        seats = self._seats
        steered = [each.is_steered for each in self._heard.values() if each.bench.seats]
        return np.where(np.array(steered, np.bool_)[seats.device], self._told[seats.claim, 0], 1.0)

    def used(self, user: str) -> float:
        """Return how many devices' time ``user`` has used lately, of all the pool's."""
        is_theirs = [seat.user == user for bench in self._seats.benches.values() for seat in bench.seats]
        return float(self._lately.used[is_theirs].sum())

    def fair(self, user: str, group: str) -> float:
        """Return how many devices' time a fair pool gives ``user``, by what they want where they are."""
        holder, totals = self._seats.holders.users.get((user, group)), self._users.totals
        return float(totals[holder]) if holder is not None and holder < len(totals) else 0.0

    def _seat(self, seats: Seats, books: Floats) -> None:
        """Go on with who is there now, and with what is known of those who were there before."""
        before = self._seats
        claims, shares = seats.claims.moved_from(before.claims), seats.shares.moved_from(before.shares)
        self._lately = self._lately.moved(seats.rows.moved_from(before.rows), books)
        self._groups = seats.fill_groups(shares.kept(self._groups.parts, 0.0), self._groups)
        self._users = seats.fill_users(claims.kept(self._users.parts, 0.0), self._users)
        self._told = claims.kept(self._told, np.nan)
        self._seats = seats

    def _divide(self, is_steered: Flags) -> None:
        """Divide devices among groups, and what these get of each among their users."""
        seats, used, wanted = self._seats, self._lately.used, self._lately.wanted
        could = np.where(is_steered[seats.device], demand(used, wanted), used)
        of_users = np.minimum(1.0, np.bincount(seats.claim, could))
        of_groups = np.minimum(1.0, np.bincount(seats.share, of_users))
        self._groups.settle(of_groups, capacity(seats.device, used, wanted, self._lately.unused), ~is_steered)
        self._users.settle(of_users, self._groups.parts, ~is_steered[seats.share_device])
        self._tell()

    def _tell(self) -> None:
        """Make weights of the division, and none that are told anew for a change that nobody would feel."""
        seats = self._seats
        entitled = np.column_stack((self._users.entitled(), self._groups.entitled()[seats.share]))
        least = _LEAST / seats.sessions[seats.share_device[seats.share]]
        now = np.maximum(least[:, np.newaxis], entitled)
        is_same = np.abs(now - self._told) <= _SAME * self._told + _SAME_OF_ALL
        self._told = np.where(is_same.all(axis=1, keepdims=True), self._told, now)
