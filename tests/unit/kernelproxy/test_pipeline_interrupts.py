"""Ctrl-C at every moment: afterwards each op is carried out once or not at all, in order, and nothing is stuck."""

from __future__ import annotations

from contextlib import suppress

import pytest

from gpu_backend.wire.errors import ProtocolError, RefusalCode
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Buffer
from kernelproxy.stream import batch_size
from kernelproxy.stream.pipeline import Pipeline

from .played import PlayedExecutor, interrupt_at

pytestmark = pytest.mark.usefixtures("both_ways")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "FIRST_OPS", 3)
    monkeypatch.setattr(batch_size, "BATCH_OPS", 3)


def write(pipeline: Pipeline, word: str) -> None:
    data = word.encode()
    pipeline.record_with_buffer(lambda frame: (".write", (word, Buffer(frame, "|u1", (len(data),)))), data)


def drop(pipeline: Pipeline, handle: int) -> None:
    pipeline.dropped.append((handle, None))


def cell(pipeline: Pipeline, dropped: list[int]) -> None:
    """Do a little of everything; note in ``dropped`` what is dropped."""
    for number in range(4):
        pipeline.record("op", (f"a{number}",))
        dropped.append(100 + number)
        drop(pipeline, 100 + number)
    write(pipeline, "w1")
    assert pipeline.call("op", ("b",), Want.CONTENTS).value == "b"
    write(pipeline, "w2")
    pipeline.record("op", ("c",))
    assert pipeline.call(".write", ("d", Buffer(0, "|u1", (1,))), Want.CONTENTS, None, [b"d"]).value == "d"


ORDER = ["a0", "a1", "a2", "a3", "w1", "b", "w2", "c", "d"]


def test_the_cell_alone() -> None:
    executor = PlayedExecutor()
    cell(executor.pipeline(), [])
    assert [word for _, word in executor.done] == ORDER


def run_interrupted(moment: int) -> int:
    """Run the cell with an interrupt at ``moment``, then another; return how many moments passed."""
    executor = PlayedExecutor(credit_ops=6)
    executor.pace = 2
    pipeline = executor.pipeline()
    dropped: list[int] = []
    with interrupt_at(moment) as passed:
        try:
            cell(pipeline, dropped)
        except KeyboardInterrupt:
            assert passed[0] == moment + 1
    then_goes_on(executor, pipeline)
    assert {*executor.dropped} == {*dropped}
    return passed[0]


def test_interrupts_at_every_moment() -> None:
    moments = run_interrupted(-1)
    assert moments > 200
    for moment in range(moments):
        run_interrupted(moment)


def then_goes_on(executor: PlayedExecutor, pipeline: Pipeline) -> None:
    assert pipeline.call(".write", ("f", Buffer(0, "|u1", (1,))), Want.CONTENTS, None, [b"f"]).value == "f"
    write(pipeline, "w3")
    pipeline.record("fail", ("later",))
    with pytest.raises(ValueError, match="later failed"):  # and nobody takes it for an answer to what was given up
        pipeline.call("op", ("e",), Want.CONTENTS)
    assert [seq for seq, _ in executor.done] == list(range(1, len(executor.done) + 1))
    words = [word for _, word in executor.done if word is not None]
    assert words[-4:] == ["f", "w3", "later", "e"]
    assert words[:-4] == [word for word in ORDER if word in words]
    # An answer that nobody will take is kept only if the interrupt struck where it is thrown away.
    assert sum(seq in pipeline.inbox.answers for seq, _ in executor.done) <= 1
    assert pipeline.journal.held() == []


def test_an_interrupt_in_a_pause_of_the_connection_leaves_it_as_it_is() -> None:
    executor = PlayedExecutor()
    pipeline = executor.pipeline()
    live = executor.live

    def interrupted() -> None:
        executor.live = live  # type: ignore[method-assign]
        raise KeyboardInterrupt

    executor.live = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        pipeline.call("op", ("a",), Want.CONTENTS)
    assert pipeline.call("op", ("b",), Want.CONTENTS).value == "b"
    assert executor.done == [(1, "a"), (2, "b")]  # it was asked for, and nobody has dropped it
    assert executor.connections == 1


def test_bytes_never_travel_uncounted() -> None:
    """The executor counts them, and cuts off who sends more than it gave credit for."""
    moment, passed = 0, [1]
    while passed[0] >= moment:  # the last round goes by without its interrupt
        executor = PlayedExecutor(credit_bytes=10)
        pipeline = executor.pipeline()
        with interrupt_at(moment) as passed, suppress(KeyboardInterrupt):
            write(pipeline, "abcdefgh")
        batch = pipeline.open_batch
        assert batch.bytes >= sum(map(len, batch.frames))
        write(pipeline, "ijklmnop")
        assert pipeline.call("op", ("a",), Want.CONTENTS).value == "a"
        moment += 1


def test_a_refusal_is_not_lost_by_an_interrupt() -> None:
    """Else nobody would know that the executor does not listen any more, and wait for it for ever."""
    moment, passed = 0, [1]
    while passed[0] >= moment:  # the last round goes by without its interrupt
        executor = PlayedExecutor()
        pipeline = executor.pipeline()
        assert executor.link is not None
        executor.talk._peer = None  # as it does after a refusal
        executor.talk._refuse(executor.link.peer, RefusalCode.OVER_CREDIT, "too much")
        executor.talk.outbox.send(executor._arrive)
        with interrupt_at(moment) as passed, suppress(KeyboardInterrupt, ProtocolError):
            pipeline.ping()
        for _ in range(2):  # where the interrupt struck before the refusal was read, it is heard now
            with suppress(ProtocolError):
                pipeline.record("op", ("a",))
                answer = pipeline.call("op", ("b",), Want.CONTENTS)
        assert answer.value == "b"
        moment += 1


def test_what_is_carried_out_is_under_way_for_nobody_wherever_an_interrupt_strikes() -> None:
    """Else what was carried out would take up credit for ever, and who records would wait for ever."""
    moments = 0
    while True:
        executor = PlayedExecutor(credit_ops=70)
        pipeline = executor.pipeline()
        for number in range(20):
            pipeline.record("op", (number,))
        pipeline.flush()
        executor.hear()
        executor.work(20)
        executor.speak()
        try:
            with interrupt_at(moments) as passed:
                pipeline.read(0)
        except KeyboardInterrupt:
            pipeline.ping()  # on a new connection, if it was in the middle of a message
            executor.speak()
            pipeline.read(0)
        assert (pipeline.credit.ops_in_flight, pipeline.ahead.seconds) == (0, 0.0), moments
        assert pipeline.journal.marks.durable == 20, moments
        if passed[0] <= moments:
            break
        moments += 1
    assert moments > 20
