"""Policies that let sessions run side by side by what they want of a device, in virtual time: what each promises."""

from __future__ import annotations

import pytest

from gpu_backend.arbiter import events as ev
from gpu_backend.arbiter.policies import registry
from gpu_backend.arbiter.policies._interference import Interference
from gpu_backend.arbiter.policies._pairing import Pairing
from gpu_backend.arbiter.policies.muxflow import MuxFlow
from gpu_backend.arbiter.policies.orion import Orion
from gpu_backend.arbiter.scheduler import Scheduler
from gpu_backend.arbiter.simulation.device import SimulatedDevice
from gpu_backend.arbiter.simulation.outcome import Outcome, quantile
from gpu_backend.arbiter.simulation.trace import Cell, Script
from gpu_backend.arbiter.views import SessionView
from gpu_backend.gate.terms import SessionClass, SessionTerms

ENDLESS = 10**9
#: Bound by arithmetic, by memory, and by what nobody knows.
ARITHMETIC, MEMORY, UNKNOWN = (1.0, 0.0), (0.0, 1.0), (-1.0, -1.0)
Parts = tuple[float, float]
BEST_EFFORT = SessionClass.BEST_EFFORT


def hog(session: str, parts: Parts = UNKNOWN, kind: SessionClass = SessionClass.INTERACTIVE) -> Script:
    return Script(SessionTerms(session=session, user=session, kind=kind), 0, (Cell(0.0, ENDLESS, 5e-4, *parts),))


def requests(session: str, pause: float, seconds: float, parts: Parts = UNKNOWN) -> Script:
    cell = Cell(pause, round(seconds / 5e-4), 5e-4, *parts)
    return Script(SessionTerms(session=session, user=session), 0, (cell,) * 10_000)


def run(
    policy: str, *scripts: Script, has_overlap: bool = True, seconds: float = 20.0
) -> tuple[dict[str, float], Outcome]:
    """Return what part of the time each user had kernels on the device, and the figures."""
    device = SimulatedDevice(registry.make(policy), scripts, has_overlap=has_overlap)
    outcome = device.run(seconds)
    device.scheduler.validate()
    return {user: used / seconds for user, used in device.scheduler.used_by_user.items()}, outcome


# --- the device -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "each"),
    [(ARITHMETIC, MEMORY, 1.0), (MEMORY, MEMORY, 0.5), (UNKNOWN, MEMORY, 0.5), ((0.75, 0.25), (0.5, 0.5), 0.8)],
)
def test_kernels_overlap_as_far_as_they_want_different_things(one: Parts, other: Parts, each: float) -> None:
    parts, _ = run("driver", hog("a", one), hog("b", other))
    assert parts == pytest.approx({"a": each, "b": each}, rel=0.01)


# --- orion ------------------------------------------------------------------------------------------------------------


def test_orion_lets_beside_priority_work_what_complements_it_and_nothing_else() -> None:
    """Priority work keeps its speed either way; fair shares would give it half, and the device no more than whole."""
    high = requests("high", 0.01, 0.05, ARITHMETIC)
    beside, outcome = run("orion", high, hog("low", MEMORY, BEST_EFFORT))
    assert quantile(outcome.slowdowns, 0.95) <= 1.02
    assert beside["high"] + beside["low"] > 1.7
    held, outcome = run("orion", high, hog("low", ARITHMETIC, BEST_EFFORT))
    assert quantile(outcome.slowdowns, 0.95) <= 1.05  # what is in flight when a request comes is let finish
    assert held["low"] == pytest.approx(1 - held["high"], abs=0.02)
    assert held["low"] < 0.2
    fair, outcome = run("fair_share", high, hog("low", MEMORY, BEST_EFFORT))
    assert quantile(outcome.slowdowns, 0.5) > 1.5
    assert fair["high"] + fair["low"] <= 1.0


def test_orion_lets_the_unknown_try_and_withdraws_it_where_priority_work_loses() -> None:
    high = requests("high", 0.01, 0.05, ARITHMETIC)
    parts, outcome = run("orion", high, hog("low", UNKNOWN, BEST_EFFORT))
    assert quantile(outcome.slowdowns, 0.9) <= 1.1
    assert parts["high"] > 0.8


