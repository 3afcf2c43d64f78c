"""Who is served next, and what they are told: pure decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gateway.changes import Changes
from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.loads import DeviceLoad, Wanted
from gpu_backend.gateway.placement import refuse_beside_own, with_one_more
from gpu_backend.gateway.queue import PATIENCE_SECONDS, Name, Waiter, allot, expected_wait, in_order
from gpu_backend.gateway.queueing import Line
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.wire.wish import Wish

NOW = 10_000.0


def waiter(name: str, user: str = "ada", waited: float = 0.0, kind: str = "", memory: int = 0) -> Waiter:
    return Waiter(
        client_key=user, waiter=name, user=user, label="", since=NOW - waited, kind=kind, memory_bytes=memory
    )  # fmt: skip


def order(waiters: list[Waiter], **held: int) -> list[str]:
    return [one.waiter for one in in_order(waiters, held, lambda user: 1.0, NOW)]


def device(sessions: int = 0, capacity: int = 2, kind: str = "cpu", total: int = 100, promised: int = 0) -> DeviceLoad:
    return DeviceLoad("n", 0, kind, "d", total, capacity, sessions, promised)


def test_first_come_first_served() -> None:
    assert order([waiter("b", "eve", 5.0), waiter("a", "ada", 9.0), waiter("c", "bob", 1.0)]) == ["a", "b", "c"]


def test_whoever_holds_less_comes_first() -> None:
    assert order([waiter("a", "ada", 9.0), waiter("b", "eve", 5.0)], ada=2) == ["b", "a"]


def test_one_user_with_many_notebooks_does_not_fill_the_queue() -> None:
    many = [waiter(f"a{n}", "ada", 9.0 - n) for n in range(3)]
    assert order([*many, waiter("b", "eve", 1.0)]) == ["a0", "b", "a1", "a2"]


def test_patience_wins_in_the_end() -> None:
    assert order([waiter("a", "ada", PATIENCE_SECONDS + 2), waiter("b", "eve", 1.0)], ada=1) == ["a", "b"]
    assert order([waiter("a", "ada", PATIENCE_SECONDS - 2), waiter("b", "eve", 1.0)], ada=1) == ["b", "a"]


def test_weight_counts() -> None:
    waiters = [waiter("a", "ada", 1.0), waiter("b", "eve", 1.0)]
    weights = {"ada": 4.0, "eve": 1.0}
    ranked = in_order(waiters, {"ada": 2, "eve": 1}, weights.__getitem__, NOW)
    assert [one.waiter for one in ranked] == ["a", "b"]


def test_a_session_that_lost_its_place_is_not_counted_against_itself() -> None:
    lost = replace(waiter("a", "ada", 1.0), has_lease=True)
    assert order([waiter("b", "eve", 0.5), lost], ada=1) == ["a", "b"]


def test_places_go_to_the_first_and_the_others_are_told_why_not() -> None:
    names = [waiter(name) for name in "abc"]
    found = allot(names, [device(sessions=0, capacity=2)])
    assert [isinstance(found[one.name], DeviceLoad) for one in names] == [True, True, False]


def test_whoever_needs_another_kind_passes() -> None:
    first, second = waiter("a", kind="cuda"), waiter("b", kind="cpu")
    found = allot([first, second], [device(2, 2, "cuda"), device(1, 2, "cpu")])
    assert isinstance(found[first.name], Refusal)
    assert isinstance(found[second.name], DeviceLoad)


def test_those_who_need_little_do_not_pass_one_who_needs_much() -> None:
    large, small = waiter("a", memory=80), waiter("b", memory=10)
    found = allot([large, small], [device(capacity=9, total=100, promised=40)])
    assert isinstance(found[large.name], Refusal)
    assert isinstance(found[small.name], Refusal)
    assert isinstance(allot([small], [device(capacity=9, total=100, promised=40)])[small.name], DeviceLoad)


def crowded(load: DeviceLoad, user: str, *promises: int) -> DeviceLoad:
    """Return ``load`` with sessions of ``user`` on it, which are promised so much each."""
    for promise in promises:
        (load,) = with_one_more([load], load, Wanted(user=user, memory_bytes=promise))
    return load


def test_nothing_is_kept_for_one_who_does_not_fit_beside_their_own_sessions() -> None:
    """They decide alone how long these stay: free places would be lost to all others for as long as they like."""
    load = crowded(crowded(device(capacity=8), "eve", 1), "bob", 10)
    greedy, small = waiter("a", "eve", memory=100), waiter("b", memory=10)
    found = allot([greedy, small], [load])
    assert isinstance(found[greedy.name], Refusal)
    assert isinstance(found[small.name], DeviceLoad)
    told = refuse_beside_own([load], "", 100, greedy.wanted)
    assert told is not None
    assert told.message.startswith("Beside your own sessions there is no place for it")
    patient = waiter("a", "eve", memory=99)
    assert isinstance(allot([patient, small], [load])[small.name], Refusal), "it fits once bob has left"
    assert refuse_beside_own([load], "", 99, patient.wanted) is None
    assert refuse_beside_own([device(2, 2)], "", 0, small.wanted) is None, "none of the sessions there is their own"


def test_what_is_needed_by_two_is_kept_for_the_one_who_can_have_it() -> None:
    load = crowded(crowded(device(capacity=8), "eve", 1), "bob", 10)
    greedy, able, small = waiter("a", "eve", memory=100), waiter("b", memory=100), waiter("c", "carl", memory=10)
    found = allot([greedy, able, small], [load])
    assert isinstance(found[small.name], Refusal), "it would pass who needs much, and fits once the others have left"


def test_a_user_keeps_one_device_however_much_they_wait_for() -> None:
    loads = [replace(crowded(device(capacity=8), "bob", 50), ordinal=n) for n in range(3)]
    greedy = [waiter(f"a{n}", "eve", memory=80 + n) for n in range(3)]
    small = [waiter(f"b{n}", user, memory=10) for n, user in enumerate(("ada", "carl", "dora"))]
    found = allot([*greedy, *small], loads)
    assert [isinstance(found[one.name], DeviceLoad) for one in small] == [True] * 3


def test_several_are_kept_only_where_so_many_can_be_had() -> None:
    loads = [replace(crowded(device(capacity=2), "bob", 0, 0), ordinal=0), replace(device(), ordinal=1)]
    loads = [loads[0], replace(crowded(loads[1], "eve", 60), ordinal=1)]
    both = replace(waiter("a", "eve", memory=50), wish=Wish(devices=2))
    found = allot([both, waiter("b")], loads)
    assert isinstance(found[both.name], Refusal)
    assert isinstance(found["ada", "b"], DeviceLoad), "one of the two has no room beside a session of eve's own"


@pytest.mark.parametrize(
    ("position", "places", "lengths", "expected"),
    [
        (1, 4, [400.0, 800.0, 1200.0], 200.0), (3, 4, [800.0] * 3, 600.0), (1, 0, [1.0] * 9, -1.0),
        (1, 4, [1.0] * 2, -1.0),
    ],
)  # fmt: skip
def test_the_guess(position: int, places: int, lengths: list[float], expected: float) -> None:
    assert expected_wait(position, places, lengths) == expected


WAITERS = st.lists(
    st.builds(
        waiter, st.uuids().map(str), st.sampled_from("abcd"), st.floats(0, 5_000), st.sampled_from(["", "cpu", "cuda"]),
        st.integers(0, 120),
    ),
    max_size=12,
)  # fmt: skip
HELD = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 6))
LOADS = st.lists(
    st.builds(
        device, st.integers(0, 3), st.integers(1, 3), st.sampled_from(["cpu", "cuda"]), st.integers(0, 100),
        st.integers(0, 100),
    ),
    max_size=4,
)  # fmt: skip


@given(WAITERS, HELD)
def test_the_order_is_fair(waiters: list[Waiter], held: dict[str, int]) -> None:
    ranked = in_order(waiters, held, lambda user: 1.0, NOW)
    assert Counter(ranked) == Counter(waiters)
    for user in "abcd":  # of one user's, the longest wait comes first
        since = [one.since for one in ranked if one.user == user]
        assert since == sorted(since)
    for place, one in enumerate(ranked):
        behind = {other.user for other in ranked[place + 1 :] if other.since < one.since}
        held_by_one = held.get(one.user, 0)
        earlier = Counter(other.user for other in ranked[:place])
        # Whoever is passed by somebody who came later holds, or has got ahead of it, more than that one.
        assert all(held.get(user, 0) + earlier[user] > held_by_one + earlier[one.user] - 1 for user in behind)


@given(WAITERS, HELD, st.integers(1, 8))
def test_nobody_waits_for_ever(waiters: list[Waiter], held: dict[str, int], burden: int) -> None:
    """After long enough, whoever waits is ahead of everybody who came since, whatever they hold."""
    old = waiter("old", "a", waited=(burden + 20) * PATIENCE_SECONDS)
    fresh = [replace(one, since=NOW) for one in waiters]
    assert in_order([*fresh, old], {**held, "a": burden}, lambda user: 1.0, NOW)[0] == old


@given(WAITERS, LOADS)
def test_no_place_is_given_twice_and_none_is_withheld_from_the_first(
    waiters: list[Waiter], loads: list[DeviceLoad]
) -> None:
    loads = [replace(load, ordinal=number) for number, load in enumerate(loads)]
    found = allot(waiters, loads)
    given = [(one, spot) for one in waiters if isinstance(spot := found[one.name], DeviceLoad)]
    for load in loads:
        here = [one for one, spot in given if spot.ordinal == load.ordinal]
        if here:
            assert load.sessions + len(here) <= load.capacity
            assert load.promised_bytes + sum(one.memory_bytes for one in here) <= load.total_bytes
    if waiters:
        first = waiters[0]
        fits = [
            load for load in loads
            if first.kind in ("", load.kind) and load.sessions < load.capacity
            and load.promised_bytes + first.memory_bytes <= load.total_bytes
        ]  # fmt: skip
        assert isinstance(found[first.name], DeviceLoad) == bool(fits)


@given(WAITERS, LOADS, st.integers(1, 100))
def test_who_cannot_fit_beside_their_own_changes_nothing_for_others(
    waiters: list[Waiter], loads: list[DeviceLoad], own: int
) -> None:
    loads = [replace(crowded(load, "eve", own), ordinal=number) for number, load in enumerate(loads)]
    greedy = waiter("greedy", "eve", memory=max((load.total_bytes for load in loads), default=0))
    found = allot([greedy, *waiters], loads)
    assert isinstance(found.pop(greedy.name), Refusal)
    assert _without_words(found) == _without_words(allot(waiters, loads))


def _without_words(found: Mapping[Name, DeviceLoad | Refusal]) -> dict[Name, object]:
    """Return what each gets: words count the places as they were when the first was refused who needs the same."""
    return {name: one.code if isinstance(one, Refusal) else one for name, one in found.items()}


def test_with_another_amount_of_memory_the_turn_is_kept_and_with_more_devices_it_is_not(tmp_path: Path) -> None:
    records = Directory(tmp_path / "directory.sqlite")
    line = Line(records, Changes(), list, list, lambda user: 1.0)
    first = replace(waiter("w", memory=1), since=1.0, wish=Wish(anti_affinity="notebook-1", sessions=2))
    line.hear(first)
    assert line.anew(replace(first, since=2.0)).since == 2.0
    assert first.name in line, "it asks for the same"
    more = line.anew(replace(first, since=2.0, memory_bytes=2))
    assert (first.name in line, more.since, more.memory_bytes) == (False, 1.0, 2)
    line.hear(more)
    assert line.anew(replace(more, since=3.0, wish=Wish())).since == 3.0
    assert first.name not in line
    records.close()
