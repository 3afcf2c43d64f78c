"""The core: what it accepts, what it refuses, whom it relieves, what it counts."""

from __future__ import annotations

from math import inf, nan
from typing import ClassVar

import pytest

from gpu_backend.arbiter import events as ev
from gpu_backend.arbiter.scheduler import ImpossibleEvent, Relief, Scheduler
from gpu_backend.arbiter.views import DeviceView, SessionView, Slice, Suggestion
from gpu_backend.gate.terms import SessionTerms


class Scripted:
    """Suggests what it is told to."""

    name: ClassVar[str] = "scripted"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = False

    def __init__(self, *slices: Slice, ask_again_at: float = inf) -> None:
        self.suggestion = Suggestion(slices, ask_again_at)
        self.views: list[DeviceView] = []

    def suggest(self, view: DeviceView) -> Suggestion:
        self.views.append(view)
        return self.suggestion


class OpenToIdle(Scripted):
    opens_idle: ClassVar[bool] = True


class LettingPass(Scripted):
    """Lets short ops of those pass who are named."""

    lane_seconds = 0.01

    def __init__(self, *slices: Slice, passing: str) -> None:
        super().__init__(*slices)
        self.passing = passing

    def may_pass(self, session: SessionView, now: float) -> bool:
        return session.id in self.passing


def with_sessions(policy: Scripted, *names: str, relief: Relief | None = None) -> Scheduler:
    scheduler = Scheduler(policy, relief)
    for name in names:
        scheduler.handle(ev.SessionJoined(SessionTerms(session=name, user=f"user of {name}")), 0.0)
    return scheduler


def queue(scheduler: Scheduler, name: str, now: float = 0.0, ops: int = 10) -> tuple[ev.Instruction, ...]:
    return scheduler.handle(ev.Reported(name, 0.0, 0, ops), now)


def test_an_accepted_slice_opens_the_gate_once() -> None:
    scheduler = with_sessions(Scripted(Slice("a", 5.0, window_ops=2, duty=0.5)), "a")
    assert scheduler.is_open("a")
    assert scheduler.log[0].instructions == (ev.OpenGate("a", 5.0, 2, inf, 0.5),)
    assert queue(scheduler, "a") == ()
    assert scheduler.next_deadline() == 5.0


def test_what_is_not_suggested_any_more_is_shut_before_another_opens() -> None:
    policy = Scripted(Slice("a"))
    scheduler = with_sessions(policy, "a", "b")
    policy.suggestion = Suggestion((Slice("b"),))
    assert queue(scheduler, "b") == (ev.ShutGate("a"), ev.OpenGate("b", inf, 0, inf, 1.0))


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (Slice("nobody"), "no such session"),
        (Slice("a", -1.0), "not an end"),
        (Slice("a", nan), "not an end"),
        (Slice("a", duty=0.0), "not an end"),
        (Slice("a", duty=1.5), "not an end"),
        (Slice("a", budget_seconds=nan), "not an end"),
        (Slice("a", window_ops=-1), "not an end"),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(part: Slice, reason: str) -> None:
    scheduler = with_sessions(Scripted(part), "a")
    queue(scheduler, "a")
    assert not scheduler.is_open("a")
    assert reason in scheduler.log[-1].refusals[0].reason
    scheduler.validate()


def test_a_session_is_granted_once_at_a_time() -> None:
    scheduler = with_sessions(Scripted(Slice("a", 1.0), Slice("a", 2.0)), "a")
    assert scheduler.next_deadline() == 1.0
    assert "twice" in scheduler.log[-1].refusals[0].reason


