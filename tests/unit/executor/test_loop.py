"""What an executor does next: each decision as a record, and what holds of all of them."""

from __future__ import annotations

from math import inf

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.executor import loop as loops
from gpu_backend.executor.instructions import (
    Check,
    Drop,
    Learn,
    Measure,
    Receive,
    Rehearse,
    Report,
    Run,
    Sleep,
    Spin,
    Step,
    Stop,
    Wait,
)  # fmt: skip
from gpu_backend.executor.loop import Shut, Told, View, next_step

NOW = 100.0
#: Nothing to do since long ago, and all is told.
IDLE = View(told=Told.ALL)
OPEN = View(has_work=True, wait=None)
SHUT = View(has_work=True, wait=Wait.GATE, shut=Shut(), told=Told.ALL)
FULL = View(has_work=True, wait=Wait.ROOM, told=Told.DUE, is_working=True, op_seconds=2e-4)


def but(view: View, **what: object) -> View:
    """Return ``view`` with other values in some places."""
    return msgspec.structs.replace(view, **what)


#: Nothing to do since a moment ago.
JUST_ASKED = but(IDLE, rehearse_at=NOW, rehearse_until=NOW + 1e-3)


def shut(told: Told = Told.ALL, since: float = 0.0, is_working: bool = False, **gate: object) -> View:
    """Return a view of ops behind a shut gate."""
    return but(SHUT, shut=Shut(**gate), told=told, since=since, is_working=is_working)  # type: ignore[arg-type]


