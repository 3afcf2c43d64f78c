"""Who has sessions on which devices, as numbers: what the ledger of the pool reckons with. Pure.

A claim is what a user wants of a device, a share what their group does. They are numbered device by device, so that the
claims of a share, and the shares of a device, stand together. In a large pool somebody always comes or goes, and most
devices are as they were: each is numbered by itself, once, and the numbers of the pool are these and an offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from gpu_backend.gateway.filling import Filling, Floats, Ints, Vessel

__all__ = ["Bench", "Holders", "Moves", "Numbered", "Seat", "Seats"]

K = TypeVar("K")


class Seat(NamedTuple):
    """A session's place on a device."""

    #: The session and its epoch.
    key: str
    user: str
    group: str = ""
    user_weight: float = 1.0
    group_weight: float = 1.0


class Bench:
    """Everybody who is on one device, numbered from 0. Two that are equal are told apart, and that is what is asked."""

    def __init__(self, seats: Sequence[Seat]) -> None:
        self.seats = tuple(seats)
        #: Sessions by their keys.
        self.rows = {seat.key: row for row, seat in enumerate(self.seats)}
        #: Shares by group; claims by user and group.
        self.shares: dict[str, int] = {}
        self.claims: dict[tuple[str, str], int] = {}
        claim_of, user_weights, group_weights = [0] * len(self.seats), dict[int, float](), dict[int, float]()
        for row in sorted(range(len(self.seats)), key=lambda row: self.seats[row].group):
            seat = self.seats[row]
            share = self.shares.setdefault(seat.group, len(self.shares))
            claim_of[row] = claim = self.claims.setdefault((seat.user, seat.group), len(self.claims))
            user_weights[claim], group_weights[share] = seat.user_weight, seat.group_weight
        #: The claim of each session; the share of each claim.
        self.claim_of = np.array(claim_of, np.intp)
        self.share_of = np.array([self.shares[group] for _, group in self.claims], np.intp)
        self.user_weights = np.array(list(user_weights.values()))
        self.group_weights = np.array(list(group_weights.values()))