def test_orion_is_priority_where_the_driver_alternates() -> None:
    """Kernels of two processes do not overlap without MPS: what complements disturbs as much as what does not."""
    high, low = requests("high", 0.01, 0.05, ARITHMETIC), hog("low", MEMORY, BEST_EFFORT)
    parts, outcome = run("orion", high, low, has_overlap=False)
    assert quantile(outcome.slowdowns, 0.9) <= 1.1
    assert parts["low"] > 0.15
    by_driver, _ = run("driver", high, low, has_overlap=False)
    assert parts["high"] > 1.5 * by_driver["high"]


def waiting(scheduler: Scheduler, session: str, now: float, queued: int = 1000, flying: int = 0) -> None:
    scheduler.handle(ev.Reported(session, 0.0, 0, queued, flying), now)


def test_orion_begins_no_more_best_effort_work_until_what_is_outstanding_has_ended() -> None:
    scheduler = Scheduler(Orion(request_part=0.1, least_seconds=0.002))
    for name, kind in (("high", SessionClass.INTERACTIVE), ("low", BEST_EFFORT)):
        scheduler.handle(ev.SessionJoined(SessionTerms(session=name, user=name, kind=kind)), 0.0)
    waiting(scheduler, "low", 0.001)
    assert scheduler.is_open("low"), "no request is in progress"
    scheduler.handle(ev.Reported("low", 0.0021, 2, 998, 2), 0.0015)
    scheduler.handle(ev.TimePassed(), scheduler.next_deadline())
    assert not scheduler.is_open("low"), "the limit is used up, and two ops are under way"
    assert scheduler.is_open("high")
    scheduler.handle(ev.Reported("low", 0.0021, 2, 998, 0), 0.006)
    assert scheduler.is_open("low"), "all have ended"
    scheduler.validate()


def test_orions_limit_grows_with_the_requests() -> None:
    """A tenth of a request of 100 ms may be outstanding, and not of all that was ever done."""
    scheduler = Scheduler(Orion(request_part=0.1, least_seconds=0.002))
    for name, kind in (("high", SessionClass.INTERACTIVE), ("low", BEST_EFFORT)):
        scheduler.handle(ev.SessionJoined(SessionTerms(session=name, user=name, kind=kind)), 0.0)
    waiting(scheduler, "high", 1.0)
    scheduler.handle(ev.Reported("high", 0.1, 100, 0), 1.1)
    (opened,) = scheduler.handle(ev.Reported("low", 0.0, 0, 1000), 1.2)
    assert isinstance(opened, ev.OpenGate)
    assert opened.budget_seconds == pytest.approx(0.01)


def test_pairs_are_tried_once_the_rate_alone_is_known_and_judged_by_it() -> None:
    pairing = Pairing(kept=0.9, look_seconds=0.1, retry_seconds=5.0)
    assert not pairing.may_pair(0.0)
    pairing.note(0.1, 100, is_beside=False, now=0.1)
    assert pairing.may_pair(0.1)
    pairing.note(0.1, 95, is_beside=True, now=0.2)
    assert pairing.may_pair(0.2)
    assert not pairing.may_pair(5.1), "its rate alone is looked at again"
    pairing.note(0.1, 100, is_beside=False, now=5.2)
    assert pairing.may_pair(5.2)
    pairing.note(0.1, 80, is_beside=True, now=5.3)
    assert not pairing.may_pair(10.2)
    assert pairing.may_pair(10.3)


# --- muxflow ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pause", "share"), [(0.1, 0.7), (0.05, 0.5), (0.0056, 0.1)])
def test_muxflow_gives_offline_work_the_complement_of_online_activity(pause: float, share: float) -> None:
    """Online work of 50 ms with pauses keeps its rate, as it does not under fair shares."""
    online = requests("online", pause, 0.05, ARITHMETIC)
    alone, _ = run("muxflow", online)
    parts, _ = run("muxflow", online, hog("offline", MEMORY, BEST_EFFORT))
    assert parts["online"] == pytest.approx(alone["online"], rel=0.01)
    assert parts["offline"] == pytest.approx(share, abs=0.06)
    fair, _ = run("fair_share", online, hog("offline", MEMORY, BEST_EFFORT))
    assert fair["online"] < 0.95 * alone["online"]


