"""A pool of many devices in steps of a second: placement, the ledger of shares, and devices that divide by weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from random import Random

import msgspec

from gpu_backend.arbiter.simulation.trace import Cell, Script
from gpu_backend.gate.terms import SessionTerms
from gpu_backend.gateway.filling import Claim, Filling, Vessel, water_level
from gpu_backend.gateway.loads import DeviceLoad, Wanted
from gpu_backend.gateway.placement import place, with_one_more
from gpu_backend.gateway.pool_shares import Booking, PoolShares

__all__ = ["PoolOutcome", "SimulatedPool"]

#: Shares are judged over so many seconds.
_WINDOW = 5
#: Among so many devices, drawn at random, a session gets one: as good as among all, and as quick with a thousand.
_CANDIDATES = 32
_PLACES = 40
#: Whose fair part is less than this of a device is not judged by it.
_LEAST_FAIR = 0.05


class PoolOutcome(msgspec.Struct, frozen=True):
    """What was seen."""

    #: Of each user who wanted something in all of a window of 5 s, how far what they had was from the max-min fair part
    #: of what their notebooks wanted where they were, as a fraction of it.
    share_errors: list[float]
    #: Of each cell of a second and more, how many times longer it took than alone.
    slowdowns: list[float]
    #: Device seconds in which somebody wanted the device, and that were used.
    wanted_seconds: float
    used_seconds: float


@dataclass(slots=True, eq=False)
class _Notebook:
    script: Script
    device: Vessel
    cells: list[Cell] = field(default_factory=list)
    left: float = 0.0
    began: int = 0
    work: float = 0.0
    used: float = 0.0
    wanted: float = 0.0
    weight: float = 1.0

    @property
    def user(self) -> str:
        return self.script.terms.user


class SimulatedPool:
    """Runs scripts, whose sessions it places itself. ``has_ledger`` False leaves every device to itself."""

    def __init__(
        self, scripts: Sequence[Script], devices: int, rules: Sequence[str], has_ledger: bool = True, seed: int = 0
    ) -> None:
        self._ledger = PoolShares() if has_ledger else None
        self._random = Random(seed)
        self._loads = [DeviceLoad("sim", n, "cuda", "a GPU", 80 << 30, _PLACES) for n in range(devices)]
        self._notebooks = [_Notebook(script, self._placed(script, rules)) for script in scripts]
        self._on: dict[Vessel, list[_Notebook]] = {}
        for one in self._notebooks:
            self._on.setdefault(one.device, []).append(one)
            one.cells = list(reversed(one.script.cells))
        self._active: dict[Vessel, list[_Notebook]] = {}
        self._arrivals: dict[int, list[_Notebook]] = {}
        self._had: dict[str, float] = {}
        self._steady: dict[str, int] = {}
        self._busy: dict[Vessel, dict[str, float]] = {}  # what each user wanted of a device in this window
        self._errors: list[float] = []
        self._slowdowns: list[float] = []
        self._wanted = self._used = 0.0
        #: What was told to each session, and when.
        self.changes: dict[Vessel, list[tuple[float, SessionTerms]]] = {}

    def run(self, seconds: int) -> PoolOutcome:
        """Run for so many steps of a second."""
        for one in self._notebooks:
            self._plan(one, one.script.start_seconds)
        for now in range(seconds):
            for one in self._arrivals.pop(now, ()):
                self._begin(one, now)
            self._divide(now)
            if self._ledger is not None:
                self._settle(self._ledger, now + 1)
            if (now + 1) % _WINDOW == 0:
                self._judge()
        return PoolOutcome(self._errors, self._slowdowns, self._wanted, self._used)

    def scripts_on(self, device: Vessel) -> tuple[Script, ...]:
        """Return what ran on a device."""
        return tuple(msgspec.structs.replace(one.script, device=device[1]) for one in self._on.get(device, ()))

    # --- sessions -----------------------------------------------------------------------------------------------------

    def _placed(self, script: Script, rules: Sequence[str]) -> Vessel:
        wanted = Wanted(user=script.terms.user, request=script.terms.request)
        drawn = self._random.sample(self._loads, min(_CANDIDATES, len(self._loads)))
        spot = place(drawn, "", 0, wanted, rules)
        if not isinstance(spot, DeviceLoad):
            spot = min(self._loads, key=lambda load: load.sessions)
        (self._loads[spot.ordinal],) = with_one_more([spot], spot, wanted)
        return spot.node, spot.ordinal

    def _plan(self, one: _Notebook, free_at: float) -> None:
        if one.cells:
            self._arrivals.setdefault(ceil(free_at + one.cells[-1].think_seconds), []).append(one)

    def _begin(self, one: _Notebook, now: int) -> None:
        one.work = one.left = one.cells.pop().seconds
        one.began = now
        self._active.setdefault(one.device, []).append(one)

    # --- time ---------------------------------------------------------------------------------------------------------

    def _divide(self, now: int) -> None:
        """Let each device divide a second among those who want it."""
        wanting: set[str] = set()
        for device, active in list(self._active.items()):
            users: dict[str, list[_Notebook]] = {}
            for one in active:
                users.setdefault(one.user, []).append(one)
            wanted = {user: min(1.0, sum(one.left for one in ones)) for user, ones in users.items()}
            level = water_level([(users[user][0].weight, 0.0, part) for user, part in wanted.items()], 1.0)
            for user, ones in users.items():
                part = wanted[user] if level == inf else min(wanted[user], level * ones[0].weight)
                self._serve(ones, part, now)
                self._had[user] = self._had.get(user, 0.0) + part
                self._used += part
                busy = self._busy.setdefault(device, {})
                busy[user] = busy.get(user, 0.0) + wanted[user]
                if any(one.left > 0 for one in ones):
                    wanting.add(user)
            self._wanted += min(1.0, sum(wanted.values()))
            still = [one for one in active if one.left > 0]
            if still:
                self._active[device] = still
            else:
                del self._active[device]
        for user in wanting:
            self._steady[user] = self._steady.get(user, 0) + 1

    def _serve(self, ones: list[_Notebook], part: float, now: int) -> None:
        """Divide a user's part among their notebooks; who is done goes on thinking."""
        level = water_level([(1.0, 0.0, one.left) for one in ones], part)
        for one in ones:
            got = one.left if level == inf else min(one.left, level)
            one.left -= got
            one.used += got
            if one.left > 1e-9:
                one.wanted += 1.0
                continue
            one.left = 0.0
            one.wanted += got
            if one.work >= 1:
                one_took = now - one.began + max(got, 1e-3)
                self._slowdowns.append(max(1.0, one_took / one.work))
            self._plan(one, now + got)

    def _settle(self, ledger: PoolShares, now: int) -> None:
        for device, ones in self._on.items():
            ledger.hear(device, [_booking(one, now) for one in ones])
        ledger.settle()
        for device, active in self._active.items():
            for one in active:
                terms = one.script.terms
                weight = terms.user_weight * ledger.weights(device, terms.user, terms.group).user
                if weight != one.weight:
                    one.weight = weight
                    told = msgspec.structs.replace(terms, user_weight=weight)
                    self.changes.setdefault(device, []).append((float(now), told))

    def _judge(self) -> None:
        """Compare the window that ends with the fair division of what was wanted in it."""
        fair = Filling()
        for device, wanted in self._busy.items():
            fair.set(device, {user: Claim(1.0, min(1.0, part / _WINDOW)) for user, part in wanted.items()})
        fair.settle(20 * len(self._busy) + 100)
        for user, steps in self._steady.items():
            part = fair.total(user)
            if steps == _WINDOW and part > _LEAST_FAIR:
                self._errors.append(abs(self._had.get(user, 0.0) / _WINDOW - part) / part)
        for table in (self._had, self._steady, self._busy):
            table.clear()


def _booking(one: _Notebook, now: int) -> Booking:
    terms = one.script.terms
    return Booking(
        terms.session, terms.user, terms.group, terms.user_weight, terms.group_weight, one.used, one.wanted, now + 1.0
    )  # fmt: skip
