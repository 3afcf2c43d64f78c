"""Uploads over a network: what the executor has kept is named and not sent, and never what it may not have."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gpu_backend.executor.answer import Answer
from gpu_backend.opstream.contents import KEEP, LEAST_BYTES, WRITE_KEPT
from gpu_backend.wire.errors import ErrorRecord, OpCancelled, ProtocolError, SessionLost
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Buffer
from kernelproxy.stream.counters import Way
from kernelproxy.stream.mirrored import MirroredPipeline

from .played import PlayedExecutor, interrupt_at

MOST = 5 * LEAST_BYTES
WORDS = [str(number).ljust(LEAST_BYTES * (1 + number % 3), ".") for number in range(6)]


@pytest.fixture
def executor() -> PlayedExecutor:
    return PlayedExecutor(kept_bytes=MOST)


@pytest.fixture
def pipeline(executor: PlayedExecutor) -> MirroredPipeline:
    return executor.pipeline()


def upload(pipeline: MirroredPipeline, word: str, offset: int = 0) -> None:
    data = word.encode()
    pipeline.record_with_buffer(lambda frame: (".write", (word, Buffer(frame, "|u1", (len(data),)))), data, offset)


def ask(pipeline: MirroredPipeline) -> object:
    return pipeline.call("op", ("ask",), Want.CONTENTS).value


def names(pipeline: MirroredPipeline) -> list[str]:
    """Return the names of ops that are recorded and not sealed."""
    return [op.name for op in pipeline.open_batch.ops]


def test_what_was_sent_is_named_from_then_on(pipeline: MirroredPipeline, executor: PlayedExecutor) -> None:
    for _ in range(3):
        upload(pipeline, WORDS[0])
    assert names(pipeline) == [".write", KEEP, WRITE_KEPT, WRITE_KEPT]
    assert pipeline.open_batch.bytes == len(WORDS[0])
    ask(pipeline)
    upload(pipeline, WORDS[0][:-1] + "!")
    assert names(pipeline) == [".write", KEEP]
    ask(pipeline)
    assert [word for _, word in executor.done].count(WORDS[0]) == 3
    assert pipeline.counters.kept_bytes == 2 * len(WORDS[0])
    assert pipeline.counters.sent_bytes == {Way.NETWORK: 2 * len(WORDS[0])}


def test_an_array_that_others_change_is_named_as_it_is_sent(pipeline: MirroredPipeline) -> None:
    data = bytearray(WORDS[0].encode())
    pipeline.record_with_buffer(lambda frame: (".write", (WORDS[0], Buffer(frame, "|u1", (len(data),)))), data)
    data[:] = b"?" * len(data)
    ask(pipeline)  # the executor compares what it was told with what came
    upload(pipeline, WORDS[0])
    assert names(pipeline) == [WRITE_KEPT]
    ask(pipeline)


@pytest.mark.parametrize(("word", "offset"), [("little", 0), (WORDS[0], MOST - LEAST_BYTES + 1), ("x" * (MOST + 1), 0)])
def test_what_is_not_worth_it_is_sent_as_ever(pipeline: MirroredPipeline, word: str, offset: int) -> None:
    upload(pipeline, word, offset)
    upload(pipeline, word, offset)
    assert [op.name for batch in pipeline.journal.held() for op in batch.ops] + names(pipeline) == [".write"] * 2


def test_on_its_own_host_and_of_an_executor_that_keeps_nothing(executor: PlayedExecutor) -> None:
    near = executor.pipeline()
    near.connection.endpoint = "unix-abstract://here"
    old = PlayedExecutor().pipeline()
    for pipeline in (near, old):
        upload(pipeline, WORDS[0])
        upload(pipeline, WORDS[0])
        assert names(pipeline) == [".write"] * 2


def test_over_a_fast_link_nothing_is_hashed(pipeline: MirroredPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    upload(pipeline, WORDS[0])
    monkeypatch.setattr(type(pipeline.link_speed), "is_slow", False)
    upload(pipeline, WORDS[0])
    assert names(pipeline) == [".write", KEEP, ".write"]
    monkeypatch.undo()
    upload(pipeline, WORDS[0])
    assert names(pipeline)[3:] == [WRITE_KEPT]


def test_only_what_was_sent_shows_how_fast_the_link_is(pipeline: MirroredPipeline) -> None:
    noted: list[int] = []
    pipeline.link_speed.note_sent = lambda size, seconds: noted.append(size)  # type: ignore[method-assign]
    for _ in range(2):
        with pipeline.uploading(len(WORDS[0])):
            upload(pipeline, WORDS[0])
    assert noted == [len(WORDS[0])]
    pipeline.connection.endpoint = "unix-abstract://here"
    with pipeline.uploading(len(WORDS[1])):
        upload(pipeline, WORDS[1])
    assert noted == [len(WORDS[0])]


def test_what_is_cancelled_is_not_taken_for_kept(pipeline: MirroredPipeline, executor: PlayedExecutor) -> None:
    executor.pace = 0
    upload(pipeline, WORDS[1])
    upload(pipeline, WORDS[2])
    pipeline.flush()
    executor.hear()
    pipeline.cancel_pending()
    for word in (WORDS[1], WORDS[2], WORDS[4]):
        upload(pipeline, word)
    ops = [op for batch in pipeline.journal.held() for op in batch.ops] + pipeline.open_batch.ops
    assert [op.name for op in ops[-6:]] == [".write", KEEP] * 3
    assert is_beginning(ops[-5])
    executor.pace = 1_000
    ask(pipeline)
    assert executor.contents.bytes <= MOST


def is_beginning(op: Op) -> bool:
    return op.name == KEEP and op.args[2] is None


def test_another_executor_keeps_nothing(pipeline: MirroredPipeline, executor: PlayedExecutor) -> None:
    upload(pipeline, WORDS[0])
    ask(pipeline)
    assert executor.link is not None
    executor.link.cut()
    executor.restart()
    with pytest.raises(SessionLost):
        ask(pipeline)
    upload(pipeline, WORDS[0])
    assert names(pipeline) == [".write", KEEP]
    assert is_beginning(pipeline.open_batch.ops[1])
    ask(pipeline)


def test_the_same_executor_keeps_all_while_the_connection_is_lost(
    pipeline: MirroredPipeline, executor: PlayedExecutor
) -> None:
    upload(pipeline, WORDS[0])
    pipeline.flush()  # and lost on the way, so that it is sent again
    assert executor.link is not None
    executor.link.cut()
    upload(pipeline, WORDS[0])
    assert names(pipeline) == [WRITE_KEPT]
    ask(pipeline)
    assert executor.connections == 2
    assert [word for _, word in executor.done].count(WORDS[0]) == 2


@pytest.mark.parametrize("name", [KEEP, WRITE_KEPT])
def test_after_a_failure_they_are_sent_anew(
    pipeline: MirroredPipeline, executor: PlayedExecutor, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    carry_out = executor._carry_out
    failed = Answer(error=ErrorRecord("gpu_backend.wire.errors.ProtocolError", "it is not there"))
    monkeypatch.setattr(executor, "_carry_out", lambda op, frames: failed if op.name == name else carry_out(op, frames))
    for _ in range(1 if name == KEEP else 2):
        upload(pipeline, WORDS[0])
    with pytest.raises(ProtocolError, match="it is not there"):
        ask(pipeline)
    upload(pipeline, WORDS[0])
    assert names(pipeline) == [".write", KEEP]


def cell(pipeline: MirroredPipeline) -> None:
    for number in (0, 1, 0, 2, 3, 1, 0):
        upload(pipeline, WORDS[number])
    ask(pipeline)


def run_interrupted(moment: int) -> int:
    executor = PlayedExecutor(kept_bytes=MOST)
    pipeline = executor.pipeline()
    cell(pipeline)
    with interrupt_at(moment) as passed, suppress(KeyboardInterrupt):
        cell(pipeline)
    with suppress(OpCancelled):
        ask(pipeline)
    cell(pipeline)
    assert [word for _, word in executor.done if word in WORDS][-7:] == [WORDS[n] for n in (0, 1, 0, 2, 3, 1, 0)]
    assert executor.contents.bytes <= MOST
    return passed[0]


def test_interrupts_at_every_moment() -> None:
    moments = run_interrupted(-1)
    assert moments > 100
    for moment in range(moments):
        run_interrupted(moment)


class KeptMachine(RuleBasedStateMachine):
    """A notebook and an executor that keeps contents. What is written wrongly, or is missing, the executor raises."""

    @initialize()
    def begin(self) -> None:
        self.executor = PlayedExecutor(kept_bytes=MOST)
        self.pipeline = self.executor.pipeline()

    @rule(number=st.integers(0, 5))
    def upload(self, number: int) -> None:
        upload(self.pipeline, WORDS[number])

    @rule()
    def call(self) -> None:
        assert ask(self.pipeline) == "ask"

    @rule(moment=st.integers(0, 60), number=st.integers(0, 5))
    def be_interrupted(self, moment: int, number: int) -> None:
        with suppress(KeyboardInterrupt), interrupt_at(moment):
            upload(self.pipeline, WORDS[number])

    @rule()
    def flush(self) -> None:
        self.pipeline.flush()

    @rule()
    def cancel(self) -> None:
        self.pipeline.cancel_pending()

    @rule()
    def executor_hears(self) -> None:
        self.executor.hear()

    @rule(most=st.integers(1, 4))
    def executor_works(self, most: int) -> None:
        self.executor.work(most)

    @rule()
    def connection_is_cut(self) -> None:
        assert self.executor.link is not None
        self.executor.link.cut()

    @rule()
    def executor_dies(self) -> None:
        assert self.executor.link is not None
        self.executor.link.cut()
        self.executor.restart()
        with suppress(SessionLost):
            ask(self.pipeline)

    @invariant()
    def no_more_is_kept_than_may_be(self) -> None:
        if hasattr(self, "executor"):
            assert self.executor.contents.bytes <= MOST
            assert self.pipeline.contents.bytes <= MOST

    def teardown(self) -> None:
        if hasattr(self, "executor"):
            for word in WORDS:
                upload(self.pipeline, word)
            ask(self.pipeline)


TestKeptMachine = KeptMachine.TestCase
TestKeptMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
