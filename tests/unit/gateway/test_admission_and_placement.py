"""Who may have a session, and where it goes: pure decisions, with words that say what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gateway.admission import Limits, Refusal, admit
from gpu_backend.gateway.placement import DeviceLoad, place, with_sessions
from gpu_backend.lifecycle.states import HELD, PLACED, Session, SessionState
from gpu_backend.wire.errors import RefusalCode

GIB = 1 << 30
NO_LIMITS = Limits(0, 0)


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
    assert admit("ada", 0, [session()] * 50, NO_LIMITS) is None


def test_the_refusal_says_used_and_limit_and_which_notebooks() -> None:
    refusal = admit("ada", 0, [session(label="a.ipynb"), session(label="b.ipynb")], Limits(2, 0))
    assert refusal is not None
    assert refusal.code is RefusalCode.QUOTA
    assert "2 of 2 sessions" in refusal.message
    assert "(a.ipynb, b.ipynb)" in refusal.message
    assert "Shut down a kernel" in refusal.remedy


@pytest.mark.parametrize("state", list(SessionState))
def test_what_counts_for_a_user_is_what_they_hold(state: SessionState) -> None:
    refused = admit("ada", 0, [session(state=state)], Limits(1, 0)) is not None
    assert refused == (state in HELD)


def test_others_do_not_count() -> None:
    assert admit("ada", 0, [session(user="eve")] * 9, Limits(1, GIB)) is not None  # only for asking without a limit
    assert admit("ada", GIB, [session(user="eve")] * 9, Limits(1, GIB)) is None


def test_memory_is_counted_over_all_sessions_of_a_user() -> None:
    assert admit("ada", GIB, [session()] * 3, Limits(0, 4 * GIB)) is None
    refusal = admit("ada", 2 * GIB, [session()] * 3, Limits(0, 4 * GIB))
    assert refusal is not None
    assert "3 GiB of the 4 GiB" in refusal.message
    assert "asks for 2 GiB" in refusal.message


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
    assert "10 of 16 GiB" in refusal.message
    assert isinstance(place(devices, "", 6 * GIB), DeviceLoad)


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