def test_idle_sessions_stand_open_until_somebody_waits() -> None:
    scheduler = with_sessions(OpenToIdle(), "a", "b")
    assert scheduler.is_open("a")
    assert queue(scheduler, "a") == (ev.ShutGate("a"), ev.ShutGate("b"))
    assert queue(scheduler, "a", ops=0) == ()  # it may be back in a moment
    assert scheduler.next_deadline() == pytest.approx(1.0)
    opened = scheduler.handle(ev.TimePassed(), scheduler.next_deadline())
    assert opened == tuple(ev.OpenGate(name, inf, 0, inf, 1.0) for name in "ab")
    assert scheduler.next_deadline() == inf


def test_who_had_the_device_last_finds_it_open_while_nobody_waits() -> None:
    policy = OpenToIdle(Slice("a"))
    scheduler = with_sessions(policy, "a")
    queue(scheduler, "a")
    policy.suggestion = Suggestion()
    assert queue(scheduler, "a", ops=0) == (ev.OpenGate("a", inf, 0, inf, 1.0),)
    assert scheduler.next_deadline() == inf


def lane(name: str) -> ev.OpenLane:
    return ev.OpenLane(name, LettingPass.lane_seconds)


def test_who_is_done_keeps_a_lane_while_the_policy_lets_them_pass() -> None:
    policy = LettingPass(Slice("a"), passing="a")
    scheduler = with_sessions(policy, "a", "b")
    queue(scheduler, "a")
    queue(scheduler, "b")
    policy.suggestion = Suggestion((Slice("b"),))
    assert queue(scheduler, "a", ops=0) == (lane("a"), ev.OpenGate("b", inf, 0, inf, 1.0))
    assert scheduler.handle(ev.Reported("a", 0.0, 0, 0), 0.1) == ()
    assert scheduler.handle(ev.Reported("a", 0.001, 1, 0), 0.2) == (lane("a"),)  # used: here is more
    policy.passing = ""
    assert scheduler.handle(ev.Reported("a", 0.001, 1, 0), 0.3) == (ev.ShutGate("a"),)
    assert scheduler.handle(ev.Reported("a", 0.001, 1, 0), 0.4) == ()
    scheduler.validate()


def test_who_asks_gives_up_the_lane_for_a_grant_or_a_shut_gate() -> None:
    policy = LettingPass(Slice("b"), passing="ac")
    scheduler = with_sessions(policy, "a", "b", "c")
    for name in "acb":
        queue(scheduler, name)
    for name in "ac":  # without a grant nothing was given up, so nothing is given
        assert queue(scheduler, name, ops=0) == ()
    policy.suggestion = Suggestion((Slice("a"), Slice("b"), Slice("c")))
    scheduler.handle(ev.SessionJoined(SessionTerms(session="d", user="d")), 0.0)
    policy.suggestion = Suggestion((Slice("b"),))
    assert queue(scheduler, "d") == (lane("a"), lane("c"))
    assert queue(scheduler, "a") == (ev.ShutGate("a"),)
    policy.suggestion = Suggestion((Slice("b"), Slice("c")))
    assert queue(scheduler, "c") == (ev.OpenGate("c", inf, 0, inf, 1.0),)
    scheduler.validate()


def test_standing_gates_become_lanes_when_somebody_waits() -> None:
    class Both(LettingPass):
        opens_idle: ClassVar[bool] = True

    scheduler = with_sessions(Both(passing="ab"), "a", "b", "c")
    assert scheduler.is_open("b")
    assert queue(scheduler, "a") == (ev.ShutGate("a"), lane("b"), ev.ShutGate("c"))


def test_long_ops_side_by_side_are_charged_for_their_part() -> None:
    """The driver gives each of two a turn after the other, so the time that each took is the time of both."""
    scheduler = with_sessions(Scripted(), "a", "b", "c")
    for name in "ab":
        scheduler.handle(ev.Reported(name, 0.0, 0, 0, in_flight_ops=1), 0.0)
    scheduler.handle(ev.Reported("c", 0.0, 0, 0), 0.01)  # by now both are known to be long
    scheduler.handle(ev.Reported("c", 0.03, 3, 0), 0.07)
    scheduler.handle(ev.Reported("a", 0.2, 1, 0), 0.2)
    scheduler.handle(ev.Reported("b", 0.3, 1, 0), 0.3)
    used = scheduler.used_by_user
    assert used["user of c"] == pytest.approx(0.01)
    assert used["user of a"] == pytest.approx(0.1, abs=0.01)
    assert used["user of b"] == pytest.approx(0.2, abs=0.01)
    scheduler.handle(ev.Reported("c", 0.03, 3, 0), 0.5)
    assert used["user of c"] == pytest.approx(0.04)


