"""What an executor does, step after step: a loop that is told of a played gate, device and notebook."""

from __future__ import annotations

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
from gpu_backend.executor.loop import Loop

NOW = 100.0


class Gate:
    is_contended = is_urgent = is_yielding = is_way_taken = is_pausing = False
    has_device_alone = True
    pause_seconds = opens_in = 0.0

    def __init__(self) -> None:
        self.is_open = True

    def may_launch(self) -> bool:
        return self.is_open


class Pace:
    in_flight_ops, op_seconds, works_long = 0, 50e-6, False

    def __init__(self) -> None:
        self.has_room = True

    def is_full(self) -> bool:
        return not self.has_room


class Notebook:
    has_unsent = False

    def __init__(self) -> None:
        self.ops = self.cancelled = 0

    @property
    def has_work(self) -> bool:
        return self.ops > 0

    @property
    def is_cancelled(self) -> bool:
        return self.cancelled > 0


class Played:
    """Carries out the steps of a loop; each takes a little time, and what happens meanwhile is a test's to say."""

    def __init__(self, has_spare: bool = False, has_question: bool = False) -> None:
        self.gate, self.pace, self.notebook = Gate(), Pace(), Notebook()
        self.lessons = 0
        self.loop = Loop(self.gate, self.pace, lambda: has_spare, lambda: self.lessons > 0, lambda: has_question)
        self.now, self.asks, self.ran, self.op_seconds = NOW, 0, 0, 0.0

    def ask(self, ops: int) -> None:
        """Have a message of the notebook wait in the socket."""
        self.asks += ops

    def go(self) -> Step:
        """Carry out one step, and return it."""
        step = self.loop.next_step(self.notebook, self.now)
        assert step == loops.next_step(self.loop.look(self.notebook), self.now)  # whichever way it was found
        self.now += 1e-6
        if isinstance(step, Run):
            self.ran, self.notebook.ops = self.ran + 1, self.notebook.ops - 1
            self.now += self.op_seconds
            self.loop.note_ran(self.now, not self.notebook.ops)
        elif isinstance(step, Drop):
            self.notebook.ops, self.notebook.cancelled = self.notebook.ops - 1, self.notebook.cancelled - 1
            self.loop.note_ran(self.now, False)
        elif isinstance(step, Report):
            self.loop.note_told(step.is_resting)
        elif isinstance(step, Measure):
            self.loop.note_measured(self.now)
        elif isinstance(step, Check):
            self.loop.note_checked(self.now)
        elif isinstance(step, Learn):
            self.lessons, self.notebook.ops = self.lessons - 1, self.notebook.ops + self.asks
            is_heard, self.asks = self.asks > 0, 0
            self.loop.note_learnt(self.now, is_heard)
        elif isinstance(step, Rehearse):
            self.notebook.ops, is_heard, self.asks = self.notebook.ops + self.asks, self.asks > 0, 0
            self.loop.note_rehearsed(self.now, is_heard)
        elif isinstance(step, Receive | Spin | Sleep):
            is_heard = self.asks > 0
            if not is_heard and isinstance(step, Spin | Sleep):
                self.now = step.until
            self.notebook.ops, self.asks = self.notebook.ops + self.asks, 0
            if isinstance(step, Spin | Sleep) and step.wait is Wait.WORK:
                self.loop.note_heard(self.now, is_heard)
            else:
                self.loop.note_looked(self.now, is_heard or isinstance(step, Sleep))
        return step

    def kinds(self, count: int) -> list[type[Step]]:
        """Carry out so many steps, and return what they were."""
        return [type(self.go()) for _ in range(count)]


def test_an_op_after_a_pause_runs_at_once_and_then_all_is_told_and_it_sleeps() -> None:
    played = Played()
    assert played.kinds(2) == [Check, Report]
    played.ask(1)
    assert played.kinds(6) == [Sleep, Run, Spin, Measure, Report, Sleep]
    assert played.kinds(4) == [Check, Report, Sleep, Check]  # and sleeps on: it spins for nobody


