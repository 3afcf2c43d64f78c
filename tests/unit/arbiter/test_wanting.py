"""How long a device is wanted and unused follows from all who share it, and not from how long each of them wants it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_backend.arbiter.wanting import Wanting
from gpu_backend.gate import tally
from gpu_backend.gate.roster import name_of
from tests.unit.arbiter.test_service import Bench, bench

__all__ = ["bench"]


def test_it_is_unused_while_anybody_wants_it_but_for_what_is_used_and_time_never_goes_back() -> None:
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
    assert wanting.unused_ns == 20
    wanting.note_used(15)  # as is known only now
    assert wanting.unused_ns == 5


def test_two_that_wait_for_their_notebooks_by_turns_leave_no_time_in_which_nobody_wants_it(bench: Bench) -> None:
    """All of it that they do not use is unused."""
    bench.join("a", "a")
    bench.join("b", "b")
    idle = bench.now
    bench.pass_time(300)  # nobody
    began = bench.now
    used = {"a": 0.0, "b": 0.0}
    bench.say("b", queued=9)
    for thinking in "abab":
        used[thinking] += 20
        bench.say(thinking, used[thinking])
        bench.pass_time(100)
        bench.say(thinking, used[thinking], queued=9)
    bench.pass_time(250)  # a beat, which notes all
    passed = (bench.now - began) / 1e9
    for session in "ab":
        member = bench.members[session]
        name = name_of(member.pid, member.start_time, member.report)
        booked = tally.booked(bench.directory, name)
        assert booked.unused_seconds == pytest.approx(passed - 4 * 0.02, abs=0.01)
        assert booked.wanted_seconds == pytest.approx(passed - 0.2, abs=0.02)
        assert booked.at_seconds > idle / 1e9


def test_who_has_left_wants_nothing_any_more(bench: Bench, tmp_path: Path) -> None:
    bench.join("a", "a")
    bench.join("b", "b")
    bench.say("a", queued=9)
    del bench.members["a"]
    bench.publish()
    before = bench.arbiter._wanting.unused_ns
    bench.pass_time(500)
    assert bench.arbiter._wanting.unused_ns == before
