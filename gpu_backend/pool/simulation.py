"""A pool of many devices in steps of a second: placement, the ledger of shares, and devices that divide by weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from random import Random

import msgspec
import numpy as np

from gpu_backend.arbiter.simulation.trace import Script
from gpu_backend.gate.terms import SessionTerms
from gpu_backend.gateway.filling import Filling, Floats, Ints, Vessel, water_levels
from gpu_backend.gateway.loads import DeviceLoad, Mix, Wanted
from gpu_backend.gateway.placement import place, with_one_more
from gpu_backend.gateway.pool_shares import PoolShares
from gpu_backend.gateway.seats import Seat

__all__ = ["PoolOutcome", "SimulatedPool"]

_NODE = "sim"
#: Shares are judged over so many seconds.
_WINDOW = 5
#: Among so many devices, drawn at random, a session gets one: as good as among all, and as quick with a thousand.
_CANDIDATES = 32
_PLACES = 40
#: So many devices of a host are linked.
_LINKED = 8
#: What a window's fair division may take, in groups of devices that are filled at a time.
_MOST_STEPS = 2000
#: Whose fair part is less than this of a device is not judged by it.
_LEAST_FAIR = 0.05
#: Work that is as good as done: what is left of sums of floats, seconds.
_DUST = 1e-9


class PoolOutcome(msgspec.Struct, frozen=True):
    """What was seen."""

    #: Of each user who wanted something in all of a window of 5 s, how far what they had was from the max-min fair part
    #: of what their notebooks wanted where they were, as a fraction of it.
    share_errors: list[float]
    #: Of each cell of a second and more, how many times longer it took than alone.
    slowdowns: list[float]
    #: Of each such cell, how much longer it took than alone, seconds.
    waits: list[float]
    #: Device seconds in all.
    total_seconds: float
    #: Device seconds in which somebody wanted the device, and that were used.
    wanted_seconds: float
    used_seconds: float


class SimulatedPool:
    """Runs scripts, whose sessions it places itself. ``has_ledger`` False leaves every device to itself.

    Notebooks are numbered by device and user. So are guests: a guest is a user on one device.
    """

    def __init__(
        self, scripts: Sequence[Script], devices: int, rules: Sequence[str], has_ledger: bool = True, seed: int = 0
    ) -> None:
        self._ledger = PoolShares() if has_ledger else None
        self._devices = devices
        spots = _placed(scripts, devices, rules, Random(seed))
        seated = sorted(zip(spots, scripts, strict=True), key=lambda one: (one[0], one[1].terms.user))
        self._scripts = [script for _, script in seated]
        self._device = np.array([device for device, _ in seated], np.intp)
        guests = {(device, script.terms.user): script.terms for device, script in seated}
        numbers = {guest: number for number, guest in enumerate(guests)}
        users = {user: number for number, user in enumerate(dict.fromkeys(user for _, user in guests))}
        self._guest = np.array([numbers[device, script.terms.user] for device, script in seated], np.intp)
        self._guests = list(guests.values())
        self._guest_device = np.array([device for device, _ in guests], np.intp)
        self._guest_user = np.array([users[user] for _, user in guests], np.intp)
        self._weight = np.array([terms.user_weight for terms in self._guests])
        self._rows = list(pairwise(np.searchsorted(self._device, np.arange(devices + 1)).tolist()))
        seats = [_seat(script.terms) for script in self._scripts]
        self._seats = [tuple(seats[begin:end]) for begin, end in self._rows]
        self._cells = [list(reversed(script.cells)) for script in self._scripts]
        self._begun: dict[int, tuple[int, float]] = {}
        self._arrivals: dict[int, list[int]] = {}
        self._left, self._used, self._wanted = (np.zeros(len(seated)) for _ in range(3))
        self._slowdowns: list[float] = []
        self._waits: list[float] = []
        #: What was told to each session, and when.
        self.changes: dict[Vessel, list[tuple[float, SessionTerms]]] = {}

    def run(self, seconds: int) -> PoolOutcome:
        """Run for so many steps of a second."""
        for number, script in enumerate(self._scripts):
            self._plan(number, script.start_seconds)
        window, errors, wanted, used = _Window(self._guest_device, self._guest_user), list[float](), 0.0, 0.0
        for now in range(seconds):
            for number in self._arrivals.pop(now, ()):
                self._left[number] = work = self._cells[number].pop().seconds
                self._begun[number] = now, work
            could, had = self._divide(now)
            wanted += float(np.minimum(1.0, np.bincount(self._guest_device, could)).sum())
            used += float(had.sum())
            if self._ledger is not None:
                self._settle(self._ledger, now + 1)
            window.note(could, had, self._guest[self._left > 0])
            if (now + 1) % _WINDOW == 0:
                errors += window.judge()
        return PoolOutcome(errors, self._slowdowns, self._waits, float(seconds * self._devices), wanted, used)

    def scripts_on(self, device: Vessel) -> tuple[Script, ...]:
        """Return what ran on a device."""
        there = np.flatnonzero(self._device == device[1]).tolist()
        return tuple(msgspec.structs.replace(self._scripts[number], device=device[1]) for number in there)

    def _plan(self, number: int, free_at: float) -> None:
        if cells := self._cells[number]:
            self._arrivals.setdefault(ceil(free_at + cells[-1].think_seconds), []).append(number)

    def _divide(self, now: int) -> tuple[Floats, Floats]:
        """Let each device divide a second among those who want it; return what each guest wanted, and had."""
        active = np.flatnonzero(self._left)
        left, guest = self._left[active], self._guest[active]
        could = np.minimum(1.0, np.bincount(guest, left, len(self._guests)))
        had = _parts(self._guest_device, self._weight, could, np.ones(self._devices))
        got = _parts(guest, np.ones(len(active)), left, had)
        left = np.where(left - got > _DUST, left - got, 0.0)
        self._left[active] = left
        self._used[active] += got
        self._wanted[active] += np.where(left > 0, 1.0, got)
        is_done = left == 0
        for number, last in zip(active[is_done].tolist(), got[is_done].tolist(), strict=True):
            self._end(number, now, last)
        return could, had

    def _end(self, number: int, now: int, last: float) -> None:
        """A notebook is done with its cell, in ``last`` seconds of this step, and goes on thinking."""
        began, work = self._begun.pop(number)
        if work >= 1:
            took = max(work, now - began + last)
            self._slowdowns.append(took / work)
            self._waits.append(took - work)
        self._plan(number, now + last)

    def _settle(self, ledger: PoolShares, now: int) -> None:
        """Let the ledger hear every device, and devices hear what changes for those who want them."""
        books = np.column_stack((self._used, self._wanted, np.full(len(self._used), float(now))))
        for device, (begin, end) in enumerate(self._rows):
            ledger.hear((_NODE, device), self._seats[device], books[begin:end])
        ledger.settle()
        for guest in np.unique(self._guest[self._left > 0]).tolist():
            terms, vessel = self._guests[guest], (_NODE, int(self._guest_device[guest]))
            weight = terms.user_weight * ledger.weights(vessel, terms.user, terms.group).user
            if weight != self._weight[guest]:
                self._weight[guest] = weight
                self._tell(guest, weight, now)

    def _tell(self, guest: int, weight: float, now: int) -> None:
        changes = self.changes.setdefault((_NODE, int(self._guest_device[guest])), [])
        for number in range(*np.searchsorted(self._guest, (guest, guest + 1)).tolist()):
            terms = msgspec.structs.replace(self._scripts[number].terms, user_weight=weight)
            changes.append((float(now), terms))


class _Window:
    """Compares some seconds with the fair division of what was wanted in them."""

    def __init__(self, device: Ints, user: Ints) -> None:
        """Begin, with the device and the user of each guest."""
        self._fair = Filling(device, user, np.ones(len(user)))
        self._device, self._user = device, user
        self._could, self._had = np.zeros(len(user)), np.zeros(len(user))
        self._steady = np.zeros(len(self._fair.totals))

    def note(self, could: Floats, had: Floats, waiting: Ints) -> None:
        """Take in a second: what each guest wanted and had, and who still wants something at its end."""
        self._could += could
        self._had += had
        self._steady[np.unique(self._user[waiting])] += 1

    def judge(self) -> list[float]:
        """Return how far those who wanted something all the time were from their fair parts, and begin anew."""
        could, capacity = self._could / _WINDOW, np.ones(len(self._fair.levels))
        self._fair.settle(could, capacity, most_steps=_MOST_STEPS)
        had, fair = np.bincount(self._user, self._had) / _WINDOW, self._fair.totals
        judged = (self._steady == _WINDOW) & (fair > _LEAST_FAIR)
        for counted in (self._could, self._had, self._steady):
            counted[:] = 0.0
        errors: list[float] = (np.abs(had - fair)[judged] / fair[judged]).tolist()
        return errors


def _placed(scripts: Sequence[Script], devices: int, rules: Sequence[str], random: Random) -> list[int]:
    """Place one session after the other, with a use of its device drawn for each; return on which device each is."""
    loads = [
        DeviceLoad(_NODE, n, "cuda", "a GPU", 80 << 30, _PLACES, island=f"host {n // _LINKED}") for n in range(devices)
    ]
    spots = []
    for script in scripts:
        compute = random.random()
        mix = Mix(compute / 2, (1 - compute) / 2)
        wanted = Wanted(user=script.terms.user, request=script.terms.request, mix=mix)
        spot = place(random.sample(loads, min(_CANDIDATES, devices)), "", 0, wanted, rules)
        if not isinstance(spot, DeviceLoad):
            spot = min(loads, key=lambda load: load.sessions)
        (loads[spot.ordinal],) = with_one_more([spot], spot, wanted)
        spots.append(spot.ordinal)
    return spots


def _seat(terms: SessionTerms) -> Seat:
    return Seat(terms.session, terms.user, terms.group, terms.user_weight, terms.group_weight)


def _parts(vessel: Ints, weight: Floats, demand: Floats, capacity: Floats) -> Floats:
    """Return what each gets of their vessel, by weights; ``capacity`` is of every vessel there may be."""
    wanting = np.flatnonzero(demand)
    vessels, among = np.unique(vessel[wanting], return_inverse=True)
    nothing = np.zeros(len(wanting))
    levels = water_levels(among, weight[wanting], nothing, demand[wanting], capacity[vessels])
    parts = np.zeros(len(demand))
    parts[wanting] = np.minimum(demand[wanting], levels[among] * weight[wanting])
    return parts
