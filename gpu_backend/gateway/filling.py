"""The weighted max-min fair parts of several devices, for holders who can each use some of them. Pure.

Each device is a vessel of its capacity. One after the other is filled above what its holders have from the others: who
has least in all, per unit of weight, gets first, until the device is full or nobody there wants more. Vessels are gone
through again as long as anything moves. What stays in the end is the max-min fair division: the sets of totals that can
be had are the bases of a polymatroid (the flows from holders through the devices that they can use), on which the one
division that is best for the least served is also the least sum of squares, and filling one vessel in the best way
while the others stand is the descent of that sum along one block (Fujishige, Math. Oper. Res. 5(2), 1980; the same rule
for packets over several links: Yap et al., CoNEXT 2013).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

__all__ = ["Claim", "Filling", "Holder", "Vessel", "water_level"]

#: A device: its node and its number there.
Vessel = tuple[str, int]
#: A user, or a group.
Holder = str

#: Parts that move by less, of a device, move nobody else's.
_STILL = 0.0005
#: So much more than there is may be wanted before anybody is held back: sums of parts that stood still.
_SLACK = 0.002


class Claim(NamedTuple):
    """What one holder could use of a device, and how much they weigh against others."""

    weight: float
    #: Part of the device, 0 to 1.
    demand: float


def water_level(claims: Iterable[tuple[float, float, float]], capacity: float) -> float:
    """Return the level up to which a vessel is filled; infinity if there is enough for everybody.

    Parameters
    ----------
    claims
        Of each holder the weight, what they have elsewhere, and what they could use here.
    capacity
        What there is.
    """
    steps: list[tuple[float, float]] = []
    wanted = 0.0
    for weight, elsewhere, demand in claims:
        if demand > 0:
            steps.append((elsewhere / weight, weight))
            steps.append(((elsewhere + demand) / weight, -weight))
            wanted += demand
    if wanted <= capacity + _SLACK:
        return inf
    steps.sort()
    level, slope, filled = steps[0][0], 0.0, 0.0
    for at, change in steps:
        if slope > 0 and filled + slope * (at - level) >= capacity:
            return level + (capacity - filled) / slope
        filled += slope * (at - level)
        level, slope = at, slope + change
    return level


class Filling:
    """Keeps the division while demands, weights and devices change; what has not changed is not computed again."""

    def __init__(self) -> None:
        self._capacity: dict[Vessel, float] = {}
        self._claims: dict[Vessel, dict[Holder, Claim]] = {}
        self._parts: dict[Vessel, dict[Holder, float]] = {}
        self._levels: dict[Vessel, float] = {}
        self._totals: dict[Holder, float] = {}
        self._vessels_of: dict[Holder, dict[Vessel, None]] = {}
        self._due: deque[Vessel] = deque()
        self._is_due: set[Vessel] = set()

    def set(self, vessel: Vessel, claims: Mapping[Holder, Claim], capacity: float = 1.0) -> None:
        """Say who could use how much of a vessel; nobody any more if there are no claims."""
        before = self._claims.get(vessel, {})
        if not claims:
            self._drop(vessel)
            return
        moved = abs(self._capacity.get(vessel, -1.0) - capacity) > _STILL
        if not moved and before.keys() == claims.keys() and all(_is_near(before[one], claims[one]) for one in claims):
            return
        for gone in before.keys() - claims.keys():
            self._take(vessel, gone)
        for holder in claims:
            self._vessels_of.setdefault(holder, {})[vessel] = None
        self._claims[vessel], self._capacity[vessel] = dict(claims), capacity
        self._mark(vessel)

    def hold(self, vessel: Vessel, parts: Mapping[Holder, float]) -> None:
        """Say what holders have of a vessel that is divided by others' rules: it counts, and does not move."""
        before = self._parts.get(vessel, {})
        for gone in before.keys() - parts.keys():
            self._take(vessel, gone)
        self._claims.pop(vessel, None)
        self._levels.pop(vessel, None)
        for holder, part in parts.items():
            self._vessels_of.setdefault(holder, {})[vessel] = None
            self._give(vessel, holder, part)

    def settle(self, most: int) -> bool:
        """Fill what is due, ``most`` vessels at a time; return whether nothing is due any more."""
        for _ in range(most):
            if not self._due:
                return True
            vessel = self._due.popleft()
            self._is_due.discard(vessel)
            if vessel in self._claims:
                self._fill(vessel)
        return not self._due

    def part(self, vessel: Vessel, holder: Holder) -> float:
        """Return what ``holder`` gets of ``vessel``."""
        return self._parts.get(vessel, {}).get(holder, 0.0)

    def total(self, holder: Holder) -> float:
        """Return what ``holder`` gets of all vessels."""
        return self._totals.get(holder, 0.0)

    def level(self, vessel: Vessel) -> float:
        """Return the total per unit of weight up to which holders are served there; infinity if there is enough."""
        return self._levels.get(vessel, inf)

    def entitled(self, vessel: Vessel, holder: Holder, weight: float) -> float:
        """Return which part of their fair total ``holder`` is to have from ``vessel`` if they want it there: 0 to 1."""
        fair = self.level(vessel) * weight
        elsewhere = max(0.0, self.total(holder) - self.part(vessel, holder))
        if elsewhere <= _STILL or fair == inf:
            return 1.0
        return max(0.0, 1.0 - elsewhere / fair) if fair > 0 else 0.0

    def _fill(self, vessel: Vessel) -> None:
        claims, parts = self._claims[vessel], self._parts.setdefault(vessel, {})
        elsewhere = {one: max(0.0, self._totals.get(one, 0.0) - parts.get(one, 0.0)) for one in claims}
        level = self._levels[vessel] = water_level(
            [(claim.weight, elsewhere[one], claim.demand) for one, claim in claims.items()], self._capacity[vessel]
        )
        for one, claim in claims.items():
            part = min(claim.demand, max(0.0, level * claim.weight - elsewhere[one]))
            self._give(vessel, one, part)

    def _give(self, vessel: Vessel, holder: Holder, part: float) -> None:
        parts = self._parts.setdefault(vessel, {})
        before = parts.get(holder, 0.0)
        parts[holder] = part
        self._totals[holder] = self._totals.get(holder, 0.0) + part - before
        if abs(part - before) > _STILL:
            for other in self._vessels_of[holder]:
                if other != vessel:
                    self._mark(other)

    def _take(self, vessel: Vessel, holder: Holder) -> None:
        self._give(vessel, holder, 0.0)
        self._parts[vessel].pop(holder, None)
        vessels = self._vessels_of.get(holder, {})
        vessels.pop(vessel, None)
        if not vessels:
            self._vessels_of.pop(holder, None)
            self._totals.pop(holder, None)

    def _drop(self, vessel: Vessel) -> None:
        for holder in [*self._parts.get(vessel, {}), *self._claims.get(vessel, {})]:
            if vessel in self._vessels_of.get(holder, {}):
                self._take(vessel, holder)
        for table in (self._parts, self._claims, self._capacity, self._levels):
            table.pop(vessel, None)

    def _mark(self, vessel: Vessel) -> None:
        if vessel not in self._is_due:
            self._is_due.add(vessel)
            self._due.append(vessel)


def _is_near(one: Claim, other: Claim) -> bool:
    return one.weight == other.weight and abs(one.demand - other.demand) <= _STILL
