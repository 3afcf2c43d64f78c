"""Failures against a played executor: each is told once, where it belongs, and to nobody else."""

from __future__ import annotations

import pytest

from gpu_backend.wire import messages as wire
from gpu_backend.wire.codec import encode
from gpu_backend.wire.errors import ProtocolError, RefusalCode, SessionLost
from gpu_backend.wire.messages import Want
from kernelproxy.stream.pipeline import Pipeline
from kernelproxy.stream.sender import Sender

from .played import PlayedExecutor

pytestmark = pytest.mark.usefixtures("both_ways")


@pytest.fixture
def executor() -> PlayedExecutor:
    return PlayedExecutor()


@pytest.fixture
def pipeline(executor: PlayedExecutor) -> Pipeline:
    return executor.pipeline()


def ask(pipeline: Pipeline, word: str = "ask") -> object:
    return pipeline.call("op", (word,), Want.CONTENTS).value


def test_a_failure_that_nobody_waits_for_is_told_once_at_the_next_answer(pipeline: Pipeline) -> None:
    pipeline.record("fail", ("it",))  # this very line
    with pytest.raises(ValueError, match="it failed") as caught:
        ask(pipeline)
    assert "test_pipeline_failures.py, line" in caught.value.__notes__[0]
    assert "this very line" in caught.value.__notes__[0]
    assert ask(pipeline) == "ask"


def test_an_awaited_failure_is_raised_at_its_own_line_without_a_note(pipeline: Pipeline) -> None:
    with pytest.raises(ValueError, match="it failed") as caught:
        pipeline.call("fail", ("it",), Want.CONTENTS)
    assert not getattr(caught.value, "__notes__", [])


def test_of_several_failures_the_earliest_is_told(pipeline: Pipeline) -> None:
    for word in ("first", "second"):
        pipeline.record("fail", (word,))
    with pytest.raises(ValueError, match="first failed"):
        pipeline.call("fail", ("third",), Want.CONTENTS)
    assert ask(pipeline) == "ask"


def test_what_cannot_be_put_into_bytes_fails_alone(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    pipeline.record("op", ("before",))
    pipeline.record("op", ("\ud800",))  # no UTF-8
    pipeline.record("op", ("after",))
    with pytest.raises(ValueError, match="arguments of op cannot be sent"):
        ask(pipeline)
    words = [word for _, word in executor.done]
    assert (words[0], words[2:]) == ("before", ["after", "ask"])


def test_what_is_too_large_for_a_message_fails_alone(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    pipeline.record("op", ("before",))
    with pytest.raises(ValueError, match="at most 8388608 can travel"):
        pipeline.call("op", ("x" * (9 << 20),), Want.CONTENTS)
    assert ask(pipeline) == "ask"
    assert executor.done[0] == (1, "before")


def test_a_message_too_large_as_a_whole_is_parted(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    words = [letter * (3 << 20) for letter in "abcd"]
    for word in words:
        pipeline.record("op", (word,))
    ask(pipeline)
    assert [word for _, word in executor.done] == [*words, "ask"]


def test_a_refused_message_is_told_to_everybody_who_waits(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    def refuse() -> None:
        assert executor.link is not None
        executor.talk.outbox.put(executor.link.peer, encode(wire.Refused(RefusalCode.OVERSIZED, "too much")))
        executor.speak()

    executor.hear = refuse  # type: ignore[method-assign]
    with pytest.raises(ProtocolError, match="too much"):
        ask(pipeline)


def test_pieces_of_one_answer_fail_together_and_once(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    """As those of a large array that is lost: who has caught the first failure hears of no other."""
    asked = [pipeline.ask("fail", (f"piece {number}",), Want.CONTENTS) for number in range(4)]
    with pytest.raises(ValueError, match="piece 0 failed"):
        pipeline.answer(asked[0])
    for number in asked[1:]:
        pipeline.inbox.forget(number)
    for _ in range(3):
        assert ask(pipeline) == "ask"


def test_the_answer_of_an_op_that_was_never_noted_is_no_others(pipeline: Pipeline) -> None:
    pipeline.inbox.expect(pipeline.open_batch.last + 1)  # and then an interrupt strikes
    pipeline.inbox.forget(pipeline.open_batch.last + 1)
    pipeline.record("fail", ("recorded",))
    with pytest.raises(ValueError, match="recorded failed"):
        ask(pipeline)


def test_a_loss_that_the_sender_finds_is_told_once(executor: PlayedExecutor) -> None:
    pipeline = executor.pipeline()
    sender = Sender(pipeline, 60.0, lambda: None)
    asked = pipeline.ask("op", ("a",), Want.CONTENTS)
    assert executor.link is not None
    executor.link.cut()
    executor.restart()
    sender._quietly(lambda: pipeline._recover())  # which answers who waits, too
    with pytest.raises(SessionLost, match="fresh executor"):
        pipeline.answer(asked)
    assert ask(pipeline) == "ask"


def test_a_loss_that_who_waited_has_heard_is_not_told_again(pipeline: Pipeline) -> None:
    """However late the sender, which met it too, comes to tell it."""
    asked = pipeline.ask("op", ("a",), Want.CONTENTS)
    loss = SessionLost("It is gone.")
    pipeline.inbox.fail_all(loss)
    with pytest.raises(SessionLost):
        pipeline.answer(asked)
    pipeline.inbox.tell_later(loss)
    assert ask(pipeline) == "ask"


def test_a_loss_that_nobody_waits_for_is_told_to_the_next(executor: PlayedExecutor) -> None:
    pipeline = executor.pipeline()
    assert executor.link is not None
    executor.link.cut()
    executor.restart()
    Sender(pipeline, 60.0, lambda: None)._quietly(lambda: pipeline._recover())
    with pytest.raises(SessionLost, match="fresh executor"):
        ask(pipeline)
    assert ask(pipeline) == "ask"


def test_failures_are_lost_with_their_executor(executor: PlayedExecutor) -> None:
    pipeline = executor.pipeline()
    pipeline.record("fail", ("it",))
    pipeline.flush()
    executor.live()
    pipeline.ping()
    assert executor.link is not None
    executor.link.cut()
    executor.restart()
    with pytest.raises(SessionLost):
        ask(pipeline)
    assert ask(pipeline) == "ask"


def test_an_interrupt_behind_a_failure_is_heard(executor: PlayedExecutor, pipeline: Pipeline) -> None:
    def fail(timeout_seconds: float) -> None:
        raise ProtocolError("it speaks in tongues")

    def strike(seq: int) -> None:
        raise KeyboardInterrupt

    assert executor.link is not None
    executor.link.receive = fail  # type: ignore[method-assign, assignment]
    with pytest.raises(ProtocolError, match="tongues"):
        ask(pipeline)
    pipeline.inbox.forget = strike  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        ask(pipeline)
