"""How long anybody wants a device is neither the most nor the sum of how long each of them does."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_backend.arbiter.wanting import Wanting
from gpu_backend.gate import tally
from gpu_backend.gate.roster import name_of
from tests.unit.arbiter.test_service import Bench, bench

__all__ = ["bench"]


def test_it_is_wanted_while_anybody_wants_it_and_time_never_goes_back() -> None:
    wanting = Wanting(100)
    wanting.pass_time(110)  # by nobody
    wanting.note("a", True)
    wanting.pass_time(120)
    wanting.note("b", True)
    wanting.note("a", False)
    wanting.pass_time(115)
    wanting.pass_time(130)
    wanting.note("b", False)
    wanting.note("nobody", False)
    wanting.pass_time(200)
    assert wanting.by_any_ns == 20


def test_two_that_wait_for_their_notebooks_by_turns_leave_no_time_in_which_nobody_wants_it(bench: Bench) -> None:
    bench.join("a", "a")
    bench.join("b", "b")
    idle = bench.now
    bench.pass_time(300)  # nobody
    began = bench.now
    used = {"a": 0.0, "b": 0.0}
    bench.say("b", queued=9)
    for thinking in "abab":
        bench.say(thinking, used[thinking])
        bench.pass_time(100)
        bench.say(thinking, used[thinking], queued=9)
    bench.pass_time(250)  # a beat, which notes all
    passed = (bench.now - began) / 1e9
    for session in "ab":
        member = bench.members[session]
        name = name_of(member.pid, member.start_time, member.report)
        booked = tally.booked(bench.directory, name)
        assert booked.wanted_by_any_seconds == pytest.approx(passed, abs=0.01)
        assert booked.wanted_seconds == pytest.approx(passed - 0.2, abs=0.02)
        assert booked.at_seconds > idle / 1e9


def test_who_has_left_wants_nothing_any_more(bench: Bench, tmp_path: Path) -> None:
    bench.join("a", "a")
    bench.join("b", "b")
    bench.say("a", queued=9)
    del bench.members["a"]
    bench.publish()
    before = bench.arbiter._wanting.by_any_ns
    bench.pass_time(500)
    assert bench.arbiter._wanting.by_any_ns == before
