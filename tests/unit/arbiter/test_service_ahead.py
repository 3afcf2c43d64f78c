"""The arbiter decides a moment before a turn ends, and what comes in between is not held up by that."""

from __future__ import annotations

from math import inf

import pytest

from gpu_backend.arbiter.ahead import Ahead
from gpu_backend.arbiter.events import OpenGate, ShutGate
from tests.unit.arbiter.test_service import MILLISECOND, Bench, bench

__all__ = ["bench"]


class LastMoment:
    """Two hogs, one of which holds a turn, a moment before that ends: what follows is decided."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        for session in ("a", "b", "person"):
            bench.join(session, session)
        for session in ("a", "b"):
            bench.say(session, queued=1_000)
        (self.holder,) = bench.open()
        self.next = "ab".replace(self.holder, "")
        self.end = bench.pages[self.holder].orders.order(bench.now).open_until_ns
        bench.pass_time((self.end - bench.now) / MILLISECOND - 0.5)

    def open_at(self, now: int) -> set[str]:
        return {session for session, page in self.bench.pages.items() if page.orders.may_launch(now)}


@pytest.fixture
def moment(bench: Bench) -> LastMoment:
    return LastMoment(bench)


def test_who_is_next_knows_it_before_the_turn_ends_and_begins_when_it_has(moment: LastMoment) -> None:
    assert moment.open_at(moment.bench.now) == moment.open_at(moment.end - 1) == {moment.holder}
    assert moment.open_at(moment.end + 1) == {moment.next}
    order = moment.bench.pages[moment.holder].orders.order(moment.bench.now)
    assert order.open_until_ns == moment.end
    assert order.short_until_ns == moment.end - 250_000  # what is in flight takes until then: the other is awake
    moment.bench.pass_time(1)
    assert moment.bench.open() == {moment.next}


def test_what_is_urgent_cuts_the_last_moment_of_a_turn_short(moment: LastMoment) -> None:
    moment.bench.say("person", queued=1, urgent=True)
    assert moment.bench.now < moment.end
    assert moment.bench.open() == moment.open_at(moment.end) == {"person"}
    moment.bench.say("person", used_ms=0.1)
    assert len(moment.bench.open()) == 1


def test_a_turn_goes_on_if_who_was_next_wants_nothing_any_more(moment: LastMoment) -> None:
    moment.bench.say(moment.next)
    assert moment.bench.open() == moment.open_at(moment.end) == moment.open_at(moment.end + MILLISECOND)
    assert moment.bench.open() == {moment.holder}


def test_who_was_next_and_becomes_urgent_begins_at_once(moment: LastMoment) -> None:
    moment.bench.say(moment.next, queued=1, urgent=True)
    assert moment.bench.now < moment.end
    assert moment.bench.open() == moment.open_at(moment.end) == {moment.next}


def test_a_device_that_its_holder_leaves_is_the_next_ones_at_once(moment: LastMoment) -> None:
    moment.bench.say("person", queued=1_000)  # a third, so that the turn to come is no longer for that
    moment.bench.say(moment.holder)
    assert moment.bench.now < moment.end
    assert moment.bench.open() == moment.open_at(moment.end) == {moment.next}


def test_every_turn_that_would_go_on_is_cut_short(bench: Bench) -> None:
    """As where several end in one moment."""
    for session in ("a", "b", "person"):
        bench.join(session, session)
    seats, now, end = bench.arbiter._seats, bench.now, bench.now + MILLISECOND
    ahead = Ahead(seats, lambda key: key == "person")
    for session in ("a", "b"):
        seats[session].orders.open(OpenGate(session, end / 1e9, 0, inf, 1.0), now)
        ahead.note(ShutGate(session), now)
        seats[session].orders.shut(now, end)
    assert bench.open() >= {"a", "b"}
    ahead.overrule(OpenGate("person", end / 1e9, 0, inf, 1.0), now)
    assert not bench.open() & {"a", "b"}


def test_what_is_no_end_of_a_turn_is_decided_when_it_has_come(bench: Bench) -> None:
    """As when a device has been quiet for long enough to open the gates of all."""
    for session in ("a", "b"):
        bench.join(session, session)
        bench.say(session, queued=1_000)
    for session in ("a", "b"):
        bench.say(session)
    deadline = bench.arbiter._scheduler.next_deadline()
    assert bench.arbiter._decides_at() == deadline < inf


def test_what_the_holder_computes_before_its_end_is_counted_before_the_next_is_chosen(bench: Bench) -> None:
    """Its last news are older than the decision, and without what is still to come it would seem to be behind."""
    for session in ("a", "b"):
        bench.join(session, session)
        bench.say(session, queued=1_000, flying=3)
    used, longest, since, former = {"a": 0.0, "b": 0.0}, 0.0, bench.now, ""
    for _ in range(1_000):
        (holder,) = bench.open()
        if holder != former:
            former, since = holder, bench.now
        longest = max(longest, (bench.now - since) / MILLISECOND)
        used[holder] += 0.5
        bench.say(holder, used[holder] - 0.2, queued=1_000, flying=3)
        bench.pass_time(0.45)
    assert longest < 22  # a turn, and not two


def test_who_leaves_in_the_last_moment_of_its_turn_takes_nothing_along(moment: LastMoment) -> None:
    del moment.bench.members[moment.holder], moment.bench.pages[moment.holder]
    moment.bench.publish()
    moment.bench.say("person", queued=1, urgent=True)
    assert moment.bench.open() == {"person"}
