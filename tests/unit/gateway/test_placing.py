"""Where sessions go, by which rule and with which reason: pure decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gateway.entitlements import Rights, refuse_own_device
from gpu_backend.gateway.loads import DeviceLoad, Mix, Tenant, Tenants, Wanted, mix_of
from gpu_backend.gateway.placement import place, with_one_more
from gpu_backend.gateway.placing import DEFAULT_RULES, RULES, Around, costs, obstacle, reason
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.lifecycle.states import Session, SessionState
from gpu_backend.wire.wish import Wish

GIB = 1 << 30


def devices(count: int, **changes: object) -> list[DeviceLoad]:
    plain = DeviceLoad("n", 0, "cuda", "a GPU", 80 * GIB, capacity=8)
    return [replace(plain, ordinal=number, **changes) for number in range(count)]  # type: ignore[arg-type]


def want(user: str = "ada", **changes: object) -> Wanted:
    return Wanted(user=user, **changes)  # type: ignore[arg-type]


def go(
    loads: list[DeviceLoad], *wishes: Wanted, rules: tuple[str, ...] = DEFAULT_RULES
) -> tuple[list[DeviceLoad], list[int]]:
    """Place one after the other; return the loads and where each went, -1 for nowhere."""
    went = []
    for one in wishes:
        spot = place(loads, "", one.memory_bytes, one, rules)
        went.append(spot.ordinal if isinstance(spot, DeviceLoad) else -1)
        if isinstance(spot, DeviceLoad):
            loads = with_one_more(loads, spot, one)
    return loads, went


def test_six_notebooks_and_two_are_spread_evenly() -> None:
    for order in (["six"] * 6 + ["two"] * 2, ["two", "six"] * 2 + ["six"] * 4):
        loads, _ = go(devices(2), *map(want, order))
        own = [[tenant.user for tenant in load.tenants].count("six") for load in loads]
        others = [[tenant.user for tenant in load.tenants].count("two") for load in loads]
        assert (own, others) == ([3, 3], [1, 1])


def test_spread_does_not_send_a_second_notebook_into_a_crowd() -> None:
    empty, crowded = devices(2)
    crowded = replace(crowded, sessions=7, tenants=Tenants(Tenant(want(f"u{n}")) for n in range(7)))
    _, went = go([empty, crowded], want(), want())
    assert went == [0, 0]


def test_best_fit_leaves_whole_devices_to_large_sessions() -> None:
    half, quarter = want(request=0.5, memory_bytes=40 * GIB), want("eve", request=0.25, memory_bytes=20 * GIB)
    loads, went = go(devices(2), half, quarter, quarter, rules=("best_fit",))
    assert went == [0, 0, 0]
    assert go(loads, want("bob", request=1.0, memory_bytes=80 * GIB), rules=("best_fit",))[1] == [1]
    assert go(devices(2), half, quarter, rules=("load",))[1] == [0, 1]
    # No more is promised of a device's time than there is, while another has it.
    assert go(devices(2), want(request=0.75), want("eve", request=0.5), rules=("best_fit",))[1] == [0, 1]


def test_sessions_that_want_different_halves_of_a_device_go_together() -> None:
    sums, products = want("a", mix=Mix(0.1, 0.9)), want("b", mix=Mix(0.9, 0.1))
    loads, went = go(devices(2), sums, products, rules=("interference",))
    assert went == [0, 1]  # an empty device disturbs least
    loads, went = go(loads, want("c", mix=Mix(0.8, 0.1)), want("d", mix=Mix(0.1, 0.8)), rules=("interference",))
    assert went == [0, 1]


def test_what_a_session_uses_follows_from_its_classes_of_ops() -> None:
    assert mix_of((3.0, 0.0, 1.0), 0.8) == pytest.approx(Mix(0.2, 0.6))
    assert mix_of((), 0.5) == Mix(0.25, 0.25)


def test_near_goes_to_a_linked_device() -> None:
    loads = [replace(one, island="n/0" if one.ordinal in (1, 3) else "n/1") for one in devices(4)]
    loads = with_one_more(loads, loads[1], want())
    _, went = go(loads, want(), rules=("near", "spread"))
    assert went == [3]
    assert "island n/0" in reason(loads[3], want(), loads, ("near", "spread"))
    assert go(devices(2), want(), rules=("near", "spread"))[1] == [0]  # where nothing is known, nothing is linked


def test_labels_join_keep_apart_and_exclude() -> None:
    loads, went = go(devices(3), want(affinity="train"), want("eve"), want(affinity="train"))
    assert went == [0, 1, 0]
    _, went = go(loads, want("eve", affinity="train"))
    assert went == [2], "another user's label says nothing"
    _, went = go(devices(2), *[want(anti_affinity="replica")] * 3)
    assert went == [0, 1, -1]
    loads, went = go(devices(2), want(exclusion="mine"), want("eve"), want(exclusion="mine"), want("bob"), want())
    assert went == [0, 1, 0, 1, 1]
    assert go(loads, want(exclusion="other"))[1] == [-1]


def test_a_whole_device_is_nobody_elses() -> None:
    loads, went = go(devices(2), want(is_whole=True), want("eve"), want(), want("bob", is_whole=True))
    assert went == [0, 1, 1, -1]
    refusal = place(loads, "", 0, want("bob", is_whole=True))
    assert isinstance(refusal, Refusal)
    assert "somebody is there" in refusal.message
    assert "nobody else is on it" in reason(devices(1)[0], want(is_whole=True), devices(2), DEFAULT_RULES)


def test_a_device_of_ones_own_needs_the_right_to_it() -> None:
    def held(ordinal: int, wish: Wish) -> Session:
        return Session(
            id=f"s{ordinal}", user="ada", client_key="k", label="", node="n", ordinal=ordinal, device_kind="cuda",
            memory_limit_bytes=0, lease_seconds=1.0, opened_at=0.0, state=SessionState.SERVING, epoch=1, wish=wish,
        )  # fmt: skip

    whole, mine = Wish(is_whole=True), Wish(exclusion="mine")
    assert refuse_own_device(Wish(affinity="a"), Rights(), []) is None
    for wish in (whole, mine):
        refusal = refuse_own_device(wish, Rights(), [])
        assert refusal is not None
        assert refusal.message.endswith("; in this pool 0 is the most that you may have.")
        assert refuse_own_device(wish, Rights(whole_devices=1), []) is None
        refusal = refuse_own_device(wish, Rights(whole_devices=1), [held(0, whole)])
        assert refusal is not None
        assert refusal.message.endswith("; in this pool 1 is the most that you may have, and you have 1 already.")
    assert refuse_own_device(mine, Rights(whole_devices=1), [held(0, mine)]) is None


def test_the_reason_names_the_rule_that_decided() -> None:
    two = devices(2)
    loads = with_one_more(two, two[0], want())
    assert reason(loads[1], want(), loads, DEFAULT_RULES).endswith("(0 of 8, 0 yours) (rule spread)")
    assert reason(two[0], want(), two, DEFAULT_RULES) == "as good as any other"
    assert reason(two[0], want(), two[:1], DEFAULT_RULES) == "no other device is possible"


@st.composite
def wishes(draw: st.DrawFn) -> Wanted:
    labels = st.sampled_from(["", "", "", "x", "y"])
    return want(
        draw(st.sampled_from(["ada", "bob", "eve"])), memory_bytes=draw(st.sampled_from([0, 10 * GIB, 40 * GIB])),
        request=draw(st.sampled_from([0.0, 0.25, 0.5])), affinity=draw(labels), anti_affinity=draw(labels),
        exclusion=draw(labels), is_whole=draw(st.integers(0, 9)) == 0,
        mix=draw(st.sampled_from([Mix(0.9, 0.1), Mix(0.1, 0.9), Mix(0.0, 0.0)])),
    )  # fmt: skip


@given(st.lists(wishes(), max_size=30), st.permutations(sorted(RULES)), st.integers(1, 4))
def test_no_rule_breaks_a_wall_or_overfills_a_device(asked: list[Wanted], rules: list[str], count: int) -> None:
    loads = devices(count)
    for one in asked:
        before = loads
        spot = place(loads, "", one.memory_bytes, one, rules)
        assert spot == place(list(reversed(loads)), "", one.memory_bytes, one, rules), "the order of devices matters"
        if isinstance(spot, DeviceLoad):
            assert not obstacle(spot, one, Around(one, before))
            assert reason(spot, one, before, rules)
            loads = with_one_more(loads, spot, one)
    for load in loads:
        assert load.sessions == len(load.tenants) <= load.capacity
        assert load.promised_bytes == sum(tenant.wanted.memory_bytes for tenant in load.tenants) <= load.total_bytes
        for number, tenant in enumerate(load.tenants):
            alone, others = tenant.wanted, [*load.tenants[:number], *load.tenants[number + 1 :]]
            assert not (alone.is_whole and others)
            assert not alone.exclusion or all(
                (one.user, one.wanted.exclusion) == (alone.user, alone.exclusion) for one in others
            )
            mine = [one.wanted.anti_affinity for one in others if one.user == alone.user]
            assert not alone.anti_affinity or alone.anti_affinity not in mine


@given(st.lists(wishes(), max_size=20), st.integers(1, 4), wishes())
def test_what_is_asked_once_is_what_would_be_asked_of_each_device(asked: list[Wanted], count: int, one: Wanted) -> None:
    loads, _ = go([replace(load, island=f"i{load.ordinal // 2}") for load in devices(count)], *asked)
    theirs = [[tenant.wanted for tenant in load.tenants if tenant.user == one.user] for load in loads]
    around = Around(one, loads)
    assert around.islands == {load.island for load, mine in zip(loads, theirs, strict=True) if mine}
    assert around.has_excluded == any(other.exclusion == one.exclusion for mine in theirs for other in mine)
    assert around.has_label == any(other.affinity == one.affinity for mine in theirs for other in mine)
    for load, mine in zip(loads, theirs, strict=True):
        everybody = [tenant.wanted for tenant in load.tenants]
        assert load.tenants.request == sum(other.request for other in everybody)
        assert load.tenants.by_user.get(one.user, []) == mine
        is_among_strangers = any(other.is_whole or other.exclusion for other in everybody)
        assert load.tenants.keep_off == is_among_strangers
        if not (one.is_whole or one.exclusion or one.affinity or one.anti_affinity or is_among_strangers):
            assert obstacle(load, one, around) == ""


@given(st.lists(wishes(), max_size=20), st.permutations(sorted(RULES)), st.integers(1, 5), wishes())
def test_the_device_taken_is_the_one_that_costs_least_by_all_rules(
    asked: list[Wanted], rules: list[str], count: int, one: Wanted
) -> None:
    """Rules are asked only of devices that are still equal, and walls not where there are none: as if they were."""
    loads, _ = go(
        [replace(load, island=f"i{load.ordinal // 2}", warm=load.ordinal % 2) for load in devices(count)], *asked
    )
    spot = place(loads, "", one.memory_bytes, one, rules)
    around = Around(one, loads)
    possible = [
        load
        for load in loads
        if load.sessions < load.capacity
        and load.promised_bytes + one.memory_bytes <= load.total_bytes
        and not obstacle(load, one, around)
    ]
    if isinstance(spot, Refusal):
        assert not possible
    else:
        least = min(possible, key=lambda load: (*costs(load, one, around, rules), -load.warm, load.ordinal))
        assert spot == least


@given(st.lists(wishes(), max_size=8), st.lists(wishes(), min_size=1, max_size=12))
def test_interference_is_the_same_however_often_it_is_asked(there: list[Wanted], asked: list[Wanted]) -> None:
    tenants = Tenants(map(Tenant, there))
    for one in asked * 2:
        mix = one.mix
        anew = sum(mix.compute * other.mix.compute + mix.memory * other.mix.memory for other in there)
        assert tenants.same_half(mix) == anew


def test_a_decision_asks_each_device_of_a_large_pool_a_fixed_number_of_times() -> None:
    class Counted(Tenants):
        asked = 0

        @property
        def by_user(self) -> Mapping[str, list[Wanted]]:
            Counted.asked += 1
            return super().by_user

    def asked(count: int, one: Wanted, rule: str) -> int:
        Counted.asked = 0
        loads = [replace(load, island="i", tenants=Counted([Tenant(want("eve"))])) for load in devices(count)]
        assert isinstance(place(loads, "", 0, one, (rule,)), DeviceLoad)
        return Counted.asked

    for one, rule in ((want(), "near"), (want(affinity="a"), "load"), (want(), "spread")):
        assert asked(400, one, rule) <= 4 * asked(100, one, rule)
