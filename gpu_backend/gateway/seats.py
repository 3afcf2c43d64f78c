"""Who has sessions on which devices, as numbers: what the ledger of the pool reckons with. Pure.

A claim is what a user wants of a device, a share what their group does. They are numbered device by device, so that the
claims of a share, and the shares of a device, stand together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from gpu_backend.gateway.filling import Filling, Floats, Vessel

__all__ = ["Seat", "Seating", "Seats", "kept"]

K = TypeVar("K")


class Seat(NamedTuple):
    """A session's place on a device."""

    #: The session and its epoch.
    key: str
    user: str
    group: str = ""
    user_weight: float = 1.0
    group_weight: float = 1.0


#: Everybody who is on a device now.
Seating = Mapping[Vessel, tuple[Seat, ...]]


class Seats:
    """The numbers of sessions, of what users and groups have on each device, and of these themselves."""

    def __init__(self, seating: Seating) -> None:
        self.seating = seating
        every = [(device, seat) for device, seats in seating.items() for seat in seats]
        counts = [len(seats) for seats in seating.values()]
        #: Sessions on each device; the device of each session.
        self.sessions = np.array(counts, np.float64)
        self.device = np.repeat(np.arange(len(counts)), np.array(counts, np.intp))
        #: The number of each session, by its key.
        self.rows = {seat.key: row for row, (_, seat) in enumerate(every)}
        #: The numbers of shares, by device and group; of claims, by device, user and group.
        self.shares: dict[tuple[Vessel, str], int] = {}
        self.claims: dict[tuple[Vessel, str, str], int] = {}
        #: The numbers of users in their groups.
        self.users: dict[tuple[str, str], int] = {}
        claim_of, user_weights, group_weights = [0] * len(every), dict[int, float](), dict[int, float]()
        device_of = self.device.tolist()
        for row in sorted(range(len(every)), key=lambda row: (device_of[row], every[row][1].group)):
            device, seat = every[row]
            share = self.shares.setdefault((device, seat.group), len(self.shares))
            claim_of[row] = claim = self.claims.setdefault((device, seat.user, seat.group), len(self.claims))
            self.users.setdefault((seat.user, seat.group), len(self.users))
            user_weights[claim], group_weights[share] = seat.user_weight, seat.group_weight
        self._user_weights = np.array(list(user_weights.values()))
        self._group_weights = np.array(list(group_weights.values()))
        #: The claim of each session; the share of each claim; the device of each share.
        self.claim = np.array(claim_of, np.intp)
        self.share = np.array([self.shares[device, group] for device, _, group in self.claims], np.intp)
        numbers = {device: number for number, device in enumerate(seating)}
        self.share_device = np.array([numbers[device] for device, _ in self.shares], np.intp)

    def fill_groups(self, parts: Floats) -> Filling:
        """Return the division of devices among groups, who have these ``parts`` of it now."""
        groups = {group: number for number, group in enumerate(dict.fromkeys(group for _, group in self.shares))}
        holders = np.array([groups[group] for _, group in self.shares], np.intp)
        return Filling(self.share_device, holders, self._group_weights, parts)

    def fill_users(self, parts: Floats) -> Filling:
        """Return the division of groups' shares among their users, who have these ``parts`` of it now."""
        holders = np.array([self.users[user, group] for _, user, group in self.claims], np.intp)
        return Filling(self.share, holders, self._user_weights, parts)


def kept(values: Floats, before: Mapping[K, int], now: Mapping[K, int], otherwise: float) -> Floats:
    """Return ``values``, numbered as in ``before``, by the numbers of ``now``; ``otherwise`` for newcomers."""
    found = np.array([before.get(key, -1) for key in now], np.intp)
    return np.concatenate((values, np.full((1, *values.shape[1:]), otherwise)))[found]
