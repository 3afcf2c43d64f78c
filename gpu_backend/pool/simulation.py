"""A pool of many devices in steps of a second: placement, the ledger of shares, and devices that divide by weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from math import ceil

import msgspec
import numpy as np

from gpu_backend.arbiter.simulation.trace import Script
from gpu_backend.gate.terms import SessionTerms
from gpu_backend.gateway.filling import Filling, Floats, Ints, Vessel, water_levels
from gpu_backend.gateway.pool_shares import PoolShares
from gpu_backend.gateway.seats import Seat
from gpu_backend.pool.simulated_places import NODE, Places

__all__ = ["PoolOutcome", "SimulatedPool"]

#: Shares are judged over so many seconds.
_WINDOW = 5
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
    #: Of each notebook that got a place, how long it was waited for, seconds.
    queued: list[float]
    #: How many had none in the end.
    unplaced: int
    #: Most that waited at a time, and most that had a place.
    most_waiting: int
    most_placed: int
    #: Device seconds in all.
    total_seconds: float
    #: Device seconds in which somebody wanted the device, and that were used.
    wanted_seconds: float
    used_seconds: float


class SimulatedPool:
    """Runs scripts, whose sessions come, wait for a place, work and leave. Sessions are numbered as their scripts.

    ``has_ledger`` False leaves every device to itself. A guest is a user on one device.
    """

    def __init__(
        self, scripts: Sequence[Script], devices: int, rules: Sequence[str], has_ledger: bool = True, seed: int = 0,
        places: int = 40, watched: Collection[int] = (),
    ) -> None:  # fmt: skip
        """Have ``devices`` of so many ``places``; what is told to the ``watched`` ones is kept."""
        self._ledger = PoolShares() if has_ledger else None
        self._scripts = scripts
        self._places = Places(scripts, devices, places, rules, seed)
        self._watched = frozenset(watched)
        names = {user: number for number, user in enumerate(dict.fromkeys(script.terms.user for script in scripts))}
        self._users = len(names)
        self._user = np.array([names[script.terms.user] for script in scripts], np.intp)
        self._device = np.full(len(scripts), -1, np.intp)
        self._own_weight = np.array([script.terms.user_weight for script in scripts])
        self._weight = self._own_weight.copy()
        self._left, self._used, self._wanted = (np.zeros(len(scripts)) for _ in range(3))
        self._rows = [np.zeros(0, np.intp) for _ in range(devices)]
        self._seats: dict[Vessel, tuple[Seat, ...]] = {(NODE, device): () for device in range(devices)}
        self._cells = [list(reversed(script.cells)) for script in scripts]
        self._begun: dict[int, tuple[int, float]] = {}
        self._coming: defaultdict[int, list[int]] = defaultdict(list)
        self._arrivals: defaultdict[int, list[int]] = defaultdict(list)
        self._leaving: list[int] = []
        self._slowdowns: list[float] = []
        self._waits: list[float] = []
        #: When each session that got a place got it.
        self._placed: dict[int, int] = {}
        #: What was told to the sessions of each watched device, and when.
        self.changes: dict[Vessel, list[tuple[float, SessionTerms]]] = {}

    def run(self, seconds: int) -> PoolOutcome:
        """Run for so many steps of a second."""
        for number, script in enumerate(self._scripts):
            self._coming[ceil(script.start_seconds)].append(number)
        window, errors, wanted, used = _Window(self._users), list[float](), 0.0, 0.0
        most_waiting, most_placed, placed = 0, 0, 0
        for now in range(seconds):
            placed += self._change_places(now)
            most_waiting, most_placed = max(most_waiting, self._places.waiting), max(most_placed, placed)
            self._begin_cells(now)
            guests, could, had = self._divide(now)
            wanted += float(np.minimum(1.0, np.bincount(guests // self._users, could)).sum())
            used += float(had.sum())
            if self._ledger is not None:
                self._settle(self._ledger, now + 1)
            window.note(guests, could, had, self._user[self._left > 0])
            if (now + 1) % _WINDOW == 0:
                errors += window.judge()
        queued = [at - self._scripts[number].start_seconds for number, at in self._placed.items()]
        return PoolOutcome(
            errors, self._slowdowns, self._waits, queued, self._places.waiting, most_waiting, most_placed,
            float(seconds * len(self._rows)), wanted, used,
        )  # fmt: skip

    def scripts_on(self, device: int) -> tuple[Script, ...]:
        """Return what ran on a device, each script from when it had its place."""
        there = [number for number in np.flatnonzero(self._device == device).tolist() if number in self._placed]
        return tuple(
            msgspec.structs.replace(self._scripts[number], device=device, start_seconds=float(self._placed[number]))
            for number in there
        )

    def _change_places(self, now: int) -> int:
        """Let those go who are done, and those come who get a place; return how many more have one then."""
        changed, left = set[int](), self._leaving
        for number in left:
            device = int(self._device[number])
            self._places.leave(number, device)
            changed.add(device)
        self._leaving = []
        for number in self._coming.pop(now, ()):
            self._places.come(number)
        given = self._places.give(float(now))
        for number, device in given:
            self._device[number], self._placed[number] = device, now
            self._plan(number, now)
            changed.add(device)
        for device in changed:
            there = self._places.on(device)
            self._rows[device] = np.array(there, np.intp)
            self._seats[NODE, device] = tuple(_seat(self._scripts[number].terms) for number in there)
        return len(given) - len(left)

    def _plan(self, number: int, free_at: float) -> None:
        """Somebody thinks about their next cell; who has none is done."""
        if cells := self._cells[number]:
            self._arrivals[ceil(free_at + cells[-1].think_seconds)].append(number)
        else:
            self._leaving.append(number)

    def _begin_cells(self, now: int) -> None:
        for number in self._arrivals.pop(now, ()):
            self._left[number] = work = self._cells[number].pop().seconds
            self._begun[number] = now, work

    def _divide(self, now: int) -> tuple[Ints, Floats, Floats]:
        """Let each device divide a second among those who want it; return the guests, what they wanted, and had."""
        active = np.flatnonzero(self._left)
        active = active[np.argsort(self._device[active] * self._users + self._user[active], kind="stable")]
        guests, guest = np.unique(self._device[active] * self._users + self._user[active], return_inverse=True)
        left = self._left[active]
        could = np.minimum(1.0, np.bincount(guest, left))
        weight = np.ones(len(guests))
        weight[guest] = self._weight[active]
        had = _parts(guests // self._users, weight, could, np.ones(len(self._rows)))
        got = _parts(guest, np.ones(len(active)), left, had)
        left = np.where(left - got > _DUST, left - got, 0.0)
        self._left[active] = left
        self._used[active] += got
        self._wanted[active] += np.where(left > 0, 1.0, got)
        is_done = left == 0
        for number, last in zip(active[is_done].tolist(), got[is_done].tolist(), strict=True):
            self._end(number, now, last)
        return guests, could, had

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
        everybody = np.concatenate(self._rows)
        unused, times = np.zeros(len(self._used)), np.full(len(self._used), float(now))  # what is wanted is had
        books = np.column_stack((self._used, self._wanted, unused, times))[everybody]
        ledger.hear_all(self._seats, books)
        ledger.settle()
        weight = self._own_weight[everybody] * ledger.user_weights()
        is_told = (self._left[everybody] != 0) & (weight != self._weight[everybody])
        for number, told in sorted(zip(everybody[is_told].tolist(), weight[is_told].tolist(), strict=True)):
            self._weight[number] = told
            device = int(self._device[number])
            if device in self._watched:
                terms = msgspec.structs.replace(self._scripts[number].terms, user_weight=told)
                self.changes.setdefault((NODE, device), []).append((float(now), terms))


class _Window:
    """Compares some seconds with the fair division of what was wanted in them."""

    def __init__(self, users: int) -> None:
        """Begin, with so many users."""
        self._users = users
        self._seen: list[tuple[Ints, Floats, Floats]] = []
        self._steady = np.zeros(users)

    def note(self, guests: Ints, could: Floats, had: Floats, waiting: Ints) -> None:
        """Take in a second: what each guest wanted and had, and which users want something at its end."""
        self._seen.append((guests, could, had))
        self._steady[np.unique(waiting)] += 1

    def judge(self) -> list[float]:
        """Return how far those who wanted something all the time were from their fair parts, and begin anew."""
        every, could, had = (np.concatenate(each) for each in zip(*self._seen, strict=True))
        guests, guest = np.unique(every, return_inverse=True)
        device, user = np.unique(guests // self._users, return_inverse=True)[1], guests % self._users
        fair = Filling(device, user, np.ones(len(guests)))
        fair.settle(np.bincount(guest, could) / _WINDOW, np.ones(len(fair.levels)), most_steps=_MOST_STEPS)
        total = np.bincount(every % self._users, had, self._users)[: len(fair.totals)] / _WINDOW
        judged = (self._steady[: len(total)] == _WINDOW) & (fair.totals > _LEAST_FAIR)
        self._seen.clear()
        self._steady[:] = 0.0
        errors: list[float] = (np.abs(total - fair.totals)[judged] / fair.totals[judged]).tolist()
        return errors


def _seat(terms: SessionTerms) -> Seat:
    return Seat(terms.session, terms.user, terms.group, terms.user_weight, terms.group_weight)


def _parts(vessel: Ints, weight: Floats, demand: Floats, capacity: Floats) -> Floats:
    """Return what each gets of their vessel, by weights; ``capacity`` is of every vessel there may be."""
    wanting = np.flatnonzero(demand)
    vessels, among = np.unique(vessel[wanting], return_inverse=True)
    nothing = np.zeros(len(wanting))
    levels = water_levels(among, weight[wanting], nothing, demand[wanting], capacity[vessels], _DUST)
    parts = np.zeros(len(demand))
    parts[wanting] = np.minimum(demand[wanting], levels[among] * weight[wanting])
    return parts
