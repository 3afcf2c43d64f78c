"""Who has a long op under way is known of each session as its ops change, and without a look at all the others."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from gpu_backend.arbiter import events as ev
from gpu_backend.arbiter.overlap import Overlap
from gpu_backend.arbiter.policies.fair_share import FairShare
from gpu_backend.arbiter.scheduler import Scheduler
from gpu_backend.gate.terms import SessionTerms

LONG = 0.005


class LookedUp(str):
    """A session's id that counts how often anything is looked up by it."""

    __slots__ = ("times",)
    times: int

    def __hash__(self) -> int:
        self.times = getattr(self, "times", 0) + 1
        return super().__hash__()


def test_a_report_costs_no_look_at_others_whose_ops_run_on() -> None:
    scheduler = Scheduler(FairShare())
    others = [LookedUp(f"s{number}") for number in range(64)]
    for name in [*others, "own"]:
        scheduler.handle(ev.SessionJoined(SessionTerms(session=name, user="u")), 0.0)
        scheduler.handle(ev.Reported(name, 0.0, 0, 0, in_flight_ops=1), 0.0)
    scheduler.handle(ev.Reported("own", 0.01, 1, 0, in_flight_ops=1), 1.0)  # by now all are known to be long
    for each in others:
        each.times = 0
    for number in range(100):
        scheduler.handle(ev.Reported("own", 0.01, 1, 0, in_flight_ops=1), 1.1 + number / 10)
    assert sum(each.times for each in others) == 0


@pytest.mark.parametrize("seed", range(5))
def test_whoever_comes_and_goes_the_device_is_divided_among_those_with_long_ops(seed: int) -> None:
    random, overlap = Random(seed), Overlap()
    flying: dict[str, tuple[float, float]] = {}  # by session: how long its ops are, and since when they run
    now = 0.0
    for _ in range(2_000):
        session = random.choice("abcdefgh")
        now += random.choice([0.0, 0.001, 0.004, 0.02])
        overlap.note(now)
        long = {key for key, (seconds, since) in flying.items() if max(seconds, now - since) > LONG}
        parts = {key: overlap.own(1e-9, key, now + 1e-9) for key in "abcdefgh"}
        assert parts == {key: pytest.approx(1e-9 / len(long | {key})) for key in parts}
        if random.random() < 0.4:
            flying.pop(session, None)
            overlap.land(session)
        else:
            flying[session] = (random.choice([0.0, 0.002, 0.1]), random.choice([now, now - 0.003]))
            overlap.fly(session, *flying[session])
        overlap.note(now)
    for session in "abcdefgh":
        overlap.land(session)
    overlap.note(now)
    assert overlap.own(0.001, "a", now + 0.001) == 0.001
    assert not overlap.is_clear
    overlap.note(inf)
    assert overlap.is_clear
