"""The life of sessions: every transition by name, then whatever order of events."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu_backend.lifecycle import events as ev
from gpu_backend.lifecycle.machine import InvalidTransition, Lifecycle
from gpu_backend.lifecycle.states import HELD, Session, SessionState

from .telling import HERE, LEASE, LOST, PATIENCE, SERVING, THERE, admitted, ended, kinds, live, machine, ready, reported


def test_a_session_that_its_asker_does_not_come_for_is_closed() -> None:
    lifecycle = machine(replace(admitted(), waiter="w"), ready())
    assert not kinds(lifecycle.handle(reported(live(idle=20.0, has_joined=False)), 20.0))
    assert kinds(lifecycle.handle(ev.TicketWanted("s", None), 15.0)) == ["Grant"]  # it is still at it
    assert not kinds(lifecycle.handle(reported(live(idle=30.0, has_joined=False)), 30.0))
    closed = lifecycle.handle(reported(live(idle=36.0, has_joined=False)), 36.0)
    assert kinds(closed) == ["Save", "StopExecutor"]
    assert lifecycle.sessions["s"].reason == "Its notebook did not come for it within 20 s."


@pytest.mark.parametrize(
    ("waiter", "executor"),
    [("w", live(idle=50.0)), ("", live(idle=50.0, has_joined=False))],
    ids=["came", "comes later"],
)
def test_a_session_whose_notebook_came_or_will_come_is_left(waiter: str, executor: ev.LiveExecutor) -> None:
    lifecycle = machine(replace(admitted(), waiter=waiter), ready())
    assert not kinds(lifecycle.handle(reported(executor), 50.0))


def test_a_restarted_kernel_may_come_when_it_likes() -> None:
    lifecycle = machine(
        replace(admitted(), waiter="w"), ready(), ev.RestartWanted("s", ev.Place("node", 0, "cpu")), ready(2)
    )
    assert not kinds(lifecycle.handle(reported(live(2, idle=50.0, has_joined=False)), 50.0))


def test_an_admitted_session_is_saved_before_its_executor_is_launched() -> None:
    lifecycle = Lifecycle(patience=PATIENCE)
    assert kinds(lifecycle.handle(admitted(), 7.0)) == ["Save", "Launch"]
    assert lifecycle.sessions["s"].state is SessionState.OPENING
    assert lifecycle.next_deadline() == 67.0


def test_a_session_is_admitted_once() -> None:
    lifecycle = machine(admitted())
    with pytest.raises(InvalidTransition, match="opening"):
        lifecycle.handle(admitted(), 0.0)


def test_a_ready_executor_gives_the_ticket() -> None:
    instructions = machine(admitted()).handle(ready(), 1.0)
    assert kinds(instructions) == ["Save", "Grant"]
    grant = instructions[1]
    assert isinstance(grant, ev.Grant)
    assert (grant.session.endpoints, grant.session.secret, grant.session.epoch) == (("tls://e:1",), "secret1", 1)


def test_ready_twice_is_ready_once() -> None:
    assert machine(*SERVING).handle(ready(), 1.0) == []


def test_a_first_launch_that_fails_closes_the_session() -> None:
    lifecycle = machine(admitted())
    assert kinds(lifecycle.handle(ev.LaunchFailed("s", 1, "no CuPy"), 1.0)) == ["Save", "Refuse"]
    assert lifecycle.sessions["s"].state is SessionState.CLOSED
    assert lifecycle.sessions["s"].reason == "no CuPy"


def test_a_later_launch_that_fails_keeps_the_lease() -> None:
    lifecycle = machine(*LOST, ev.TicketWanted("s", HERE))
    assert kinds(lifecycle.handle(ev.LaunchFailed("s", 2, "no memory"), 1.0)) == ["Save", "Refuse"]
    assert lifecycle.sessions["s"].state is SessionState.LOST


def test_a_launch_that_takes_too_long_is_given_up() -> None:
    lifecycle = machine(admitted())
    assert kinds(lifecycle.handle(ev.TimePassed(), 59.0)) == []
    assert kinds(lifecycle.handle(ev.TimePassed(), 60.0)) == ["StopExecutor", "Save", "Refuse"]


def test_a_crashed_executor_leaves_the_lease_and_no_ticket() -> None:
    lifecycle = machine(*SERVING)
    assert kinds(lifecycle.handle(ended(), 3.0)) == ["Save"]
    session = lifecycle.sessions["s"]
    assert (session.state, session.secret, session.deadline) == (SessionState.LOST, "", 3.0 + LEASE)


def test_an_executor_that_its_client_left_closes_the_session() -> None:
    lifecycle = machine(*SERVING, ended(is_final=True))
    assert lifecycle.sessions["s"].state is SessionState.CLOSED


def test_a_session_whose_end_is_heard_later_than_that_it_is_gone_is_over_and_not_lost() -> None:
    lifecycle = machine(*SERVING)
    lifecycle.handle(reported(), 1.0)
    assert lifecycle.sessions["s"].state is SessionState.LOST
    assert lifecycle.handle(ended(), 2.0) == []
    assert lifecycle.handle(ended(epoch=2, is_final=True), 2.0) == []
    assert kinds(lifecycle.handle(ended(is_final=True), 2.0)) == ["Save"]
    assert lifecycle.sessions["s"].state is SessionState.CLOSED


def test_a_lost_session_is_given_the_next_epoch_elsewhere() -> None:
    lifecycle = machine(*LOST)
    assert kinds(lifecycle.handle(ev.TicketWanted("s", THERE), 4.0)) == ["Save", "Launch"]
    session = lifecycle.sessions["s"]
    assert (session.state, session.epoch, session.node, session.ordinal) == (SessionState.OPENING, 2, "other", 1)
    assert kinds(lifecycle.handle(ready(2), 5.0)) == ["Save", "Grant"]


def test_a_lost_session_is_closed_when_its_lease_is_over() -> None:
    lifecycle = machine(*LOST)
    assert lifecycle.handle(ev.TimePassed(), LEASE - 1) == []
    assert kinds(lifecycle.handle(ev.TimePassed(), LEASE)) == ["Save"]
    assert lifecycle.sessions["s"].state is SessionState.CLOSED


def test_the_ticket_of_a_serving_session_is_given_again() -> None:
    lifecycle = machine(*SERVING)
    assert kinds(lifecycle.handle(ev.TicketWanted("s", None), 4.0)) == ["Grant"]
    assert lifecycle.sessions["s"].epoch == 1


def test_a_lost_session_needs_a_place_for_its_ticket() -> None:
    with pytest.raises(InvalidTransition, match="lost"):
        machine(*LOST).handle(ev.TicketWanted("s", None), 4.0)


def test_an_unknown_session_has_no_ticket() -> None:
    with pytest.raises(InvalidTransition, match="unknown"):
        machine().handle(ev.TicketWanted("s", None), 4.0)


def test_a_closed_session_has_no_ticket_and_says_why() -> None:
    lifecycle = machine(*LOST, ev.CloseWanted("s", "It was closed by its owner."))
    assert lifecycle.handle(ev.TicketWanted("s", None), 4.0) == [ev.Refuse("s", "It was closed by its owner.")]


def test_a_restart_stops_the_old_executor_first() -> None:
    lifecycle = machine(*SERVING)
    instructions = lifecycle.handle(ev.RestartWanted("s", HERE), 4.0)
    assert kinds(instructions) == ["StopExecutor", "Save", "Launch"]
    assert instructions[0] == ev.StopExecutor("node", "s", 1, "The kernel was restarted.")
    assert lifecycle.sessions["s"].epoch == 2


def test_a_restart_of_a_session_that_opens_waits_with_it() -> None:
    assert machine(admitted()).handle(ev.RestartWanted("s", HERE), 4.0) == []


def test_the_end_of_an_old_executor_is_no_news() -> None:
    lifecycle = machine(*SERVING, ev.RestartWanted("s", HERE))
    assert lifecycle.handle(ended(epoch=1), 5.0) == []
    assert lifecycle.sessions["s"].state is SessionState.OPENING


def test_a_closed_session_frees_its_place_when_the_executor_is_gone() -> None:
    lifecycle = machine(*SERVING)
    assert kinds(lifecycle.handle(ev.CloseWanted("s", "bye"), 4.0)) == ["Save", "StopExecutor"]
    assert lifecycle.sessions["s"].state is SessionState.CLOSING
    lifecycle.handle(ended(), 5.0)
    assert lifecycle.sessions["s"].state is SessionState.CLOSED


def test_closing_twice_or_closing_nothing_is_no_news() -> None:
    lifecycle = machine(*SERVING, ev.CloseWanted("s", "bye"))
    assert lifecycle.handle(ev.CloseWanted("s", "bye"), 5.0) == []
    assert lifecycle.handle(ev.CloseWanted("never", "bye"), 5.0) == []


def test_closing_while_it_opens_tells_whoever_waits() -> None:
    assert kinds(machine(admitted()).handle(ev.CloseWanted("s", "bye"), 5.0)) == ["Refuse", "Save", "StopExecutor"]


def test_a_report_that_lists_the_executor_is_as_good_as_ready() -> None:
    assert kinds(machine(admitted()).handle(reported(live()), 1.0)) == ["Save", "Grant"]


def test_a_report_without_the_executor_means_it_died() -> None:
    lifecycle = machine(*SERVING)
    lifecycle.handle(reported(node="other"), 1.0)
    assert lifecycle.sessions["s"].state is SessionState.SERVING
    lifecycle.handle(reported(), 1.0)
    assert lifecycle.sessions["s"].state is SessionState.LOST


def test_a_report_without_the_executor_repeats_the_launch() -> None:
    assert kinds(machine(admitted()).handle(reported(), 1.0)) == ["Launch"]


def test_a_report_without_the_executor_ends_the_closing() -> None:
    lifecycle = machine(*SERVING, ev.CloseWanted("s", "bye"))
    lifecycle.handle(reported(), 1.0)
    assert lifecycle.sessions["s"].state is SessionState.CLOSED


def test_an_executor_that_nobody_wants_is_stopped_each_time_it_is_seen() -> None:
    lifecycle = machine(*SERVING, ev.CloseWanted("s", "bye"))
    for _ in range(2):
        assert lifecycle.handle(reported(live()), 1.0) == [ev.StopExecutor("node", "s", 1, "bye")]


def test_an_executor_of_an_older_epoch_is_stopped() -> None:
    lifecycle = machine(*SERVING, ev.RestartWanted("s", THERE))
    assert ("node", 1) in {
        (i.node, i.epoch) for i in lifecycle.handle(reported(live()), 1.0) if isinstance(i, ev.StopExecutor)
    }
    assert lifecycle.sessions["s"].epoch == 2


def test_a_gateway_without_records_learns_the_sessions_of_known_users() -> None:
    lifecycle = machine()
    assert kinds(lifecycle.handle(reported(live(epoch=3, user="ada"), live(session="x")), 1.0)) == [
        "Save",
        "StopExecutor",
    ]
    session = lifecycle.sessions["s"]
    assert (session.user, session.epoch, session.state) == ("ada", 3, SessionState.SERVING)


def test_a_node_knows_a_later_epoch_than_old_records() -> None:
    lifecycle = machine(*SERVING)
    lifecycle.handle(reported(live(epoch=4)), 1.0)
    session = lifecycle.sessions["s"]
    assert (session.epoch, session.certificate, session.user, session.label) == (4, "certificate4", "ada", "a.ipynb")


def test_of_two_executors_of_a_session_the_later_epoch_counts() -> None:
    lifecycle = machine(admitted())
    instructions = lifecycle.handle(reported(live(epoch=1), live(epoch=2)), 1.0)
    assert kinds(instructions) == ["Save", "StopExecutor"]
    assert lifecycle.sessions["s"].epoch == 2


def test_a_client_that_vanished_is_given_up_even_if_its_executor_does_not_notice() -> None:
    lifecycle = machine(*SERVING)
    assert lifecycle.handle(reported(live(idle=LEASE + 29)), LEASE + 29) == []
    assert kinds(lifecycle.handle(reported(live(idle=LEASE + 31)), LEASE + 31)) == ["Save", "StopExecutor"]


def test_a_client_that_asks_for_its_way_is_there_though_its_executor_hears_nothing() -> None:
    lifecycle = machine(*SERVING)
    assert kinds(lifecycle.handle(ev.TicketWanted("s", None), LEASE)) == ["Grant"]
    assert lifecycle.handle(reported(live(idle=LEASE + 31)), LEASE + 31) == []
    assert lifecycle.handle(reported(live(idle=2 * LEASE + 29)), 2 * LEASE + 29) == []
    assert kinds(lifecycle.handle(reported(live(idle=2 * LEASE + 31)), 2 * LEASE + 31)) == ["Save", "StopExecutor"]


def test_a_session_that_is_learned_from_its_node_has_a_lease_to_be_heard_in() -> None:
    lifecycle = machine()
    lifecycle.handle(reported(live(idle=10 * LEASE, user="ada")), 0.0)
    assert lifecycle.handle(reported(live(idle=11 * LEASE)), 1.0) == []
    closed = lifecycle.handle(reported(live(idle=12 * LEASE)), LEASE + 32)
    assert kinds(closed) == ["Save", "StopExecutor"]


def test_a_lost_node_loses_its_sessions_and_no_others() -> None:
    lifecycle = machine(*SERVING, admitted("t", THERE), ready(session="t"))
    lifecycle.handle(ev.NodeLost("node", "power cut"), 1.0)
    assert lifecycle.sessions["s"].state is SessionState.LOST
    assert lifecycle.sessions["s"].reason == "power cut"
    assert lifecycle.sessions["t"].state is SessionState.SERVING


def test_deadlines_start_anew_after_a_restart_of_the_gateway() -> None:
    lost = machine(*LOST).sessions["s"]
    lifecycle = Lifecycle([lost], PATIENCE, now=1000.0)
    assert lifecycle.next_deadline() == 1000.0 + LEASE
    lifecycle.validate()


def test_an_impossible_event_tells_the_story() -> None:
    lifecycle = machine(*LOST)
    with pytest.raises(InvalidTransition) as caught:
        lifecycle.handle(ev.TicketWanted("s", None), 4.0)
    story = str(caught.value)
    assert "SessionAdmitted: unknown -> opening (epoch 1)" in story
    assert "ExecutorEnded: serving (epoch 1) -> lost (epoch 1)" in story


def test_records_of_closed_sessions_are_bounded() -> None:
    lifecycle = Lifecycle(patience=PATIENCE)
    for number in range(1_200):
        lifecycle.handle(admitted(f"s{number}"), 0.0)
        lifecycle.handle(ev.LaunchFailed(f"s{number}", 1, "no"), 0.0)
    assert len(lifecycle.sessions) == 1_000
    assert "s1199" in lifecycle.sessions


# --- any order of events --------------------------------------------------------------------------------------------

SESSIONS = st.sampled_from(["a", "b", "c"])
EPOCHS = st.integers(1, 4)
PLACES = st.sampled_from([HERE, THERE])
LIVE = st.builds(
    live, EPOCHS, SESSIONS, st.sampled_from([0.0, 500.0]), st.sampled_from(["", "ada"]), is_sealed=st.booleans()
)
EVENTS = st.one_of(
    st.builds(admitted, SESSIONS, PLACES),
    st.builds(ready, EPOCHS, SESSIONS),
    st.builds(ev.LaunchFailed, SESSIONS, EPOCHS, st.just("no")),
    st.builds(ev.ExecutorEnded, SESSIONS, EPOCHS, st.booleans(), st.just("dead")),
    st.builds(ev.TicketWanted, SESSIONS, st.one_of(st.none(), PLACES)),
    st.builds(ev.RestartWanted, SESSIONS, PLACES),
    st.builds(ev.CloseWanted, SESSIONS, st.just("bye")),
    st.builds(ev.NodeReported, st.sampled_from(["node", "other"]), st.lists(LIVE, max_size=3).map(tuple), st.just(1.0)),
    st.builds(ev.NodeLost, st.sampled_from(["node", "other"]), st.just("gone")),
    st.just(ev.TimePassed()),
)


@given(st.lists(st.tuples(EVENTS, st.floats(0.0, 80.0)), max_size=40))
@example([(reported(*(live(1, s, 0.0, "ada") for s in "abc")), 1.0), *((ev.RestartWanted(s, HERE), 1.0) for s in "ab")])
@settings(max_examples=300, deadline=None)
def test_whatever_happens_the_guarantees_hold(story: list[tuple[ev.Event, float]]) -> None:
    lifecycle = Lifecycle(patience=PATIENCE)
    now = 0.0
    for event, seconds in story:
        now += seconds
        before = dict(lifecycle.sessions)
        try:
            instructions = lifecycle.handle(event, now)
        except InvalidTransition:
            assert dict(lifecycle.sessions) == before
            continue
        lifecycle.validate()
        check_step(before, lifecycle, instructions)
    assert eventually_settles(lifecycle, now)


def check_step(before: dict[str, Session], lifecycle: Lifecycle, instructions: list[ev.Instruction]) -> None:
    saved = {i.session.id: i.session for i in instructions if isinstance(i, ev.Save)}
    for key, session in lifecycle.sessions.items():
        old = before.get(key)
        assert session == old or saved[key] == session, "a change that is not on record"
        if old is not None:
            assert session.epoch >= old.epoch
            assert old.state in HELD or session.state not in HELD
    for instruction in instructions:
        if isinstance(instruction, ev.Grant | ev.Launch):
            assert instruction.session.epoch == lifecycle.sessions[instruction.session.id].epoch
            assert instruction.session.state is not SessionState.CLOSED


def eventually_settles(lifecycle: Lifecycle, now: float) -> bool:
    """Without clients, and with nodes that say there is nothing, every session ends, after two deadlines at most."""
    for _ in range(2 * len(lifecycle.sessions) + 1):
        for node in ("node", "other"):
            lifecycle.handle(reported(node=node), now)
        deadline = lifecycle.next_deadline()
        if deadline < inf:
            now = deadline
            lifecycle.handle(ev.TimePassed(), now)
    return all(session.state is SessionState.CLOSED for session in lifecycle.sessions.values())