DECISIONS: dict[str, tuple[View, Step]] = {
    "an order to stop goes before ops that wait": (but(OPEN, is_over=True), Stop()),
    "and before what was not looked at": (but(OPEN, is_over=True, has_looked=False, check_at=0.0), Stop()),
    "nobody's executor sleeps": (View(is_assigned=False), Sleep(Wait.WORK, NOW + 1.0)),
    "ops that may run run for a slice": (OPEN, Run(NOW + 0.01)),
    "nothing that is due holds them up": (but(OPEN, check_at=0.0, measure_at=0.0), Run(NOW + 0.01)),
    "between two runs the sockets are looked at": (but(OPEN, has_looked=False), Receive()),
    "memory is measured between them": (but(OPEN, has_looked=False, measure_at=NOW), Measure()),
    "leases are looked at between them": (but(OPEN, has_looked=False, measure_at=NOW, check_at=NOW), Check()),
    "cancelled ops are dropped behind a shut gate": (but(SHUT, is_cancelled=True), Drop(NOW + 0.01)),
    # nothing to do
    "the next message is looked for": (but(IDLE, since=NOW - 50e-6), Spin(Wait.WORK, NOW - 50e-6 + 60e-6)),
    "then all is told": (but(IDLE, told=Told.NOTHING), Report(Wait.WORK, True)),
    "what was due being told already": (but(IDLE, told=Told.DUE), Report(Wait.WORK, True)),
    "when memory is measured": (but(IDLE, told=Told.NOTHING, measure_at=NOW), Measure()),
    "before it sleeps it learns": (but(IDLE, has_lesson=True), Learn()),
    "but not before all is told": (but(IDLE, has_lesson=True, told=Told.NOTHING), Report(Wait.WORK, True)),
    "nor while a message may come at once": (but(IDLE, has_lesson=True, since=NOW), Spin(Wait.WORK, NOW + 60e-6)),
    "nor while ops wait": (but(FULL, has_lesson=True), Sleep(Wait.ROOM, NOW + 0.25e-3)),
    "a question is gone through again": (JUST_ASKED, Rehearse()),
    "but not all the time": (but(JUST_ASKED, rehearse_at=NOW + 1e-3), Sleep(Wait.WORK, NOW + 1e-3)),
    "nor for ever": (but(JUST_ASKED, rehearse_until=NOW), Sleep(Wait.WORK, NOW + 1.0)),
    "nor before what is to be learnt": (but(JUST_ASKED, has_lesson=True), Learn()),
    "nor before all is told": (but(JUST_ASKED, told=Told.DUE), Report(Wait.WORK, True)),
    "the device is looked at no later for that": (
        but(JUST_ASKED, rehearse_at=NOW + 2e-3, is_working=True), Sleep(Wait.WORK, NOW + 1e-3),
    ),
    "then it sleeps": (IDLE, Sleep(Wait.WORK, NOW + 1.0)),
    "but not for long while the device works": (but(IDLE, is_working=True), Sleep(Wait.WORK, NOW + 1e-3)),
    "nor with answers unsent": (but(IDLE, has_unsent=True), Sleep(Wait.WORK, NOW + 1e-3)),
    "leases are looked at before it waits": (but(IDLE, check_at=NOW), Check()),
    "and while it spins": (but(IDLE, since=NOW, check_at=NOW), Check()),
    "leases are not looked at before they are due": (but(IDLE, check_at=NOW + 0.1), Sleep(Wait.WORK, NOW + 1.0)),
    "who was answered beside others says at once that it rests": (
        View(since=NOW, is_contended=True, has_answered=True), Report(Wait.WORK, False),
    ),
    "once": (
        View(since=NOW, is_contended=True, has_answered=True, told=Told.DUE), Spin(Wait.WORK, NOW + 60e-6),
    ),
    "who was not answered sends more in a moment": (View(since=NOW, is_contended=True), Spin(Wait.WORK, NOW + 60e-6)),
    "alone on the device nobody is waiting to hear it": (
        View(since=NOW, has_answered=True), Spin(Wait.WORK, NOW + 60e-6),
    ),
    # the device is full
    "who has filled the device tells what is due": (but(FULL, told=Told.NOTHING), Report(Wait.ROOM, False)),
    "alone it sleeps for a moment": (FULL, Sleep(Wait.ROOM, NOW + 0.25e-3)),
    "and for longer where ops are long": (but(FULL, op_seconds=0.25e-3), Sleep(Wait.ROOM, NOW + 1e-3)),
    "beside others short ops are waited for awake": (but(FULL, is_contended=True), Spin(Wait.ROOM, NOW + 60e-6)),
    "and long ones asleep": (but(FULL, is_contended=True, op_seconds=1e-3), Sleep(Wait.ROOM, NOW + 60e-6)),
    # the gate is shut
    "who finds the gate shut tells all": (shut(Told.DUE), Report(Wait.GATE, True)),
    "and sleeps: it is rung for": (shut(), Sleep(Wait.GATE, NOW + 0.1)),
    "what is urgent looks for the answer": (
        shut(since=NOW - 0.1e-3, is_urgent=True), Spin(Wait.GATE, NOW - 0.1e-3 + 0.4e-3),
    ),
    "but not for ever": (shut(since=NOW - 0.4e-3, is_urgent=True), Sleep(Wait.GATE, NOW + 0.1)),
    "another's short op is waited for awake": (shut(since=NOW, is_yielding=True), Spin(Wait.GATE, NOW + 2e-3)),
    "longer than an answer": (
        shut(since=NOW - 1e-3, is_yielding=True, is_urgent=True), Spin(Wait.GATE, NOW - 1e-3 + 2e-3),
    ),
    "nobody rings when the way is free": (shut(is_way_taken=True), Sleep(Wait.GATE, NOW + 1e-3)),
    "nor when the device is done": (shut(is_working=True), Sleep(Wait.GATE, NOW + 1e-3)),
    "others may wait for the end of a long op": (
        but(shut(is_working=True), works_long=True), Sleep(Wait.GATE, NOW + 0.25e-3),
    ),
    "a pause is slept through, but for its last moment": (
        shut(pause_seconds=0.5e-3), Sleep(Wait.GATE, NOW + (0.5e-3 - 0.1e-3)),
    ),
    "a long one not in one go": (shut(pause_seconds=5.0), Sleep(Wait.GATE, NOW + 0.1)),
    "the last moment is spent awake": (shut(pause_seconds=0.1e-3), Spin(Wait.GATE, NOW + 0.1e-3)),
    "an opening that is to come is waited for awake": (shut(opens_in=0.4e-3), Spin(Wait.GATE, NOW + 0.4e-3)),
    "but not for long": (shut(opens_in=0.1), Sleep(Wait.GATE, NOW + 0.1)),
    "a pause that should be over": (shut(pause_seconds=0.0), Sleep(Wait.GATE, NOW + 1e-3)),
    "and waits for what runs": (shut(pause_seconds=0.0, is_working=True), Sleep(Wait.GATE, NOW + 60e-6)),
}  # fmt: skip