def test_a_stream_of_ops_runs_in_slices_and_messages_are_taken_between_them() -> None:
    played = Played()
    played.go()
    played.ask(3)
    assert played.kinds(2) == [Report, Sleep]
    assert [each for each in played.kinds(7) if each is not Measure] == [Run, Receive, Run, Receive, Run, Spin]


def test_one_behind_a_shut_gate_tells_sleeps_and_runs_when_it_opens() -> None:
    played = Played()
    played.go()
    played.gate.is_open = False
    played.ask(1)
    assert played.kinds(6) == [Report, Sleep, Report, Sleep, Report, Sleep]
    played.gate.is_open = True
    assert played.kinds(1) == [Run]


def serve(played: Played) -> None:
    """Have an op come, and run it."""
    played.ask(1)
    while played.asks or played.notebook.ops:
        played.go()


def ask_after(played: Played, pause: float) -> None:
    """Have ops come so long after those before them, which is soon waited for without a sleep."""
    for _ in range(12):
        serve(played)
        until = played.now + pause
        while played.now < until:
            step = played.loop.next_step(played.notebook, played.now)
            if isinstance(step, Spin | Sleep) and step.until > until:
                played.now = until
            else:
                played.go()


def test_pauses_that_are_spun_through_are_for_learning() -> None:
    played = Played(has_spare=True)
    ask_after(played, 1e-3)
    serve(played)
    assert played.loop.look(played.notebook).spin_seconds > 1e-3
    played.lessons, begun = 2, played.now
    steps: list[Step] = []
    while played.lessons:
        steps.append(played.go())
    assert [type(one) for one in steps if not isinstance(one, Measure)] == [Spin, Report, Learn, Learn]
    assert played.now - begun < 100e-6
    assert isinstance(played.go(), Spin)  # for the rest of the pause


def test_one_who_has_filled_the_device_goes_on_when_there_is_room() -> None:
    played = Played()
    played.go()
    played.ask(2)
    assert [each for each in played.kinds(4) if each is not Measure] == [Report, Sleep, Run]
    played.pace.has_room = False
    assert played.kinds(5) == [Receive, Report, Sleep, Report, Sleep]
    played.pace.has_room = True
    assert played.kinds(1) == [Run]


def test_the_next_message_is_looked_for_from_the_end_of_an_op_on_however_long_it_took() -> None:
    played = Played()
    played.go()
    played.ask(1)
    assert played.kinds(2) == [Report, Sleep]
    played.op_seconds = 0.2
    assert played.kinds(1) == [Run]
    assert played.loop.next_step(played.notebook, played.now) == Spin(Wait.WORK, played.now + loops.SPIN_SECONDS)


def awaited(played: Played, seconds: float) -> list[Step]:
    """Have one op come so long after the last one was done, and return the steps until it has run."""
    done_at, ran, steps = played.now, played.ran, []
    while played.ran == ran:
        step = played.loop.next_step(played.notebook, played.now)
        if isinstance(step, Spin | Sleep) and step.until >= done_at + seconds:
            played.now = max(played.now, done_at + seconds)
            played.ask(1)
        steps.append(played.go())
    return steps


def test_an_op_that_comes_a_little_later_than_was_spun_is_spun_for_in_the_end() -> None:
    played = Played(has_spare=True)
    for _ in range(12):
        steps = awaited(played, 2e-3)
    assert not any(isinstance(step, Sleep) for step in steps)
    for pause, is_remembered in ((0.2, True), (10e-3, False)):  # no more is spun in vain than a tenth of a pause
        assert any(isinstance(step, Sleep) for step in awaited(played, pause))
        assert any(isinstance(step, Sleep) for step in awaited(played, 2e-3)) is not is_remembered


def test_who_shares_the_device_spins_no_longer_than_ever() -> None:
    played = Played(has_spare=True)
    played.gate.is_contended = True
    for _ in range(12):
        steps = awaited(played, 2e-3)
    assert any(isinstance(step, Sleep) for step in steps)


