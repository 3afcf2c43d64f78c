"""Sessions that are wanted at once, each on a device of its own: places for all or for none, in their turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gateway import placement
from gpu_backend.gateway.admission import Account, admit
from gpu_backend.gateway.entitlements import Quota, Rights, refuse_own_device, refuse_wish
from gpu_backend.gateway.loads import DeviceLoad, Wanted
from gpu_backend.gateway.placement import place, with_one_more
from gpu_backend.gateway.queue import Waiter, allot, in_order
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.wish import Wish

GIB = 1 << 30
NOW = 10_000.0


def device(node: str, sessions: int = 0, capacity: int = 1, total: int = 80 * GIB) -> DeviceLoad:
    return DeviceLoad(node, 0, "cuda", "a GPU", total, capacity, sessions)


def wish(sessions: int) -> Wish:
    return Wish(anti_affinity="notebook-1" if sessions > 1 else "", sessions=sessions)


def waiter(name: str, user: str, sessions: int = 1, memory: int = 0, since: float = NOW) -> Waiter:
    return Waiter(
        client_key=user, waiter=name, user=user, label="", since=since, kind="", memory_bytes=memory,
        wish=wish(sessions),
    )  # fmt: skip


def wanted(sessions: int, memory: int = 0) -> Wanted:
    return waiter("w", "ada", sessions, memory).wanted


def nodes(found: DeviceLoad | Refusal | None) -> list[str]:
    assert isinstance(found, DeviceLoad), found
    return [one.node for one in found.places]


def test_each_is_on_another_device() -> None:
    assert sorted(nodes(place([device("a", 0, 4), device("b", 0, 4)], "", 0, wanted(2)))) == ["a", "b"]


def test_all_are_counted_where_they_are() -> None:
    loads: Sequence[DeviceLoad] = [device("a"), device("b"), device("c")]
    found = place(loads, "", GIB, wanted(2, GIB))
    assert isinstance(found, DeviceLoad)
    loads = with_one_more(loads, found, wanted(2, GIB))
    assert [(one.sessions, one.promised_bytes) for one in loads] == [(1, GIB), (1, GIB), (0, 0)]
    assert {tenant.wanted.sessions for one in loads for tenant in one.tenants} == {1}


@pytest.mark.parametrize(
    ("taken", "memory", "code", "said"),
    [
        ((0, 1), 0, RefusalCode.POOL_FULL, "2 devices were asked for, with a session each; 1 at most can be had now."),
        (
            (1, 1), 0, RefusalCode.POOL_FULL,
            "2 devices were asked for, with a session each; none can be had now. The pool is full: 2 of 2 places are "
            "taken.",
        ),
        (
            (0, 0), 60 * GIB, RefusalCode.NO_DEVICE,
            "2 devices were asked for, with a session each; this pool has no more than 1 that can serve.",
        ),
    ],
)  # fmt: skip
def test_a_refusal_says_what_could_be_had(taken: tuple[int, int], memory: int, code: RefusalCode, said: str) -> None:
    loads = [device("a", taken[0]), device("b", taken[1], total=40 * GIB)]
    found = place(loads, "", memory, wanted(2, memory))
    assert isinstance(found, Refusal)
    assert (found.code, found.message) == (code, said)
    assert "notebook-1" not in found.message + found.remedy


def test_what_is_withheld_for_now_is_waited_for() -> None:
    found = place([device("a"), replace(device("b"), drained="the node b")], "", 0, wanted(2))
    assert isinstance(found, Refusal)
    assert found.code is RefusalCode.POOL_FULL


def test_all_are_of_one_kind() -> None:
    loads = [device("a", 1), device("b"), replace(device("c"), kind="cpu")]
    found = place(loads, "", 0, wanted(2))
    assert isinstance(found, Refusal)
    assert (found.code, found.message[-25:]) == (RefusalCode.POOL_FULL, "1 at most can be had now.")
    loads.append(replace(device("d"), kind="cpu"))
    assert sorted(nodes(place(loads, "", 0, wanted(2)))) == ["c", "d"]
    assert sorted(nodes(place([device("a"), *loads[1:]], "", 0, wanted(2)))) == ["a", "b"], "GPUs before others"
    mixed = place([device("a"), replace(device("c"), kind="cpu")], "", 0, wanted(2))
    assert isinstance(mixed, Refusal)
    assert mixed.message.endswith("this pool has no more than 1 that can serve.")


def test_what_is_kept_is_of_one_kind() -> None:
    loads = [device("a", 1), device("b", 1), replace(device("c"), kind="cpu"), replace(device("d", 1), kind="cpu")]
    both, small = waiter("w", "ada", 2), waiter("v", "eve")
    assert nodes(allot([both, small], loads)[small.name]) == ["c"]
    assert isinstance(allot([both, small], loads[1:])[small.name], Refusal), "there is one GPU, and two others"


def test_a_session_that_lost_its_place_does_not_wait_for_those_who_wait_for_what_is_beside_it() -> None:
    held = Wanted(user="ada", anti_affinity="notebook-1")
    loads = with_one_more([device("a"), device("b")], device("a"), held)
    several, small = waiter("v", "eve", 2, since=1.0), waiter("u", "boss", since=2.0)
    lost = replace(waiter("s", "ada"), has_lease=True, wish=Wish(anti_affinity="notebook-1"))
    found = allot([several, small, lost], loads)
    assert nodes(found[lost.name]) == ["b"]
    assert isinstance(found[small.name], Refusal), "it is kept from all others"
    assert isinstance(found[several.name], Refusal)
    again = replace(lost, waiter="t", client_key="bob", user="bob")
    assert isinstance(allot([several, lost, again], loads)[again.name], Refusal), "there is one for one"


def test_so_many_are_counted_before_any_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What 64 cost that cannot be had now grows with the devices, and not with both."""
    asked: list[int] = []
    place_one = placement._place_one

    def counted(devices: Sequence[DeviceLoad], *more: Any) -> DeviceLoad | Refusal:
        asked.append(len(devices))
        return place_one(devices, *more)

    monkeypatch.setattr(placement, "_place_one", counted)
    loads = [device(f"n{number}", int(number > 60)) for number in range(128)]
    assert isinstance(place(loads, "", 0, wanted(64)), Refusal)
    assert sum(asked) <= 2 * len(loads)


