"""What part of each device a user is to have, so that their share is of the pool. Time and use in, weights out. Pure.

An arbiter divides its device by weights and knows no other. Here it is known what every user uses and wants on all of
them, as their arbiters have it on their books; from that follows what a fair pool would give each user on each device
(`filling`), and so by how much a user's weight is to be smaller where they have much of their share from elsewhere.
A device is never told to stand idle, nor to whom it belongs: only how those who want it at the same time divide it. So
it wastes nothing and asks nobody, and where nothing is heard from here any more, its last weights hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp
from typing import NamedTuple

from gpu_backend.gateway.filling import Claim, Filling, Vessel

__all__ = ["Booking", "PoolShares", "Weights", "demand"]

#: How much of a device all those together keep who have their share from elsewhere: nobody starves behind the others.
_LEAST = 0.01
#: What was used and wanted longer ago than this counts little, seconds.
_MEMORY_SECONDS = 1.5
#: Bookings closer than this say too little of a rate, seconds.
_SHORTEST_SECONDS = 0.4
#: Weights that would change by less, as a fraction and as a part of the whole, stay as they were told.
_SAME, _SAME_OF_ALL = 0.01, 0.002
#: What somebody is taken to use at least of a device that they want all the time.
_AWAITED = 0.05
#: So much more than was seen is taken to be wanted. Too much costs nothing, for what one does not use the others have;
#: too little would give others what one could use.
_LEEWAY = 1.1
#: Devices filled at a time, beyond four for each that there is.
_MOST_FILLED = 200


class Booking(NamedTuple):
    """What the arbiter of a session's device has on its books of it. Seconds, which only grow."""

    #: The session and its epoch.
    key: str
    user: str
    group: str
    user_weight: float
    group_weight: float
    used_seconds: float
    wanted_seconds: float
    #: Up to when, by the clock of its node.
    at_seconds: float


class Weights(NamedTuple):
    """By what the weights of a user and of their group are multiplied on one device: above 0, at most 1."""

    user: float = 1.0
    group: float = 1.0


@dataclass(slots=True)
class _Rate:
    """A session's last booking, and what it used and wanted of its device lately."""

    last: Booking
    used: float = 0.0
    wanted: float = 0.0
    is_known: bool = False

    def take(self, booking: Booking) -> None:
        before = self.last
        seconds = booking.at_seconds - before.at_seconds
        if seconds < 0:  # its node has started anew
            self.last = booking
            return
        if seconds < _SHORTEST_SECONDS:
            self.last = before._replace(
                user=booking.user, group=booking.group, user_weight=booking.user_weight,
                group_weight=booking.group_weight,
            )  # fmt: skip
            return
        used = min(1.0, max(0.0, booking.used_seconds - before.used_seconds) / seconds)
        wanted = min(1.0, max(0.0, booking.wanted_seconds - before.wanted_seconds) / seconds)
        news = 1 - exp(-seconds / _MEMORY_SECONDS) if self.is_known else 1.0
        self.used += news * (used - self.used)
        self.wanted += news * (wanted - self.wanted)
        self.last, self.is_known = booking, True


def demand(used: float, wanted: float) -> float:
    """Return which part of a device a session would use alone, by what it used and wanted, as parts of time.

    Whoever waits for each result before they go on thinks for ``1 - wanted``, however long they are kept waiting.
    """
    wanted = max(used, wanted)
    used = max(used, _AWAITED * wanted)
    return min(1.0, _LEEWAY * used / (used + 1.0 - wanted)) if used else 0.0