@pytest.mark.parametrize("name", DECISIONS)
def test_a_view_is_answered_with_a_step(name: str) -> None:
    view, step = DECISIONS[name]
    assert next_step(view, NOW) == step


# --- what holds of all views ------------------------------------------------------------------------------------------

flags, moments = st.booleans(), st.sampled_from([NOW - 1, NOW - 1e-3, NOW - 1e-5, NOW, NOW + 1e-5, NOW + 1, inf])
gates = st.builds(
    Shut,
    flags,
    flags,
    flags,
    st.none() | st.sampled_from([0.0, 1e-9, 1e-4, 2e-4, 0.5]) | st.floats(0, 100),
    st.sampled_from([0.0, 1e-9, 5e-4, 1e-3, 0.5]),
)
views = st.builds(
    View, is_over=flags, is_assigned=flags, has_work=flags, has_looked=flags, is_cancelled=flags,
    wait=st.none() | st.just(Wait.ROOM), shut=st.none(), is_contended=flags, has_answered=flags, has_unsent=flags,
    is_working=flags, works_long=flags, op_seconds=st.floats(1e-6, 1), told=st.sampled_from(Told),
    since=st.sampled_from([NOW - 1, NOW - 1e-3, NOW - 1e-5, NOW]), check_at=moments, measure_at=moments,
    rehearse_at=moments, rehearse_until=moments,
)  # fmt: skip
views |= st.builds(lambda view, gate: but(view, has_work=True, wait=Wait.GATE, shut=gate), views, gates)


def may_run(view: View) -> bool:
    return view.has_work and (view.wait is None or view.is_cancelled)


@given(views)
def test_ops_run_only_through_an_open_gate_and_always_then(view: View) -> None:
    step = next_step(view, NOW)
    if isinstance(step, Run):
        assert view.has_work
        assert view.wait is None
        assert not view.is_cancelled
    if may_run(view) and view.has_looked and not view.is_over:
        assert isinstance(step, Run | Drop)


@given(views)
def test_nobody_waits_who_may_run_something(view: View) -> None:
    if may_run(view):
        assert not isinstance(next_step(view, NOW), Spin | Sleep | Report)


@given(views)
def test_waits_end_within_their_bounds(view: View) -> None:
    step = next_step(view, NOW)
    if isinstance(step, Spin):
        assert NOW < step.until <= NOW + {
            Wait.WORK: loops.SPIN_SECONDS, Wait.ROOM: loops.SPIN_SECONDS, Wait.GATE: loops.YIELD_SECONDS,
        }[step.wait]  # fmt: skip
    if isinstance(step, Sleep):
        most = {Wait.WORK: loops.SLEEP_SECONDS, Wait.ROOM: loops.DEVICE_SECONDS, Wait.GATE: loops.SHUT_SECONDS}
        assert NOW < step.until <= NOW + most[step.wait]
    if isinstance(step, Run | Drop):
        assert step.until == NOW + loops.SLICE_SECONDS


@given(views)
def test_nobody_sleeps_whose_arbiter_does_not_know(view: View) -> None:
    if isinstance(step := next_step(view, NOW), Sleep) and view.is_assigned:
        assert view.told is Told.ALL or (step.wait is Wait.ROOM and view.told is Told.DUE)


@given(views)
def test_whatever_ended_the_session_nothing_follows(view: View) -> None:
    assert (next_step(view, NOW) == Stop()) == view.is_over