def test_who_needs_one_does_not_pass_who_needs_two() -> None:
    loads = [device("a", 1), device("b"), device("c", 1, 9, 10 * GIB)]
    both, small = waiter("w", "ada", 2, 20 * GIB), waiter("v", "eve")
    found = allot([both, small], loads)
    assert isinstance(found[both.name], Refusal)
    assert nodes(found[small.name]) == ["c"], "what is free already is kept, and one of those that can serve"
    assert nodes(allot([small], loads[:2])[small.name]) == ["b"]


def test_two_who_want_both_come_one_after_the_other() -> None:
    first, second = waiter("w", "ada", 2), waiter("v", "eve", 2)
    found = allot([first, second], [device("a"), device("b")])
    assert sorted(nodes(found[first.name])) == ["a", "b"]
    assert isinstance(found[second.name], Refusal)
    waiting = allot([first, second], [device("a", 1), device("b")])
    assert all(isinstance(one, Refusal) for one in waiting.values())


def test_whoever_waits_for_several_puts_their_others_back_by_as_many() -> None:
    several, another = waiter("a", "ada", 2, since=1.0), waiter("b", "ada", since=2.0)
    theirs = waiter("c", "eve", since=2.5)
    ranked = in_order([several, another, theirs], {"eve": 1}, lambda user: 1.0, 3.0)
    assert [one.waiter for one in ranked] == ["a", "c", "b"]


