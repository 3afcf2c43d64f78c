"""Small pools divided in two ways: as the ledger does it, and by the definition of fairness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from gpu_backend.gateway.filling import Filling, Flags, Floats, Vessel


class Claim(NamedTuple):
    """What one holder could use of a device, and how much they weigh against others."""

    weight: float
    demand: float


Demands = Mapping[Vessel, Mapping[str, Claim]]


@dataclass
class Divided:
    """A pool that was divided, asked by names."""

    filling: Filling
    pairs: list[tuple[Vessel, str]]
    users: list[str]

    def part(self, vessel: Vessel, user: str) -> float:
        return float(self.filling.parts[self.pairs.index((vessel, user))])

    def total(self, user: str) -> float:
        return float(self.filling.totals[self.users.index(user)]) if user in self.users else 0.0

    def entitled(self, vessel: Vessel, user: str) -> float:
        return float(self.filling.entitled()[self.pairs.index((vessel, user))])


def divided(
    demands: Demands, held: frozenset[Vessel] = frozenset(), start: Mapping[tuple[Vessel, str], float] | None = None
) -> Divided:
    """Return how the pool is divided, from ``start`` or from nothing."""
    vessels = list(demands)
    pairs = [(vessel, user) for vessel in vessels for user in demands[vessel]]
    users = list(dict.fromkeys(user for _, user in pairs))
    claims = [demands[vessel][user] for vessel, user in pairs]
    parts: Floats = np.array([(start or {}).get(pair, 0.0) for pair in pairs])
    filling = Filling(
        np.array([vessels.index(vessel) for vessel, _ in pairs]), np.array([users.index(user) for _, user in pairs]),
        np.array([claim.weight for claim in claims]), parts,
    )  # fmt: skip
    is_held: Flags = np.array([vessel in held for vessel in vessels])
    assert filling.settle(np.array([claim.demand for claim in claims]), np.ones(len(vessels)), is_held, 100_000)
    return Divided(filling, pairs, users)


def fair_totals(demands: Demands) -> dict[str, float]:
    """Return what each user has of a max-min fair pool: by trying every set of users for who is held back most.

    No set of users can have more than their vessels hold of what they want there. The set for which that is least, per
    unit of weight, is the worst off; it gets just that. The others share what is left in the same way.
    """
    weights = {user: claim.weight for claims in demands.values() for user, claim in claims.items()}

    def most(users: frozenset[str]) -> float:
        return sum(
            min(1.0, sum(claim.demand for user, claim in claims.items() if user in users))
            for claims in demands.values()
        )

    totals: dict[str, float] = {}
    while open_ones := sorted(weights.keys() - totals.keys()):
        done = frozenset(totals)
        level, worst = min(
            ((most(done | set(some)) - most(done)) / sum(weights[user] for user in some), some)
            for count in range(1, len(open_ones) + 1)
            for some in combinations(open_ones, count)
        )
        totals |= {user: level * weights[user] for user in worst}
    return totals
