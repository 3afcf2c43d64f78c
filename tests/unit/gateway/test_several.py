"""Where a session with several devices goes: all of one node and kind, or nowhere; and what it counts for."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gateway.entitlements import Rights, refuse_own_device, refuse_wish
from gpu_backend.gateway.loads import DeviceLoad, Wanted
from gpu_backend.gateway.placement import place, reserved, with_one_more, with_sessions
from gpu_backend.gateway.queue import Waiter, allot
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.gateway.several import most_together, refuse_several_gpus
from gpu_backend.lifecycle.states import Session, SessionState
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.wish import Wish

GIB = 1 << 30


def device(node: str, ordinal: int, sessions: int = 0, island: str = "", kind: str = "cuda") -> DeviceLoad:
    return DeviceLoad(node, ordinal, kind, "a GPU", 80 * GIB, capacity=2, sessions=sessions, island=island)


def spot(devices: list[DeviceLoad], count: int, memory_bytes: int = 0) -> tuple[str, tuple[int, ...]] | Refusal:
    found = place(devices, "", memory_bytes, Wanted(devices=count, memory_bytes=memory_bytes))
    return found if isinstance(found, Refusal) else (found.node, found.ordinals)


def test_all_are_of_one_node() -> None:
    assert spot([device("a", 0), device("b", 0), device("b", 1)], 2) == ("b", (0, 1))


def test_none_is_of_another_kind() -> None:
    mixed = [device("a", 0), device("a", 1, kind="cpu"), device("b", 0, kind="cpu"), device("b", 1, kind="cpu")]
    assert spot(mixed, 2) == ("b", (0, 1))


def test_the_emptiest_are_taken() -> None:
    assert spot([device("a", 0, 1), device("a", 1), device("a", 2)], 2) == ("a", (1, 2))
    assert spot([device("a", 0, 1), device("a", 1), device("b", 0), device("b", 1)], 2) == ("b", (0, 1))


def test_those_that_reach_each_other_come_first() -> None:
    devices = [device("a", 0, 0, "x"), device("a", 1, 0, "y"), device("a", 2, 1, "x"), device("a", 3, 1, "z")]
    assert spot(devices, 2) == ("a", (0, 2))


def test_a_refusal_says_what_could_be_had() -> None:
    devices = [device("a", 0), device("a", 1, 2), device("b", 0)]
    never = spot(devices, 3)
    assert isinstance(never, Refusal)
    assert (never.code, never.message) == (
        RefusalCode.NO_DEVICE,
        "3 devices of one node were asked for; no node of this pool has more than 2 that can serve.",
    )
    later = spot(devices, 2)
    assert isinstance(later, Refusal)
    assert (later.code, later.message) == (
        RefusalCode.POOL_FULL,
        "2 devices of one node were asked for; 1 at most can be had together now.",
    )


def test_parts_of_gpus_go_with_no_other() -> None:
    parts = [replace(device("a", n), is_part=True) for n in (1, 2)]
    assert spot([device("a", 0), *parts, device("b", 0), device("b", 1)], 2) == ("b", (0, 1))
    refused = spot([device("a", 0), *parts], 2)
    assert isinstance(refused, Refusal)
    assert refused.message.endswith("no node of this pool has more than 1 that can serve.")
    assert spot(parts, 1) == ("a", (1,))


def test_parts_of_gpus_are_not_kept_for_who_waits_for_several() -> None:
    parts = [replace(device("a", n), is_part=True) for n in (0, 1)]
    kept = reserved([*parts, device("b", 0), device("b", 1)], "", 0, Wanted(devices=2))
    assert [one.sessions for one in kept] == [0, 0, 2, 2]


def test_several_gpus_that_are_shut_in_are_given_where_the_operator_says_so() -> None:
    walled, bare, cpu = (
        replace(device("a", 0, kind=kind), wall=wall) for kind, wall in (("cuda", "w"), ("cuda", ""), ("cpu", "w"))
    )
    refusal = refuse_several_gpus([walled, cpu], "", 2)
    assert refusal is not None
    assert refusal.code is RefusalCode.NO_DEVICE
    assert "several_gpus" in refusal.remedy
    assert refuse_several_gpus([walled, cpu], "cuda", 2) is not None
    assert refuse_several_gpus([walled, cpu], "cpu", 2) is None
    assert refuse_several_gpus([walled, cpu], "", 1) is None
    assert refuse_several_gpus([bare], "cuda", 2) is not None
    assert refuse_several_gpus([cpu], "", 2) is None


def test_memory_is_wanted_on_each() -> None:
    devices = [device("a", 0), replace(device("a", 1), promised_bytes=60 * GIB)]
    assert isinstance(spot(devices, 2, 30 * GIB), Refusal)
    assert spot(devices, 2, 20 * GIB) == ("a", (0, 1))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 2)), max_size=12), st.integers(1, 4)
)
def test_who_gets_them_gets_that_many_with_room(drawn: list[tuple[str, int, int]], count: int) -> None:
    devices = [device(*one) for one in {(node, ordinal): (node, ordinal, n) for node, ordinal, n in drawn}.values()]
    found = spot(devices, count)
    free = [(one.node, one.ordinal) for one in devices if one.sessions < one.capacity]
    if isinstance(found, Refusal):
        assert all(sum(node == at for at, _ in free) < count for node in "abc")
    else:
        node, ordinals = found
        assert len(set(ordinals)) == count
        assert {(node, ordinal) for ordinal in ordinals} <= set(free)


def test_it_has_a_place_on_each() -> None:
    devices = [device("a", 0), device("a", 1), device("a", 2)]
    wanted = Wanted(devices=2, memory_bytes=GIB)
    chosen = place(devices, "", GIB, wanted)
    assert isinstance(chosen, DeviceLoad)
    after = with_one_more(devices, chosen, wanted)
    assert [(one.sessions, one.promised_bytes) for one in after] == [(1, GIB), (1, GIB), (0, 0)]
    session = Session(
        id="s", user="ada", client_key="k", label="", node="a", ordinal=0, others=(2,), device_kind="cuda",
        memory_limit_bytes=GIB, lease_seconds=60.0, opened_at=0.0, state=SessionState.SERVING, epoch=1,
    )  # fmt: skip
    assert [one.sessions for one in with_sessions(devices, [session])] == [1, 0, 1]
    assert session.may_hold_bytes == 2 * GIB


def test_who_waits_for_several_has_them_kept() -> None:
    devices = [device("a", 0, 2), device("a", 1, 1)]
    assert [one.sessions for one in reserved(devices, "", 0, Wanted(devices=2))] == [2, 2]
    several = Waiter(client_key="k", waiter="w", user="ada", label="", since=0.0, kind="", memory_bytes=0,
                     wish=Wish(devices=2))  # fmt: skip
    one = Waiter(client_key="k", waiter="v", user="bo", label="", since=1.0, kind="", memory_bytes=0)
    found = allot([several, one], devices)
    assert all(isinstance(each, Refusal) for each in found.values()), "who needs little would pass it for ever"
    assert isinstance(allot([one], devices)[one.name], DeviceLoad)


def test_what_a_user_may_wish() -> None:
    for count in (0, -1, 65):
        refused = refuse_wish(Wish(devices=count), Rights())
        assert refused is not None
        assert refused.message == f"{count} devices were asked for; a session has 1 to 64 of one node."
    assert refuse_wish(Wish(devices=2), Rights()) is None
    whole = Wish(devices=2, is_whole=True)
    assert refuse_own_device(whole, Rights(whole_devices=1), []) is not None
    assert refuse_own_device(whole, Rights(whole_devices=2), []) is None


def test_how_many_one_session_may_have_is_known_beforehand() -> None:
    gpus = [device("a", 0), device("a", 1, 2), device("b", 0)]
    processors = [device("a", number, kind="cpu") for number in range(3)]
    assert [most_together(gpus, True), most_together(gpus, False)] == [2, 1]
    assert [most_together([*gpus, *processors], False), most_together([], True)] == [3, 0]
    assert most_together([replace(one, is_part=True) for one in gpus], True) == 1
