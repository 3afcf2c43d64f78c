"""What a node lists that it was not given, and what one lists that old records know nothing of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_backend.lifecycle import events as ev
from gpu_backend.lifecycle.states import SessionState

from .telling import LEASE, LOST, SERVING, admitted, kinds, live, machine, reported


@pytest.mark.parametrize(
    "claimed",
    [live(2), live(9), live(idle=10 * LEASE), live(user="eve")],
    ids=["next epoch", "later epoch", "long silence", "same epoch"],
)
def test_a_node_changes_no_session_of_another_node(claimed: ev.LiveExecutor) -> None:
    lifecycle = machine(*SERVING)
    before = lifecycle.sessions["s"]
    unsealed = replace(claimed, is_sealed=False, secret="its own", endpoints=("tls://trap:1",))
    stopped = lifecycle.handle(reported(unsealed, node="other"), 10 * LEASE)
    assert stopped == [ev.StopExecutor("other", "s", claimed.epoch, "The pool did not give this session to its node.")]
    assert lifecycle.sessions["s"] == before


@pytest.mark.parametrize("state", [SERVING, LOST, (admitted(),)], ids=["serving", "lost", "opening"])
def test_a_node_takes_no_later_epoch_of_its_own_session_by_itself(state: tuple[ev.Event, ...]) -> None:
    lifecycle = machine(*state)
    before = lifecycle.sessions["s"]
    assert kinds(lifecycle.handle(reported(live(), replace(live(7), is_sealed=False)), 1.0))[:1] == ["StopExecutor"]
    assert lifecycle.sessions["s"].epoch == before.epoch


def test_a_node_makes_up_no_session_for_a_user() -> None:
    lifecycle = machine()
    made_up = replace(live(user="ada"), is_sealed=False)
    assert kinds(lifecycle.handle(reported(made_up), 1.0)) == ["StopExecutor"]
    assert not lifecycle.sessions


def test_an_executor_from_before_there_were_seals_is_known_by_its_record() -> None:
    lifecycle = machine(admitted())
    assert kinds(lifecycle.handle(reported(replace(live(), is_sealed=False)), 1.0)) == ["Save", "Grant"]
    assert lifecycle.handle(reported(replace(live(), is_sealed=False)), 2.0) == []


def test_old_records_learn_of_a_session_that_was_moved_since() -> None:
    lifecycle = machine(*SERVING)
    lifecycle.handle(reported(live(2), node="other"), 1.0)
    session = lifecycle.sessions["s"]
    assert (session.node, session.epoch, session.state) == ("other", 2, SessionState.SERVING)
    assert kinds(lifecycle.handle(reported(live(1)), 2.0)) == ["StopExecutor"]


def test_of_two_nodes_with_the_same_epoch_the_one_on_record_counts() -> None:
    lifecycle = machine(*SERVING)
    before = lifecycle.sessions["s"]
    assert kinds(lifecycle.handle(reported(live(), node="other"), 1.0)) == ["StopExecutor"]
    assert lifecycle.sessions["s"] == before