def test_muxflow_leaves_little_beside_endless_online_work_though_the_driver_alternates() -> None:
    parts, _ = run("muxflow", hog("online"), hog("offline", kind=BEST_EFFORT), has_overlap=False)
    assert parts["offline"] == pytest.approx(0.1, abs=0.01)
    assert parts["online"] > 0.8


def test_muxflow_shares_follow_online_activity_and_are_divided_equally() -> None:
    policy = MuxFlow()
    online = Script(
        SessionTerms(session="online", user="online"), 0, (Cell(0.0, 4_000, 5e-4), Cell(6.0, ENDLESS, 5e-4))
    )
    offline = [hog(f"offline{n}", kind=BEST_EFFORT) for n in range(2)]
    device = SimulatedDevice(policy, (online, *offline), has_overlap=True)
    device.run(2.0)
    assert policy.share == 0.1
    device.run(8.0)
    assert policy.share == 0.9
    used = device.scheduler.used_by_user
    assert used["offline0"] == pytest.approx(used["offline1"], rel=0.02)
    device.run(15.0)
    assert policy.share == 0.1


def test_muxflow_holds_nobody_back_where_nothing_is_online() -> None:
    parts, _ = run("muxflow", hog("offline", kind=BEST_EFFORT))
    assert parts["offline"] == pytest.approx(1.0, rel=0.001)


# --- iadeep -----------------------------------------------------------------------------------------------------------


def test_iadeep_finds_the_pairs_that_disturb_each_other_least() -> None:
    scripts = [hog("a", ARITHMETIC), hog("b", ARITHMETIC), hog("c", MEMORY), hog("d", MEMORY)]
    parts, _ = run("iadeep", *scripts)
    assert sum(parts.values()) > 1.6
    assert min(parts.values()) > 0.35
    fair, _ = run("fair_share", *scripts)
    assert sum(fair.values()) == pytest.approx(1.0, rel=0.001)


@pytest.mark.parametrize(("parts", "has_overlap"), [(ARITHMETIC, True), (MEMORY, False)])
def test_iadeep_becomes_turns_where_side_by_side_is_no_better(parts: Parts, has_overlap: bool) -> None:
    scripts = [hog("a", parts), hog("b", parts), hog("c", parts)]
    found, outcome = run("iadeep", *scripts, has_overlap=has_overlap, seconds=40.0)
    assert found == pytest.approx(dict.fromkeys("abc", 1 / 3), abs=0.03)
    assert outcome.utilisation > 0.99


def known(name: str, parts: Parts) -> SessionView:
    return SessionView(SessionTerms(session=name, user=name), 1, 0, 1e-3, compute_part=parts[0], memory_part=parts[1])


def test_interference_is_measured_then_predicted_from_its_kind_and_before_that_nought() -> None:
    found = Interference(memory_seconds=30.0)
    one, other, third = known("a", ARITHMETIC), known("b", MEMORY), known("c", MEMORY)
    for name in "abc":
        found.note_alone(name, 100.0)
    assert found.of(one, other, 0.0) == 0
    found.note_together(one, other, (50.0, 80.0), 1.0)
    assert found.of(one, other, 1.0) == pytest.approx(1.25), "(2 - 1) + (1.25 - 1)"
    assert found.of(one, third, 1.0) == 0, "too few were measured for a prediction"
    for _ in range(21):
        found.note_together(one, other, (50.0, 80.0), 1.0)
    assert found.of(one, third, 1.0) == pytest.approx(1.25)
    assert found.of(other, third, 1.0) == 0, "nothing was measured of that kind"
    assert found.of(one, other, 40.0) == pytest.approx(1.25), "a value that is old gives way to the prediction"
    found.forget("a")
    assert not found.is_known("a")
