"""The division of several devices among users: fair by the best, wasteless, and found from wherever it starts."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gateway.filling import Claim, Filling, Vessel, water_level

Demands = dict[Vessel, dict[str, Claim]]
USERS = "abcdef"


def filled(demands: Demands) -> Filling:
    filling = Filling()
    for vessel, claims in demands.items():
        filling.set(vessel, claims)
    assert filling.settle(100_000)
    return filling


@st.composite
def pools(draw: st.DrawFn) -> Demands:
    weights = {user: draw(st.sampled_from([0.5, 1.0, 2.0, 3.0])) for user in USERS}
    demands: Demands = {}
    for number in range(draw(st.integers(1, 5))):
        users = draw(st.sets(st.sampled_from(USERS), min_size=1))
        demands["n", number] = {
            user: Claim(weights[user], draw(st.sampled_from([0.05, 0.3, 1.0, 1.0]))) for user in sorted(users)
        }
    return demands


def is_max_min(demands: Demands, filling: Filling, off: float = 0.03) -> None:
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
    filling = filled(demands)
    for vessel, claims in demands.items():
        given_out = sum(filling.part(vessel, user) for user in claims)
        wanted = sum(claim.demand for claim in claims.values())
        assert given_out == pytest.approx(min(1.0, wanted), abs=0.003)
        assert all(0 <= filling.part(vessel, user) <= claims[user].demand + 1e-9 for user in claims)
    is_max_min(demands, filling)


@given(pools(), pools())
def test_what_was_before_does_not_matter(before: Demands, demands: Demands) -> None:
    moved = filled(before)
    for vessel in before.keys() - demands.keys():
        moved.set(vessel, {})
    for vessel, claims in demands.items():
        moved.set(vessel, claims)
    assert moved.settle(100_000)
    fresh = filled(demands)
    for user in USERS:
        assert moved.total(user) == pytest.approx(fresh.total(user), abs=0.03)
        assert moved.total(user) == pytest.approx(sum(moved.part(vessel, user) for vessel in demands), abs=1e-6)


def test_six_notebooks_beside_two_come_out_even_wherever_they_are() -> None:
    want = Claim(1.0, 1.0)
    filling = filled({("n", 0): {"six": want}, ("n", 1): {"six": want, "two": want}})
    assert filling.total("six") == pytest.approx(1.0, abs=0.002)
    assert filling.total("two") == pytest.approx(1.0, abs=0.002)
    assert filling.entitled(("n", 1), "two", 1.0) == 1.0
    assert filling.entitled(("n", 1), "six", 1.0) == pytest.approx(0.0, abs=0.002)


def test_what_is_used_where_nobody_steers_counts_and_does_not_move() -> None:
    want = Claim(1.0, 1.0)
    filling = Filling()
    filling.hold(("n", 0), {"a": 0.5, "c": 0.5})
    filling.set(("n", 1), {"a": want, "b": want})
    assert filling.settle(100)
    assert filling.part(("n", 0), "a") == 0.5
    assert (filling.total("a"), filling.total("b")) == pytest.approx((0.75, 0.75), abs=0.002)
    filling.hold(("n", 0), {"c": 1.0})
    assert filling.settle(100)
    assert (filling.total("a"), filling.total("b")) == pytest.approx((0.5, 0.5), abs=0.002)


def test_the_level_of_a_vessel_that_is_large_enough_is_infinite() -> None:
    assert water_level([(1.0, 0.0, 0.4), (1.0, 0.0, 0.6)], 1.0) == inf
    assert water_level([(1.0, 0.0, 1.0), (3.0, 0.0, 1.0)], 1.0) == pytest.approx(0.25)
    assert water_level([(1.0, 0.5, 1.0), (1.0, 0.0, 1.0)], 1.0) == pytest.approx(0.75)