def test_all_count_in_quotas_and_rights() -> None:
    own = [Account(members=frozenset({"ada"}), quota=Quota(sessions=2))]
    assert admit(0, [], own, count=2) is None
    refusal = admit(0, [], own, waiting=["ada"], count=2)
    assert refusal is not None
    assert refusal.message == (
        "You have 0 of 2 sessions that you may have in this pool, and 1 more wait for a place; 2 more were asked for, "
        "one for each device."
    )
    whole = replace_wish(is_whole=True)
    assert refuse_own_device(whole, Rights(whole_devices=2), []) is None
    assert refuse_own_device(whole, Rights(whole_devices=1), []) is not None


def replace_wish(**changes: object) -> Wish:
    return Wish(**{"anti_affinity": "notebook-1", "sessions": 2, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{"sessions": 0}, {"sessions": 1000}, {"devices": 2}, {"anti_affinity": ""}])
def test_what_is_no_such_wish_is_refused(changes: dict[str, object]) -> None:
    assert refuse_wish(replace_wish(), Rights()) is None
    refusal = refuse_wish(replace_wish(**changes), Rights())
    assert refusal is not None
    assert refusal.code is RefusalCode.MALFORMED


@pytest.mark.parametrize("label", ["exclusion", "affinity"])
def test_what_keeps_apart_is_not_wanted_beside_each_other(label: str) -> None:
    refusal = refuse_wish(replace_wish(**{label: "mine"}), Rights(whole_devices=9))
    assert refusal is not None
    assert refusal.message == (
        f"Sessions that are asked for at once keep apart, so they cannot have the {label} 'mine' in common."
    )


LOADS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2)), min_size=1, max_size=5).map(
    lambda sizes: [device(f"n{number}", min(sessions, most), most) for number, (sessions, most) in enumerate(sizes)]
)
WAITERS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 4), st.integers(0, 60)), max_size=8).map(
    lambda some: [waiter(str(n), user, count, memory * GIB) for n, (user, count, memory) in enumerate(some)]
)


@given(WAITERS, LOADS)
def test_all_or_none_and_no_device_twice(waiters: list[Waiter], loads: list[DeviceLoad]) -> None:
    found = allot(waiters, loads)
    left = {one.node: one.capacity - one.sessions for one in loads}
    for one in waiters:
        spot = found[one.name]
        if isinstance(spot, DeviceLoad):
            taken = [place.node for place in spot.places]
            assert len(taken) == len(set(taken)) == one.wish.sessions
            for node in taken:
                left[node] -= 1
    assert min(left.values()) >= 0
    if waiters:
        free = [one for one in loads if one.sessions < one.capacity and one.total_bytes >= waiters[0].memory_bytes]
        has_place = isinstance(found[waiters[0].name], DeviceLoad)
        assert has_place == (len(free) >= waiters[0].wish.sessions), "none is withheld from the first"


@given(st.integers(2, 4), st.lists(st.integers(1, 3), min_size=4, max_size=6), st.data())
def test_who_needs_many_is_not_passed_for_ever(count: int, capacities: list[int], data: st.DataObject) -> None:
    """However many come who need one: once those have left who were there, whoever is first has all it waits for."""
    bare = [device(f"n{number}", 0, most) for number, most in enumerate(capacities)]
    there = [(f"n{number}", Wanted(user="old")) for number, most in enumerate(capacities) for _ in range(most)]
    patient = waiter("w", "ada", count)
    for turn in range(sum(capacities) + 1):
        loads: Sequence[DeviceLoad] = bare
        for node, theirs in there:
            loads = with_one_more(loads, next(one for one in bare if one.node == node), theirs)
        found = allot([patient, *(waiter(f"{turn}.{n}", "eve") for n in range(3))], loads)
        if isinstance(found[patient.name], DeviceLoad):
            return
        old = [one for one in there if one[1].user == "old"]
        assert old, "all have left who were there, and it waits still"
        came = [spot.node for name, spot in found.items() if name != patient.name and isinstance(spot, DeviceLoad)]
        there.remove(data.draw(st.sampled_from(old)))
        there += [(node, Wanted(user="eve")) for node in came]
