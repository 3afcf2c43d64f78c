"""What is done and not durable is kept, and nobody waits for it: what may be under way is another question."""

from __future__ import annotations

import pytest

from gpu_backend.opstream.marks import Marks
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Buffer
from kernelproxy.stream.batch_size import BATCH_OPS
from kernelproxy.stream.pipeline import Pipeline

from .played import PlayedExecutor

pytestmark = pytest.mark.usefixtures("both_ways")

MANY = 40 * BATCH_OPS


class Point:
    """A durable point that somebody moves."""

    def __init__(self) -> None:
        self.at = 0

    def __call__(self, marks: Marks) -> int:
        return min(self.at, marks.done)


@pytest.fixture
def executor() -> PlayedExecutor:
    return PlayedExecutor(credit_ops=2 * BATCH_OPS, credit_bytes=100)


@pytest.fixture
def point() -> Point:
    return Point()


@pytest.fixture
def pipeline(executor: PlayedExecutor, point: Point) -> Pipeline:
    return executor.pipeline(point)


def write(pipeline: Pipeline, word: str) -> None:
    data = word.encode()
    pipeline.record_with_buffer(lambda frame: (".write", (word, Buffer(frame, "|u1", (len(data),)))), data)


def ask(pipeline: Pipeline) -> object:
    return pipeline.call("op", ("ask",), Want.CONTENTS).value


def kept(pipeline: Pipeline) -> list[int]:
    """Return the numbers of all ops that are held."""
    return [number for one in pipeline.journal.held() for number in range(one.first, one.last + 1)]


def test_far_more_than_the_credit_is_kept_and_the_stream_runs_on(
    pipeline: Pipeline, executor: PlayedExecutor, point: Point
) -> None:
    for number in range(MANY):
        pipeline.record("op", (number,))
        assert pipeline.credit.ops_in_flight <= 2 * BATCH_OPS
    for _ in range(20):
        write(pipeline, "x" * 60)
        pipeline.flush()
        assert pipeline.credit.bytes_in_flight <= 100
    assert ask(pipeline) == "ask"
    asked = MANY + 21
    assert len(executor.done) == pipeline.journal.marks.done == asked
    assert pipeline.journal.marks.durable == 0
    assert kept(pipeline) == list(range(1, asked + 1))
    assert pipeline.journal.is_whole
    assert (pipeline.credit.ops_in_flight, pipeline.credit.bytes_in_flight) == (0, 0)

    point.at = MANY  # and what is durable from now on is let go with the next answer
    ask(pipeline)
    assert pipeline.journal.marks.durable == MANY
    assert kept(pipeline)[0] > MANY - BATCH_OPS


def test_after_a_cut_nothing_that_is_done_is_sent_again(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    for number in range(MANY):
        pipeline.record("op", (number,))
    ask(pipeline)
    for number in range(3):
        pipeline.record("op", (f"later {number}",))
    pipeline.drain()
    assert executor.link is not None
    executor.link.cut()
    assert ask(pipeline) == "ask"
    assert [word for _, word in executor.done] == [*range(MANY), "ask", "later 0", "later 1", "later 2", "ask"]
    assert pipeline.connection.bytes_sent < 1_000
    assert len(kept(pipeline)) == MANY + 5


def test_beyond_the_bound_the_oldest_are_let_go_and_nobody_waits(executor: PlayedExecutor, point: Point) -> None:
    pipeline = executor.pipeline(point)
    pipeline.journal._most_ops = 4 * BATCH_OPS
    for number in range(MANY):
        pipeline.record("op", (number,))
    ask(pipeline)
    assert len(executor.done) == MANY + 1
    assert 3 * BATCH_OPS < len(kept(pipeline)) <= 4 * BATCH_OPS
    assert not pipeline.journal.is_whole


def test_what_is_kept_is_named_in_no_word_about_the_work(pipeline: Pipeline) -> None:
    from kernelproxy.stream import work

    for number in range(MANY):
        pipeline.record("op", (number,))
    ask(pipeline)
    assert work.under_way(pipeline) == work.Work()
    assert pipeline.cancel_pending() == []


def test_an_executor_that_is_gone_takes_what_was_kept_along(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    ask(pipeline)
    pipeline.abandon()
    assert kept(pipeline) == []
    assert pipeline.journal.marks.durable == pipeline.journal.marks.recorded == 1