class Numbered(Generic[K]):
    """Things of devices, numbered through: the numbers that each device gives to its own, and where they begin."""

    def __init__(self, of_devices: Mapping[Vessel, Mapping[K, int]]) -> None:
        self._of_devices = of_devices
        self.counts = np.array([len(numbers) for numbers in of_devices.values()], np.intp)
        self.begins = np.cumsum(self.counts) - self.counts

    @cached_property
    def _begin(self) -> dict[Vessel, int]:
        return dict(zip(self._of_devices, self.begins.tolist(), strict=True))

    def number(self, device: Vessel, key: K) -> int | None:
        """Return the number of ``key`` on ``device``."""
        number = self._of_devices.get(device, {}).get(key)
        return None if number is None else self._begin[device] + number

    def all_of(self, numbers: Ints, counts: Ints) -> Ints:
        """Return the numbers, of these things, that each device gives as its own, ``counts`` by device."""
        return numbers + np.repeat(self.begins, counts)

    def device_of(self) -> Ints:
        """Return the number of the device of each."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def moved_from(self, before: Numbered[K]) -> Moves:
        """Return which number each had in ``before``."""
        devices, every = list(self._of_devices), list(self._of_devices.values())
        if devices == list(before._of_devices):  # as nearly always
            thens, begins = list(before._of_devices.values()), before.begins
        else:
            thens = [before._of_devices.get(device, {}) for device in devices]
            begins = np.array([before._begin.get(device, 0) for device in devices], np.intp)
        found = np.arange(int(self.counts.sum())) + np.repeat(begins - self.begins, self.counts)
        for at, (numbers, then) in enumerate(zip(every, thens, strict=True)):
            if then is not numbers:
                begin, now = int(begins[at]), int(self.begins[at])
                moved = [begin + then[key] if key in then else -1 for key in numbers]
                found[now : now + len(moved)] = moved
        return Moves(found)


class Moves(NamedTuple):
    """How things that are numbered have moved."""

    #: Of each, the number that it had; -1 of newcomers.
    before: Ints

    def kept(self, values: Floats, otherwise: float) -> Floats:
        """Return ``values``, numbered as they were, by the numbers of now; ``otherwise`` for newcomers."""
        return np.concatenate((values, np.full((1, *values.shape[1:]), otherwise)))[self.before]


class Holders:
    """Numbers of users in their groups, and of groups: given once, and kept for those who come back.

    There are as many as ever had a session, which is few beside what else is kept of them.
    """

    def __init__(self) -> None:
        self.users: dict[tuple[str, str], int] = {}
        self._groups: dict[str, int] = {}

    def users_of(self, bench: Bench) -> Ints:
        """Return the number of the user of each claim."""
        return np.array([self.users.setdefault(who, len(self.users)) for who in bench.claims], np.intp)

    def groups_of(self, bench: Bench) -> Ints:
        """Return the number of the group of each share."""
        return np.array([self._groups.setdefault(group, len(self._groups)) for group in bench.shares], np.intp)


class _Columns(NamedTuple):
    """What benches say of their sessions, claims and shares, one bench after the other."""

    claim_of: Ints
    share_of: Ints
    user_weights: Floats
    users: Ints
    group_weights: Floats
    groups: Ints


def _columns(benches: Iterable[Bench], holders: Holders) -> _Columns:
    nothing = _Columns(*[np.zeros(0, kind) for kind in (np.intp, np.intp, float, np.intp, float, np.intp)])
    of_each = [
        (
            bench.claim_of, bench.share_of, bench.user_weights, holders.users_of(bench), bench.group_weights,
            holders.groups_of(bench),
        )
        for bench in benches
    ]  # fmt: skip
    return _Columns(*[np.concatenate(column) for column in zip(nothing, *of_each, strict=True)])


class Seats:
    """The numbers of sessions, of what users and groups have on each device, and of these themselves."""

    def __init__(self, benches: Mapping[Vessel, Bench], before: Seats | None = None) -> None:
        """Number who is on ``benches``, as new or with what is known of ``before``."""
        self.benches = benches
        #: The numbers of users and groups, which they keep from one `Seats` to the next.
        self.holders: Holders = Holders() if before is None else before.holders
        #: The numbers of sessions, of claims and of shares, by device.
        self.rows = Numbered({device: bench.rows for device, bench in benches.items()})
        self.claims = Numbered({device: bench.claims for device, bench in benches.items()})
        self.shares = Numbered({device: bench.shares for device, bench in benches.items()})
        if before is not None and list(before.benches) == list(benches):
            self._columns = self._spliced(before)
        else:
            self._columns = _columns(benches.values(), self.holders)
        #: Sessions on each device; the device of each session.
        self.sessions = self.rows.counts.astype(np.float64)
        self.device = self.rows.device_of()
        #: The claim of each session; the share of each claim; the device of each share.
        self.claim = self.claims.all_of(self._columns.claim_of, self.rows.counts)
        self.share = self.shares.all_of(self._columns.share_of, self.claims.counts)
        self.share_device = self.shares.device_of()

    def _spliced(self, before: Seats) -> _Columns:
        """Return the columns of ``before``, with those of the benches put in that are others now."""
        now, then = list(self.benches.values()), before.benches.values()
        changed = [at for at, (bench, former) in enumerate(zip(now, then, strict=True)) if bench is not former]
        fresh = [_columns([now[at]], self.holders) for at in changed]
        rows, claims = (before.rows.begins, before.rows.counts), (before.claims.begins, before.claims.counts)
        shares = before.shares.begins, before.shares.counts
        made = []
        places = (rows, claims, claims, claims, shares, shares)
        for place, (column, (begins, counts)) in enumerate(zip(before._columns, places, strict=True)):
            pieces, begin = [], 0
            for at, columns in zip(changed, fresh, strict=True):
                pieces += [column[begin : int(begins[at])], columns[place]]
                begin = int(begins[at] + counts[at])
            made.append(np.concatenate([*pieces, column[begin:]]))
        return _Columns(*made)

    def fill_groups(self, parts: Floats, before: Filling | None = None) -> Filling:
        """Return the division of devices among groups, who have these ``parts`` of it now."""
        return Filling(self.share_device, self._columns.groups, self._columns.group_weights, parts, before)

    def fill_users(self, parts: Floats, before: Filling | None = None) -> Filling:
        """Return the division of groups' shares among their users, who have these ``parts`` of it now."""
        return Filling(self.share, self._columns.users, self._columns.user_weights, parts, before)
