"""The division of several devices among users: fair by the best, wasteless, and found from wherever it starts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gateway.filling import water_levels
from tests.unit.gateway.dividing import Claim, Demands, Divided, divided, fair_totals

USERS = "abcdef"


@st.composite
def pools(draw: st.DrawFn) -> Demands:
    weights = {user: draw(st.sampled_from([0.5, 1.0, 2.0, 3.0])) for user in USERS}
    demands = {}
    for number in range(draw(st.integers(1, 5))):
        users = draw(st.sets(st.sampled_from(USERS), min_size=1))
        demands["n", number] = {
            user: Claim(weights[user], draw(st.sampled_from([0.05, 0.3, 1.0, 1.0]))) for user in sorted(users)
        }
    return demands


def is_max_min(demands: Demands, filling: Divided, off: float = 0.03) -> None:
    """Check what max-min fairness is: nobody could have more but from somebody who has no more than they."""
    for vessel, claims in demands.items():
        parts = {user: filling.part(vessel, user) for user in claims}
        for poor, claim in claims.items():
            if parts[poor] >= claim.demand - off:
                continue
            level = filling.total(poor) / claim.weight
            for rich in claims:
                if rich != poor and parts[rich] > off:
                    assert filling.total(rich) / claims[rich].weight <= level + off, (vessel, poor, rich)


@given(pools())
def test_no_division_is_better_for_the_least_served_and_nothing_is_wasted(demands: Demands) -> None:
    filling = divided(demands)
    for vessel, claims in demands.items():
        given_out = sum(filling.part(vessel, user) for user in claims)
        wanted = sum(claim.demand for claim in claims.values())
        assert given_out == pytest.approx(min(1.0, wanted), abs=0.003)
        assert all(0 <= filling.part(vessel, user) <= claims[user].demand + 1e-9 for user in claims)
    is_max_min(demands, filling)


@given(pools())
def test_everybody_has_what_the_definition_of_fairness_gives_them(demands: Demands) -> None:
    filling = divided(demands)
    for user, total in fair_totals(demands).items():
        assert filling.total(user) == pytest.approx(total, abs=0.02)


@given(pools(), pools())
def test_what_was_before_does_not_matter(before: Demands, demands: Demands) -> None:
    first = divided(before)
    moved = divided(demands, start=dict(zip(first.pairs, first.filling.parts.tolist(), strict=True)))
    fresh = divided(demands)
    for user in moved.users:
        assert moved.total(user) == pytest.approx(fresh.total(user), abs=0.03)
        here = sum(moved.part(vessel, user) for vessel, claims in demands.items() if user in claims)
        assert moved.total(user) == pytest.approx(here, abs=1e-6)


def test_six_notebooks_beside_two_come_out_even_wherever_they_are() -> None:
    want = Claim(1.0, 1.0)
    filling = divided({("n", 0): {"six": want}, ("n", 1): {"six": want, "two": want}})
    assert filling.total("six") == pytest.approx(1.0, abs=0.002)
    assert filling.total("two") == pytest.approx(1.0, abs=0.002)
    assert filling.entitled(("n", 1), "two") == 1.0
    assert filling.entitled(("n", 1), "six") == pytest.approx(0.0, abs=0.002)


def test_what_is_used_where_nobody_steers_counts_and_does_not_move() -> None:
    want, held = Claim(1.0, 1.0), frozenset({("n", 0)})
    there = {"a": want, "b": want}
    filling = divided({("n", 0): {"a": Claim(1.0, 0.5), "c": Claim(1.0, 0.5)}, ("n", 1): there}, held)
    assert filling.part(("n", 0), "a") == 0.5
    assert (filling.total("a"), filling.total("b")) == pytest.approx((0.75, 0.75), abs=0.002)
    filling = divided({("n", 0): {"c": Claim(1.0, 1.0), "d": Claim(1.0, 1.0)}, ("n", 1): there}, held)
    assert (filling.total("c"), filling.total("d")) == (1.0, 1.0)  # though together they had more than there is
    assert (filling.total("a"), filling.total("b")) == pytest.approx((0.5, 0.5), abs=0.002)


def test_what_is_cut_short_goes_on_from_there() -> None:
    """A chain of devices, each with a user of both neighbours: what is scarce at one end is felt at the other."""
    want = Claim(1.0, 1.0)
    demands = {("n", number): {f"u{number}": want, f"u{number + 1}": want} for number in range(30)}
    demands["n", 0]["more"] = want
    filling = divided(demands)
    wanted, capacity = np.ones(len(filling.pairs)), np.ones(len(demands))
    filling.filling.parts[:] = 0.0
    steps = 1
    while not filling.filling.settle(wanted, capacity, most_steps=0):
        steps += 1
    assert steps > 1
    assert filling.filling.totals == pytest.approx(divided(demands).filling.totals, abs=0.03)


def test_the_level_of_a_vessel_that_is_large_enough_is_infinite() -> None:
    """Four vessels at once: enough for all; three times the weight; something elsewhere; nothing in it at all."""
    vessel = np.array([0, 0, 1, 1, 2, 2, 3])
    weight = np.array([1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 2.0])
    elsewhere = np.array([0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 3.0])
    demand = np.array([0.4, 0.6, 1.0, 1.0, 1.0, 1.0, 1.0])
    levels = water_levels(vessel, weight, elsewhere, demand, np.array([1.0, 1.0, 1.0, 0.0]))
    assert levels == pytest.approx([np.inf, 0.25, 0.75, 1.5])
