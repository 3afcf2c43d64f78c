"""The weighted max-min fair parts of several devices, for holders who can each use some of them. Pure.

Each device is a vessel of its capacity. One after the other is filled above what its holders have from the others: who
has least in all, per unit of weight, gets first, until the device is full or nobody there wants more. Vessels are gone
through again as long as anything moves. What stays in the end is the max-min fair division: the sets of totals that can
be had are the bases of a polymatroid (the flows from holders through the devices that they can use), on which the one
division that is best for the least served is also the least sum of squares, and filling one vessel in the best way
while the others stand is the descent of that sum along one block (Fujishige, Math. Oper. Res. 5(2), 1980; the same rule
for packets over several links: Yap et al., CoNEXT 2013).

Vessels without a common holder do not touch each other, so they are filled together: one sort for all of them.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt

__all__ = ["Filling", "Flags", "Floats", "Ints", "Vessel", "water_levels"]

#: A device: its node and its number there.
Vessel = tuple[str, int]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

#: Parts that move by less, of a device, move nobody else's.
STILL = 0.0005
#: Sums of parts that stood still may be so much more than there is.
_SLACK = 0.002
#: Groups of vessels that are filled at a time, after all were filled once; the next time goes on from there.
_MOST_STEPS = 400


def water_levels(
    vessel: Ints, weight: Floats, elsewhere: Floats, demand: Floats, capacity: Floats, slack: float = _SLACK
) -> Floats:
    """Return the level up to which each vessel is filled; infinity where there is enough for everybody.

    Parameters
    ----------
    vessel
        Of each claim, its vessel: ascending, and none left out.
    weight, elsewhere, demand
        Of each claim the holder's weight, what they have of other vessels, and what they could use here.
    capacity
        What there is in each vessel.
    slack
        So much more than there is may be wanted before anybody is held back.
    """
    begins = 2 * np.searchsorted(vessel, np.arange(len(capacity)))
    # Rising, the level meets where each holder begins to drink and where they have had enough.
    meets = np.concatenate((elsewhere / weight, (elsewhere + demand) / weight))
    order = np.lexsort((meets, np.concatenate((vessel, vessel))))
    meets = meets[order]
    slope = np.maximum(0.0, np.cumsum(np.concatenate((weight, -weight))[order]))
    width = np.zeros(len(meets))
    np.subtract(meets[1:], meets[:-1], out=width[:-1])
    width[begins[1:] - 1] = 0.0  # from one vessel's last to the next one's first
    after = np.cumsum(slope * width)
    before = after - slope * width
    full = before[begins] + capacity
    last = np.maximum(begins, np.minimum(np.searchsorted(after, full), len(after) - 1))
    with np.errstate(divide="ignore", invalid="ignore"):  # where there is enough, which is told apart below
        level = meets[last] + np.maximum(0.0, full - before[last]) / slope[last]
    is_enough = np.bincount(vessel, demand, len(capacity)) <= capacity + slack
    return np.where(is_enough, np.inf, level)


class Filling:
    """Divides vessels among those who have a claim on them, while what they want and what there is change.

    Arrays of claims have one entry for each vessel and holder, by vessel; no such pair occurs twice.
    """

    def __init__(
        self, vessel: Ints, holder: Ints, weight: Floats, parts: Floats | None = None, before: Filling | None = None
    ) -> None:
        """Make a division of nothing, or go on from these ``parts``, of each claim.

        What depends on who has a claim on what is taken over from ``before``, if that is still the same.
        """
        self._vessel, self._holder, self._weight = vessel, holder, weight
        #: All claims, one group of vessels after the other, and of each of these claims its group.
        self._order, self._group = _apart(vessel, holder) if before is None else before._apart(vessel, holder)
        #: What each claim gets.
        self.parts = np.zeros(len(vessel)) if parts is None else parts.copy()
        #: What each holder gets of all vessels.
        self.totals = self._summed()
        #: The total per unit of weight up to which holders are served in each vessel; infinity if there is enough.
        self.levels = np.full(_count(vessel), np.inf)

    def settle(
        self, demand: Floats, capacity: Floats, is_held: Flags | None = None, most_steps: int = _MOST_STEPS
    ) -> bool:
        """Divide anew, from how it is divided now; return whether nothing moves any more.

        Parameters
        ----------
        demand
            Of each claim, what its holder could use.
        capacity
            What there is in each vessel.
        is_held
            Vessels that are divided by others' rules: there ``demand`` is had, counts, and does not move.
        most_steps
            When to stop though something still moves; every vessel is filled once at least.
        """
        is_due = np.bincount(self._vessel, demand, len(capacity)) > capacity + _SLACK
        if is_held is not None:
            is_due &= ~is_held
        self.levels[~is_due] = np.inf
        is_scarce = is_due
        self.parts = np.where(is_scarce[self._vessel], np.minimum(self.parts, demand), demand)
        self.totals = self._summed()
        groups = int(self._group[-1]) + 1 if self._group.size else 0
        for _ in range(1 + most_steps // max(1, groups)):
            has_moved = np.zeros(len(self.totals), np.bool_)
            for claims in self._due(is_due):
                has_moved[self._fill(claims, demand, capacity)] = True
            is_due = np.zeros_like(is_scarce)
            is_due[self._vessel[has_moved[self._holder]]] = True
            is_due &= is_scarce
            if not is_due.any():
                return True
        return False

    def entitled(self) -> Floats:
        """Return of each claim which part of their fair total its holder is to have there if they want it: 0 to 1."""
        fair = self.levels[self._vessel] * self._weight
        elsewhere = self.totals[self._holder] - self.parts
        with np.errstate(divide="ignore", invalid="ignore"):  # who has nothing elsewhere is entitled to all of it
            return np.where(elsewhere <= STILL, 1.0, np.maximum(0.0, 1.0 - elsewhere / fair))

    def _apart(self, vessel: Ints, holder: Ints) -> tuple[Ints, Ints]:
        is_same = np.array_equal(vessel, self._vessel) and np.array_equal(holder, self._holder)
        return (self._order, self._group) if is_same else _apart(vessel, holder)

    def _due(self, is_due: Flags) -> list[Ints]:
        """Return the claims on vessels that are due, by groups of vessels; groups in which none is are left out."""
        chosen = is_due[self._vessel[self._order]]
        claims, group = self._order[chosen], self._group[chosen]
        ends = [*(np.flatnonzero(group[1:] != group[:-1]) + 1).tolist(), len(claims)]
        return [claims[begin:end] for begin, end in zip([0, *ends], ends, strict=False) if end > begin]

    def _fill(self, claims: Ints, demand: Floats, capacity: Floats) -> Ints:
        """Fill the vessels of ``claims``, of which no two have a common holder; return whose parts have moved."""
        if len(claims) == 1:  # as where all are of one group
            return self._fill_one(int(claims[0]), demand, capacity)
        of_claims: Ints = self._vessel[claims]  # ascending
        is_first = np.ones(len(claims), np.bool_)
        np.not_equal(of_claims[1:], of_claims[:-1], out=is_first[1:])
        vessels, vessel = of_claims[is_first], np.cumsum(is_first) - 1
        holder, weight, wanted = self._holder[claims], self._weight[claims], demand[claims]
        elsewhere = np.maximum(0.0, self.totals[holder] - self.parts[claims])
        levels = water_levels(vessel, weight, elsewhere, wanted, capacity[vessels])
        parts = np.minimum(wanted, np.maximum(0.0, levels[vessel] * weight - elsewhere))
        change = parts - self.parts[claims]
        self.levels[vessels] = levels
        self.parts[claims] = parts
        self.totals[holder] += change
        moved: Ints = holder[np.abs(change) > STILL]
        return moved

    def _fill_one(self, claim: int, demand: Floats, capacity: Floats) -> Ints:
        """Fill a vessel that nobody else has a claim on, and that has less than is wanted."""
        vessel, holder = int(self._vessel[claim]), self._holder[claim]
        weight, before = float(self._weight[claim]), float(self.parts[claim])
        elsewhere = max(0.0, float(self.totals[holder]) - before)
        level = elsewhere / weight + float(capacity[vessel]) / weight
        part = min(float(demand[claim]), max(0.0, level * weight - elsewhere))
        self.levels[vessel], self.parts[claim] = level, part
        self.totals[holder] += part - before
        return self._holder[claim : claim + 1] if abs(part - before) > STILL else self._holder[:0]

    def _summed(self) -> Floats:
        return np.bincount(self._holder, self.parts, _count(self._holder)).astype(np.float64)


def _apart(vessel: Ints, holder: Ints) -> tuple[Ints, Ints]:
    """Return the claims in groups, by vessel, and each one's group; vessels of one have no holder in common."""
    taken = [0] * _count(holder)  # of each holder, the groups of their vessels, a bit each
    every, ends = holder.tolist(), np.searchsorted(vessel, np.arange(_count(vessel)), side="right").tolist()
    group_of, begin = dict[int, int](), 0  # a group is a bit as well
    numbers = []
    for end in ends:
        here, begin = every[begin:end], end
        used = reduce(or_, map(taken.__getitem__, here), 0)
        free = ~used & (used + 1)
        for one in here:
            taken[one] |= free
        numbers.append(group_of.setdefault(free, len(group_of)))
    group = np.array(numbers, np.intp)[vessel]
    order = np.argsort(group, kind="stable")
    return order, group[order]


def _count(numbers: Ints) -> int:
    return int(numbers.max()) + 1 if numbers.size else 0
