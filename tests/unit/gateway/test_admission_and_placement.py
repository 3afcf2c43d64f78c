"""Who may have a session, and where it goes: pure decisions, with words that say what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gateway.admission import (
    PERIODS,
    Account,
    admit,
    is_over_quota,
    left_bytes,
    next_period,
    period_start,
)
from gpu_backend.gateway.entitlements import Quota
from gpu_backend.gateway.loads import DeviceLoad
from gpu_backend.gateway.placement import place, refuse_unwalled, walled, with_sessions
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.lifecycle.states import HELD, PLACED, Session, SessionState
from gpu_backend.wire.errors import RefusalCode
from kernelproxy.session.amounts import bytes_from_words

GIB = 1 << 30


def ada(**changes: object) -> list[Account]:
    """Return what a session of ada counts against, with this quota of hers."""
    own = Account(members=frozenset({"ada"}), quota=Quota(**changes))  # type: ignore[arg-type]
    return [own]


def session(**changes: object) -> Session:
    given = Session(
        id="s", user="ada", client_key="k", label="a.ipynb", node="n", ordinal=0, device_kind="cpu",
        memory_limit_bytes=GIB, lease_seconds=60.0, opened_at=0.0, state=SessionState.SERVING, epoch=1,
    )  # fmt: skip
    return replace(given, **changes)  # type: ignore[arg-type]


def device(**changes: object) -> DeviceLoad:
    given = DeviceLoad("n", 0, "cpu", "a CPU", 16 * GIB, capacity=4)
    return replace(given, **changes)  # type: ignore[arg-type]


def test_without_limits_everybody_may() -> None:
    assert admit(0, [session()] * 50, ada()) is None


def test_where_nothing_keeps_users_apart_only_the_operator_has_a_session() -> None:
    bare, apart = device(), device(node="m", wall="Landlock 7, seccomp")
    half = device(node="m", ordinal=1)
    refusal = refuse_unwalled([bare], is_operator=False)
    assert refusal is not None
    assert refusal.code is RefusalCode.NO_DEVICE
    assert "apart on n:" in refusal.message
    assert "Landlock" in refusal.remedy
    assert refuse_unwalled([bare], is_operator=True) is None
    assert refuse_unwalled([apart], is_operator=False) is None
    assert refuse_unwalled([apart, half], is_operator=False) is not None
    assert refuse_unwalled([apart, bare], is_operator=False) is None
    assert walled([apart, bare]) == [apart]
    assert walled([apart, half, bare]) == []
    assert refuse_unwalled([], is_operator=False) is None


def test_whatever_is_on_a_device_all_else_that_is_known_of_it_stays() -> None:
    bare = device(policy="fifo", wall="Landlock 7, seccomp", unseen="no NVML", warm=2)
    (loaded,) = with_sessions([bare], [session()])
    assert loaded == replace(bare, sessions=1, promised_bytes=GIB, tenants=loaded.tenants)
    assert [tenant.user for tenant in loaded.tenants] == ["ada"]


def test_the_refusal_says_used_and_limit_and_which_notebooks() -> None:
    refusal = admit(0, [session(label="a.ipynb"), session(label="b.ipynb")], ada(sessions=2))
    assert refusal is not None
    assert refusal.code is RefusalCode.QUOTA
    assert "2 of 2 sessions" in refusal.message
    assert "(a.ipynb, b.ipynb)" in refusal.message
    assert "Shut down a kernel" in refusal.remedy


@pytest.mark.parametrize("state", list(SessionState))
def test_what_counts_for_a_user_is_what_they_hold(state: SessionState) -> None:
    refused = admit(0, [session(state=state)], ada(sessions=1)) is not None
    assert refused == (state in HELD)


def test_others_do_not_count() -> None:
    assert admit(0, [session(user="eve")] * 9, ada(sessions=1, memory_bytes=GIB)) is None
    assert admit(GIB, [session(user="eve")] * 9, ada(sessions=1, memory_bytes=GIB)) is None


def test_memory_is_counted_over_all_sessions_of_a_user() -> None:
    assert admit(GIB, [session()] * 3, ada(memory_bytes=4 * GIB)) is None
    refusal = admit(2 * GIB, [session()] * 3, ada(memory_bytes=4 * GIB))
    assert refusal is not None
    assert "3 GiB of the 4 GiB" in refusal.message
    assert "asks for 2 GiB" in refusal.message
    assert "GPU_WORKBENCH_MEMORY=1GiB" in refusal.remedy  # what can be had


def test_a_small_quota_is_told_in_the_amounts_in_which_it_is_set() -> None:
    refusal = admit(400 << 20, [], ada(memory_bytes=300 << 20))
    assert refusal is not None
    assert refusal.message == (
        "No session holds any of the 300 MiB of device memory that you may have; this one asks for 400 MiB."
    )
    assert 'memory = "300 MiB"' in refusal.remedy


def test_who_asks_for_no_amount_may_have_what_is_left_of_every_quota() -> None:
    group = Account(group="lab", members=frozenset({"ada", "eve"}), quota=Quota(memory_bytes=8 * GIB))
    both = [*ada(memory_bytes=4 * GIB), group]
    for held, left in (([], 4), ([session()], 3), ([session(user="eve", memory_limit_bytes=6 * GIB)], 2)):
        assert admit(0, held, both) is None
        assert left_bytes(held, both) == left * GIB
    assert left_bytes([session()], ada()) == 0  # no quota: no limit


def test_where_nothing_is_left_it_is_said_who_has_it_and_how_several_fit() -> None:
    refusal = admit(0, [session(memory_limit_bytes=40 * GIB)], ada(memory_bytes=40 * GIB))
    assert refusal is not None
    assert "1 session holds 40 GiB of the 40 GiB of device memory that you may have (a.ipynb)" in refusal.message
    assert 'memory = "10 GiB"' in refusal.remedy


@given(st.integers(64 << 20, 1 << 50))
def test_what_a_refusal_proposes_can_be_had(left: int) -> None:
    most = left + GIB
    refusal = admit(most, [session(memory_limit_bytes=GIB)], ada(memory_bytes=most))
    assert refusal is not None
    proposed = bytes_from_words(refusal.remedy.partition('memory = "')[2].partition('"')[0])
    assert 0 < proposed <= left
    assert admit(proposed, [session(memory_limit_bytes=GIB)], ada(memory_bytes=most)) is None


def test_notebooks_that_wait_count_for_one_that_would_wait_as_well() -> None:
    assert admit(0, [session()], ada(sessions=3), waiting=["ada", "eve", "eve"]) is None
    refusal = admit(0, [session()], ada(sessions=2), waiting=["ada", "eve"])
    assert refusal is not None
    assert "1 of 2 sessions" in refusal.message
    assert "1 more wait" in refusal.message


def test_a_groups_limit_counts_all_its_members_and_says_whose_it_is() -> None:
    lab = Account(group="lab", members=frozenset({"ada", "bob"}), quota=Quota(sessions=3))
    held = [session(), session(user="bob"), session(user="eve")]
    assert admit(0, held, [*ada(), lab]) is None
    refusal = admit(0, [*held, session(user="bob")], [*ada(), lab])
    assert refusal is not None
    assert "Your group lab has 3 of 3 sessions" in refusal.message
    assert "operator" in refusal.remedy


@pytest.mark.parametrize(
    ("period", "next_one"), [("day", "2026-11-22"), ("week", "2026-11-23"), ("month", "2026-12-01")]
)
def test_used_up_gpu_time_says_how_much_and_until_when(period: str, next_one: str) -> None:
    quota = Quota(**{f"gpu_seconds_per_{period}": 3600.0})  # type: ignore[arg-type]
    account = Account(members=frozenset({"ada"}), quota=quota, spent={period: 3600.5})
    refusal = admit(0, [], [account], date(2026, 11, 21))
    assert refusal is not None
    assert "3,600 of the 3,600 GPU seconds" in refusal.message or "3,601 of the 3,600" in refusal.message
    assert f"a {period}" in refusal.message
    assert next_one in refusal.remedy
    assert is_over_quota([account])
    assert not is_over_quota([replace(account, spent={period: 3599.0})])


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.sampled_from(PERIODS))
def test_periods_follow_one_another(day: date, period: str) -> None:
    start, end = period_start(day, period), next_period(day, period)
    assert start <= day < end
    assert period_start(end, period) == end
    assert next_period(start, period) == end


def test_the_least_loaded_device_is_taken() -> None:
    devices = with_sessions([device(), device(ordinal=1)], [session()])
    chosen = place(devices, "", GIB)
    assert isinstance(chosen, DeviceLoad)
    assert chosen.ordinal == 1


def test_a_gpu_is_preferred_and_a_kind_is_kept() -> None:
    devices = [device(), device(node="m", kind="cuda", sessions=3)]
    preferred, wanted = place(devices, "", 0), place(devices, "cpu", 0)
    assert isinstance(preferred, DeviceLoad)
    assert isinstance(wanted, DeviceLoad)
    assert (preferred.kind, wanted.kind) == ("cuda", "cpu")


def test_of_equal_devices_the_one_with_a_warm_executor_is_taken() -> None:
    chosen = place([device(), device(ordinal=1, warm=1)], "", 0)
    assert isinstance(chosen, DeviceLoad)
    assert chosen.ordinal == 1


def test_promised_memory_is_kept_free() -> None:
    devices = with_sessions([device()], [session(memory_limit_bytes=10 * GIB)])
    refusal = place(devices, "", 7 * GIB)
    assert isinstance(refusal, Refusal)
    assert refusal.code is RefusalCode.POOL_FULL
    assert "10 GiB of 16 GiB" in refusal.message
    assert isinstance(place(devices, "", 6 * GIB), DeviceLoad)
    unasked = with_sessions([device()], [session(memory_limit_bytes=10 * GIB, has_promise=False)])
    assert isinstance(place(unasked, "", 7 * GIB), DeviceLoad)


def test_what_keeps_users_apart_is_known_of_a_device_with_sessions_too() -> None:
    (loaded,) = with_sessions([device(wall="Landlock 7, seccomp", warm=2)], [session()])
    known = device(wall="Landlock 7, seccomp", warm=2, sessions=1, promised_bytes=GIB)
    assert replace(loaded, tenants=()) == known


@pytest.mark.parametrize("state", list(SessionState))
def test_what_counts_for_a_device_is_what_has_a_process_on_it(state: SessionState) -> None:
    loaded = with_sessions([device()], [session(state=state)])[0]
    assert loaded.sessions == int(state in PLACED)


def test_no_node_no_such_kind_and_too_much_memory_are_told_apart() -> None:
    nobody, no_kind, too_much = place([], "", 0), place([device()], "cuda", 0), place([device()], "", 17 * GIB)
    assert isinstance(nobody, Refusal)
    assert isinstance(no_kind, Refusal)
    assert isinstance(too_much, Refusal)
    assert (nobody.code, no_kind.code) == (RefusalCode.NO_DEVICE, RefusalCode.NO_DEVICE)
    assert "it has: cpu" in no_kind.message
    assert "largest device here has 16 GiB" in too_much.message
    assert 'memory = "16 GiB"' in too_much.remedy


LOADS = st.builds(
    DeviceLoad,
    node=st.sampled_from("ab"), ordinal=st.integers(0, 3), kind=st.sampled_from(["cpu", "cuda"]), name=st.just("d"),
    total_bytes=st.integers(0, 20), capacity=st.integers(1, 4), sessions=st.integers(0, 5),
    promised_bytes=st.integers(0, 25), warm=st.integers(0, 2),
)  # fmt: skip


@given(st.lists(LOADS, max_size=6), st.sampled_from(["", "cpu", "cuda"]), st.integers(0, 25))
def test_a_place_is_given_exactly_when_there_is_one(devices: list[DeviceLoad], kind: str, memory: int) -> None:
    room = [
        d for d in devices
        if kind in ("", d.kind) and d.sessions < d.capacity and d.promised_bytes + memory <= d.total_bytes
    ]  # fmt: skip
    chosen = place(devices, kind, memory)
    if isinstance(chosen, Refusal):
        assert not room
        assert chosen.message
        assert chosen.remedy
    else:
        assert chosen in room
        rivals = [d for d in room if d.kind == chosen.kind]
        assert all(chosen.sessions / chosen.capacity <= d.sessions / d.capacity for d in rivals)