def test_who_is_never_suggested_is_relieved() -> None:
    scheduler = with_sessions(Scripted(Slice("hog")), "hog", "poor", relief=Relief(1.0, 0.02))
    queue(scheduler, "hog")
    queue(scheduler, "poor")
    opened = []
    while scheduler.next_deadline() < 3.0:
        now = scheduler.next_deadline()
        opened += [(now, i) for i in scheduler.handle(ev.TimePassed(), now) if i.session == "poor"]
    times = [now for now, instruction in opened if isinstance(instruction, ev.OpenGate)]
    assert len(times) == 2
    assert times[0] <= 1.1
    assert [type(instruction) for _, instruction in opened] == [ev.OpenGate, ev.ShutGate] * 2
    assert scheduler.is_open("hog")


def test_charges_are_shown_once_even_of_who_left() -> None:
    policy = Scripted()
    scheduler = with_sessions(policy, "a", "b")
    scheduler.handle(ev.Reported("a", 0.25, 1, 0), 1.0)
    scheduler.handle(ev.SessionLeft("a", 0.5), 2.0)
    assert [(c.terms.session, c.seconds) for c in policy.views[-1].charges] == [("a", 0.75)]
    assert policy.views[-1].left == ("a",)
    queue(scheduler, "b", 3.0)
    assert not policy.views[-1].charges
    assert not policy.views[-1].left
    assert scheduler.used_by_user == {"user of a": 0.75}


def test_an_ops_length_is_the_mean_of_old_and_new() -> None:
    scheduler = with_sessions(Scripted(), "a")
    scheduler.handle(ev.Reported("a", 1.0, 10, 5), 1.0)
    assert scheduler.sessions["a"].op_seconds == pytest.approx(0.1)
    scheduler.handle(ev.Reported("a", 3.0, 10, 5), 2.0)
    assert scheduler.sessions["a"].op_seconds == pytest.approx(0.2)
    assert scheduler.sessions["a"].queued_seconds == pytest.approx(1.0)
    assert scheduler.sessions["a"].waited_seconds(3.0) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "event",
    [
        ev.Reported("nobody", 0.0, 0, 0),
        ev.SessionLeft("nobody"),
        ev.TermsChanged(SessionTerms(session="nobody", user="u")),
        ev.SessionJoined(SessionTerms(session="a", user="u")),
        ev.Reported("a", -1.0, 0, 0),
        ev.SessionLeft("a", -1.0),
    ],
)
def test_impossible_events_change_nothing(event: ev.Event) -> None:
    scheduler = with_sessions(Scripted(), "a")
    before = dict(scheduler.sessions)
    with pytest.raises(ImpossibleEvent):
        scheduler.handle(event, 1.0)
    assert dict(scheduler.sessions) == before
    scheduler.validate()


def test_time_does_not_go_back() -> None:
    scheduler = with_sessions(Scripted(), "a")
    queue(scheduler, "a", 5.0)
    with pytest.raises(ImpossibleEvent, match="came after"):
        queue(scheduler, "a", 4.0)


@pytest.mark.parametrize("terms", [{"user_weight": 0}, {"request": 0.5, "limit": 0.4}, {"limit": 0}, {"request": -0.1}])
def test_terms_that_cannot_be_kept_are_refused(terms: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        SessionTerms(session="s", user="u", **terms)  # type: ignore[arg-type]
