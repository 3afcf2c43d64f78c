"""The notebook runs ahead of the device by about half a second of its time, and by a handful of ops never timed."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from timeit import Timer
from weakref import ref

import numpy as np
import pytest

from gpu_backend.opstream.marks import Marks
from gpu_backend.wire import messages as wire
from gpu_backend.wire.messages import Op, Want
from kernelproxy.stream.ahead import MOST_SECONDS, Ahead
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.costs import Cost, no_costs
from kernelproxy.stream.pipeline import Pipeline

from .played import PlayedExecutor, interrupt_before_opcode

HANDFUL = 6


class Watched(PlayedExecutor):
    """Runs one op whenever the client waits, and notes how many were under way then."""

    def __init__(self, **op_seconds: float) -> None:
        super().__init__(credit_ops=16_384)
        self.op_seconds = op_seconds
        self.pace = 1
        self.queued: list[int] = []

    def live(self) -> None:
        self.hear()
        self.queued.append(self.talk.queued_ops)
        super().live()


def run(executor: Watched, pipeline: Pipeline, count: int, name: str = "slow", size: int = 0) -> list[int]:
    """Record ``count`` ops; return how many were under way at each wait."""
    executor.queued.clear()
    for _ in range(count):
        pipeline.record(name, (1,), size=size)
    return list(executor.queued)


def test_of_what_was_never_timed_a_handful_is_under_way() -> None:
    executor = Watched(slow=60.0)
    pipeline = executor.pipeline()
    assert max(run(executor, pipeline, 8)) <= HANDFUL


def test_what_is_lost_with_a_connection_is_not_under_way() -> None:
    """Else nothing could be sent again beside it, and nobody would ever be answered."""
    executor = Watched(slow=60.0)
    pipeline = executor.pipeline()
    for number in range(5):
        pipeline.record("slow", (number,))
    assert executor.link is not None
    executor.link.cut()
    assert pipeline.call("op", ("ask",), Want.CONTENTS).value == "ask"
    assert [word for _, word in executor.done] == [0, 1, 2, 3, 4, "ask"]


@pytest.mark.parametrize("seconds", [0.04, 0.01, 0.002])
def test_half_a_second_of_what_was_timed_is_under_way(seconds: float) -> None:
    executor = Watched(slow=seconds)
    pipeline = executor.pipeline()
    run(executor, pipeline, 2_000)
    waits = run(executor, pipeline, 1_000)
    most = MOST_SECONDS / seconds
    assert 0.5 * most <= max(waits) <= 1.3 * most + 1


def test_small_ops_run_ahead_by_thousands() -> None:
    executor = Watched(small=10e-6)
    pipeline = executor.pipeline()
    run(executor, pipeline, 200, "small")
    assert run(executor, pipeline, 10_000, "small") == []


def test_what_is_counted_again_behind_an_interrupt_takes_the_room_that_it_takes() -> None:
    moment = moments = 0
    while moment <= moments:
        marks = Marks()
        marks.note_recorded(2)
        ahead = Ahead(marks)
        batches = [OpenBatch(1), OpenBatch(2)]
        for batch in batches:
            batch.add(Op("slow", 0, ()), None, Cost(0.8 * MOST_SECONDS, True))
            batch.last = batch.first
            batch.costs[0].is_long = False
        assert ahead.has_room(batches[0])
        with suppress(KeyboardInterrupt), interrupt_before_opcode(moment) as passed:
            ahead.note_sent(batches[0])
        ahead.note_sent(batches[0])
        assert not ahead.has_room(batches[1])
        moments, moment = passed[0], moment + 1
    assert moment > 10


def test_what_was_sent_with_a_question_is_let_go_of_once_it_is_done() -> None:
    executor = Watched()
    pipeline = executor.pipeline()
    sent = np.ones(9, np.uint8)
    gone = ref(sent)
    assert pipeline.call("op", ("with it",), Want.CONTENTS, None, [sent.data]).value == "with it"
    del sent
    for word in ("then", "and then"):
        assert pipeline.call("op", (word,), Want.CONTENTS).value == word
    assert gone() is None


def test_one_that_is_longer_than_all_that_may_wait_is_sent() -> None:
    executor = Watched(slow=10.0)
    pipeline = executor.pipeline()
    run(executor, pipeline, 20)
    assert max(run(executor, pipeline, 20)) == 1
    assert len(executor.done) >= 38


def test_what_is_larger_takes_longer_until_it_was_timed() -> None:
    executor = Watched(slow=10e-6)
    pipeline = executor.pipeline()
    run(executor, pipeline, 200, size=1_000)
    pipeline.call("op", (1,), Want.CONTENTS)
    executor.op_seconds["slow"] = 5.0
    assert max(run(executor, pipeline, 20, size=1 << 30)) <= HANDFUL


def test_the_first_op_was_compiled_too() -> None:
    executor = Watched(slow=0.4)
    pipeline = executor.pipeline()
    run(executor, pipeline, 1)
    pipeline.call("op", (1,), Want.CONTENTS)
    executor.op_seconds["slow"] = 20e-6
    run(executor, pipeline, 6_000)
    pipeline.call("op", (1,), Want.CONTENTS)
    assert run(executor, pipeline, 10_000) == []


def test_the_second_time_counts_for_the_first_as_well() -> None:
    cost = no_costs()[10]["slow"]
    assert cost.is_long
    for seconds, taken_for in ((0.8, 0.8), (20e-6, 20e-6), (60e-6, 50e-6)):
        cost.learn(seconds)
        assert cost.seconds == pytest.approx(taken_for)
    assert not cost.is_long


def test_a_surprise_is_learnt_of_with_the_next_report() -> None:
    """Ops of one kind and size become long at once, as a kernel that counts to a number given does."""
    executor = Watched(slow=1e-3)
    pipeline = executor.pipeline()
    run(executor, pipeline, 1_000)
    executor.op_seconds["slow"] = 0.05
    run(executor, pipeline, 600)
    assert max(run(executor, pipeline, 100)) <= 15


def test_an_answer_is_asked_for_behind_all_that_waits() -> None:
    executor = Watched(slow=10.0)
    pipeline = executor.pipeline()
    run(executor, pipeline, 5)
    assert pipeline.call("op", ("asked",), Want.CONTENTS).value == "asked"
    assert len(executor.done) == 6


def test_a_timed_loop_takes_what_the_device_takes() -> None:
    """As ``%timeit`` finds it. Time passes only while the client waits, so what is recorded is for nothing."""
    executor = Watched(slow=0.04)
    pipeline = executor.pipeline()
    timer = Timer(lambda: pipeline.record("slow", (1,)), timer=lambda: executor.busy_seconds)
    number, _ = timer.autorange()
    runs = [seconds / number for seconds in timer.repeat(7, number)]
    assert len(executor.done) * 0.04 < 30
    assert 0.02 <= sum(runs) / len(runs) <= 0.06


def test_mixed_ops_are_told_apart_well_enough() -> None:
    executor = Watched(slow=0.04, small=10e-6)
    pipeline = executor.pipeline()
    for _ in range(40):
        run(executor, pipeline, 10, "small")
        run(executor, pipeline, 1, "slow")
    pipeline.call("op", (1,), Want.CONTENTS)
    assert max(run(executor, pipeline, 60, "slow")) <= 1.5 * MOST_SECONDS / 0.04
    for _ in range(2):
        run(executor, pipeline, 2_000, "small")
        pipeline.call("op", (1,), Want.CONTENTS)
    assert run(executor, pipeline, 3_000, "small") == []


def test_dropped_ops_teach_nothing() -> None:
    executor = Watched(slow=0.04)
    pipeline = executor.pipeline()
    run(executor, pipeline, 100)
    pipeline.cancel_pending()
    pipeline.call("op", (1,), Want.CONTENTS)
    assert max(run(executor, pipeline, 100)) <= 1.3 * MOST_SECONDS / 0.04 + 1


@pytest.mark.parametrize("told", [float("nan"), float("inf"), -1.0])
def test_times_that_make_no_sense_are_not_believed(told: float) -> None:
    executor = Watched(slow=0.04)
    pipeline = executor.pipeline()
    run(executor, pipeline, 100)
    pipeline.ahead.note_time(told, dropped_through=0)
    run(executor, pipeline, 100)
    assert max(run(executor, pipeline, 100)) <= 1.3 * MOST_SECONDS / 0.04 + 1


def test_after_a_lost_connection_nothing_is_counted_twice() -> None:
    executor = Watched(slow=0.04)
    pipeline = executor.pipeline()
    run(executor, pipeline, 100)
    assert executor.link is not None
    executor.link.cut()
    run(executor, pipeline, 100)
    pipeline.call("op", (1,), Want.CONTENTS)
    assert pipeline.ahead.seconds == 0.0
    assert len(executor.done) == 201


def test_views_that_repeat_an_array_may_be_larger_than_memory() -> None:
    assert no_costs()[(1 << 100).bit_length()]["op"].is_long


def test_a_time_that_does_not_cover_all_that_is_done_teaches_nothing() -> None:
    """As when a ping is answered between an op's answer and the moment in which the device's events are looked at."""
    pipeline = PlayedExecutor().pipeline()
    pipeline.record("slow", (1,))
    pipeline.call("op", (2,), Want.CONTENTS)
    cost = pipeline.ahead.costs[0]["slow"]
    assert pipeline.journal.marks.done == 2
    pipeline.inbox.note(wire.Ack(2, 0, 0.0), [])
    assert not cost.is_known
    pipeline.inbox.note(wire.Ack(2, 2, 0.08), [])
    assert cost.seconds == pytest.approx(0.08, rel=1e-3)


@pytest.mark.parametrize(("seconds", "messages"), [(0.2e-3, 1), (2e-3, 2)])
def test_what_was_done_soon_behind_its_being_sent_goes_with_what_follows(seconds: float, messages: int) -> None:
    """Before anybody has said what it takes; who waits for each result would pay for two messages each time.

    Each look at the clock is so many ``seconds`` behind the one before.
    """
    clock = count(0.0, seconds)
    pipeline = PlayedExecutor().pipeline()
    pipeline.ahead.clock = lambda: next(clock)
    for _ in range(3):
        pipeline.record("new", (1,))
        pipeline.call("op", (2,), Want.CONTENTS)
    sent = pipeline.counters.batches
    pipeline.record("new", (1,))
    pipeline.call("op", (2,), Want.CONTENTS)
    assert not pipeline.ahead.costs[0]["new"].is_known
    assert pipeline.counters.batches - sent == messages