class PoolShares:
    """The ledger of the pool: it hears what arbiters have counted and says what weights they are to divide by."""

    def __init__(self) -> None:
        self._rates: dict[Vessel, dict[str, _Rate]] = {}
        self._is_steered: dict[Vessel, bool] = {}
        self._groups = Filling()
        self._users: dict[str, Filling] = {}  # by group
        self._told: dict[tuple[Vessel, str, str], Weights] = {}

    def hear(self, device: Vessel, bookings: Iterable[Booking], is_steered: bool = True) -> None:
        """Take in what is on the books of a device's arbiter.

        Parameters
        ----------
        device
            Which.
        bookings
            Every session that is on it now; who is not named has left.
        is_steered
            Whether its arbiter divides by weights. What is used where it does not counts, and is steered elsewhere.
        """
        before = self._rates.get(device, {})
        now: dict[str, _Rate] = {}
        for booking in bookings:
            rate = before.get(booking.key)
            if rate is None:
                rate = _Rate(booking)
            else:
                rate.take(booking)
            now[booking.key] = rate
        self._rates[device], self._is_steered[device] = now, is_steered

    def forget(self, gone: Iterable[Vessel]) -> None:
        """Devices are not there any more, or have not been heard for long: what they give counts no more."""
        for device in list(gone):
            self._rates.pop(device, None)
            self._is_steered.pop(device, None)
            for filling in (self._groups, *self._users.values()):
                filling.set(device, {})
            for key in [key for key in self._told if key[0] == device]:
                del self._told[key]

    @property
    def devices(self) -> frozenset[Vessel]:
        """The devices that were heard of."""
        return frozenset(self._rates)

    def settle(self) -> None:
        """Divide the pool anew by what was heard."""
        most = _MOST_FILLED + 4 * len(self._rates)
        wanted = {device: self._wanted(device) for device in self._rates}
        for device, claims in wanted.items():
            groups = {group: _together(users) for group, users in claims.items()}
            weights = {one.last.group: one.last.group_weight for one in self._rates[device].values()}
            self._put(self._groups, device, {one: Claim(weights[one], part) for one, part in groups.items()}, 1.0)
        self._groups.settle(most)
        present = {group for claims in wanted.values() for group in claims}
        for group in self._users.keys() - present:
            del self._users[group]
        for group in present:
            filling = self._users.setdefault(group, Filling())
            for device, claims in wanted.items():
                self._put(filling, device, claims.get(group, {}), self._groups.part(device, group))
            filling.settle(most)

    def weights(self, device: Vessel, user: str, group: str) -> Weights:
        """Return by what the weights of a user, who has a session on ``device``, are multiplied there."""
        rates = self._rates.get(device)
        if not rates or not self._is_steered[device]:
            return Weights()
        own = next((each.last for each in rates.values() if each.last.user == user), None)
        if own is None:
            return Weights()
        least = _LEAST / len(rates)
        filling = self._users.get(group)
        of_user = filling.entitled(device, user, own.user_weight) if filling is not None else 1.0
        of_group = self._groups.entitled(device, group, own.group_weight)
        now = Weights(max(least, of_user), max(least, of_group))
        told = self._told.get((device, user, group))
        if told is not None and all(
            abs(new - old) <= _SAME * old + _SAME_OF_ALL for new, old in zip(now, told, strict=True)
        ):
            return told
        self._told[device, user, group] = now
        return now

    def used(self, user: str) -> float:
        """Return how many devices' time ``user`` has used lately, of all the pool's."""
        rates = (each for known in self._rates.values() for each in known.values())
        return sum(each.used for each in rates if each.last.user == user)

    def fair(self, user: str, group: str) -> float:
        """Return how many devices' time a fair pool gives ``user``, by what they want where they are."""
        filling = self._users.get(group)
        return filling.total(user) if filling is not None else 0.0

    def _wanted(self, device: Vessel) -> dict[str, dict[str, Claim]]:
        """Return what each user could use of a device, by group; of one that is not steered, what they do use."""
        is_steered, found = self._is_steered[device], dict[str, dict[str, Claim]]()
        for each in self._rates[device].values():
            one = each.last
            part = (demand(each.used, each.wanted) if is_steered else each.used) if each.is_known else 0.0
            users = found.setdefault(one.group, {})
            before = users.get(one.user)
            users[one.user] = Claim(one.user_weight, min(1.0, part + (before.demand if before else 0.0)))
        return found

    def _put(self, filling: Filling, device: Vessel, claims: Mapping[str, Claim], capacity: float) -> None:
        if self._is_steered[device]:
            filling.set(device, claims, capacity)
        else:
            filling.hold(device, {one: claim.demand for one, claim in claims.items()})


def _together(users: Mapping[str, Claim]) -> float:
    return min(1.0, sum(claim.demand for claim in users.values()))