def rehearsals(played: Played, seconds: float) -> list[float]:
    """Have one op run and then nothing come for so long; return when the question was asked again, counted from it."""
    played.ask(1)
    while not played.ran:
        played.go()
    done_at, found = played.now, []
    while played.now < done_at + seconds:
        if isinstance(played.go(), Rehearse):
            found.append(played.now - done_at)
    return found


def test_a_question_is_asked_again_every_few_milliseconds_for_a_moment_behind_the_last_op() -> None:
    played = Played(has_spare=True, has_question=True)
    found = rehearsals(played, 3.0)
    assert found[0] == pytest.approx(loops.REHEARSE_SECONDS, abs=1e-4)
    assert found[-1] == pytest.approx(loops.REHEARSED_SECONDS, abs=loops.REHEARSE_SECONDS)
    assert len(found) == pytest.approx(loops.REHEARSED_SECONDS / loops.REHEARSE_SECONDS, rel=0.1)
    played.loop.note_heard(played.now, True)  # a word of the pool, as comes every two seconds, is no question
    assert Rehearse not in played.kinds(200)


def test_it_is_not_where_there_is_none_or_others_want_processor_or_device() -> None:
    assert rehearsals(Played(has_spare=True), 1.0) == []
    assert rehearsals(Played(has_question=True), 1.0) == []
    played = Played(has_spare=True, has_question=True)
    played.gate.has_device_alone = False
    assert rehearsals(played, 1.0) == []


def test_what_comes_meanwhile_runs_at_once() -> None:
    played = Played(has_spare=True, has_question=True)
    rehearsals(played, 0.01)
    while not isinstance(played.loop.next_step(played.notebook, played.now), Rehearse):
        played.go()
    played.ask(1)
    assert played.kinds(2) == [Rehearse, Run]


def test_a_cancel_is_heard_behind_a_shut_gate() -> None:
    played = Played()
    played.go()
    played.gate.is_open = False
    played.ask(2)
    played.kinds(4)
    played.notebook.cancelled = 2
    assert [each for each in played.kinds(4) if each is not Measure] == [Drop, Receive, Drop]
    assert played.ran == 0


def test_an_end_is_the_last_step() -> None:
    played = Played()
    played.ask(3)
    played.kinds(4)
    played.loop.is_over = True
    assert played.kinds(2) == [Stop, Stop]


acts = st.sampled_from("ask shut open fill free cancel urgent pause contend go go go".split())


@given(st.lists(acts, max_size=60), st.booleans())
def test_whatever_happens_the_loop_gets_on(story: list[str], may_rehearse: bool) -> None:
    """Nothing runs behind a shut gate; within a few steps what may run runs, or it waits; leases are looked at."""
    played = Played(may_rehearse, may_rehearse)
    checked = played.now
    for act in story:
        if act == "ask":
            played.ask(2)
        elif act in ("shut", "open"):
            played.gate.is_open = act == "open"
        elif act in ("fill", "free"):
            played.pace.has_room = act == "free"
        elif act == "cancel":
            played.notebook.cancelled = played.notebook.ops
        elif act == "urgent":
            played.gate.is_urgent = not played.gate.is_urgent
        elif act == "pause":
            played.gate.is_pausing, played.gate.pause_seconds = not played.gate.is_pausing, 0.3e-3
        elif act == "contend":
            played.gate.is_contended = not played.gate.is_contended
        else:
            before, may = played.ran, played.gate.is_open and played.pace.has_room
            can = may and played.notebook.ops > played.notebook.cancelled
            steps = [played.go() for _ in range(6)]
            assert may or played.ran == before
            assert not can or Run in map(type, steps) or Drop in map(type, steps)
            assert any(isinstance(each, Run | Drop | Spin | Sleep) for each in steps)
            if Check in map(type, steps):
                checked = played.now
            assert played.now - checked <= 6 * loops.SLEEP_SECONDS + loops.CHECK_SECONDS
