"""The op pipeline against a played executor: order, credit, answers, failures, lost connections."""

from __future__ import annotations

import threading

import pytest

from gpu_backend.wire import messages as wire
from gpu_backend.wire.errors import PoolUnreachable, SessionLost
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Buffer
from kernelproxy.stream.batch_size import BATCH_OPS, FAR_BATCH_OPS, FAR_OPS, FIRST_OPS, batch_ops
from kernelproxy.stream.pipeline import Pipeline

from .played import PlayedConnection, PlayedExecutor

pytestmark = pytest.mark.usefixtures("both_ways")


@pytest.fixture
def executor() -> PlayedExecutor:
    return PlayedExecutor()


@pytest.fixture
def pipeline(executor: PlayedExecutor) -> Pipeline:
    return executor.pipeline()


def write(pipeline: Pipeline, word: str) -> None:
    data = word.encode()
    pipeline.record_with_buffer(lambda frame: (".write", (word, Buffer(frame, "|u1", (len(data),)))), data)


def ask(pipeline: Pipeline, word: str = "ask") -> object:
    return pipeline.call("op", (word,), Want.CONTENTS).value


def test_nothing_is_sent_before_a_batch_is_full(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    for number in range(FIRST_OPS - 1):
        pipeline.record("op", (number,))
    executor.live()
    assert executor.done == []
    pipeline.record("op", (FIRST_OPS - 1,))
    executor.live()
    assert executor.done == [(number + 1, number) for number in range(FIRST_OPS)]


def test_messages_grow_with_what_is_under_way() -> None:
    executor = PlayedExecutor(credit_ops=4 * FAR_OPS)
    executor.pace = 0
    pipeline = executor.pipeline()
    for number in range(FIRST_OPS + FAR_OPS + 2 * FAR_BATCH_OPS):
        pipeline.record("op", (number,))
    sizes = [len(batch.ops) for batch in pipeline.journal.held()]
    assert sizes[0] == FIRST_OPS
    assert set(sizes[1:-2]) == {BATCH_OPS}
    assert sizes[-1] == FAR_BATCH_OPS
    assert [batch_ops(under_way) for under_way in (0, 1, FAR_OPS)] == [FIRST_OPS, BATCH_OPS, FAR_BATCH_OPS]


def test_an_answer_comes_after_all_that_was_recorded_before(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    for number in range(10):
        pipeline.record("op", (number,))
    assert ask(pipeline, "last") == "last"
    assert [word for _, word in executor.done] == [*range(10), "last"]


def test_results_get_handles_in_order_and_calls_many(pipeline: Pipeline) -> None:
    assert [pipeline.record("op", ()), pipeline.record("op", (), 3), pipeline.record("op", ())] == [1, 2, 5]
    ask(pipeline)
    assert pipeline.record("op", ()) > 1_000_000


def test_buffers_stay_with_their_ops(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    for word in ("first", "second", "third"):
        write(pipeline, word)
    pipeline.call("op", ("with", Buffer(0, "|u1", (1,))), Want.NOTHING | Want.CONTENTS, None, [b"x"])
    write(pipeline, "last")
    ask(pipeline)
    assert [word for _, word in executor.done] == ["first", "second", "third", "with", "last", "ask"]


def test_never_more_ops_are_under_way_than_credited() -> None:
    executor = PlayedExecutor(credit_ops=BATCH_OPS * 2)
    pipeline = executor.pipeline()
    for number in range(BATCH_OPS * 10):
        pipeline.record("op", (number,))
        assert pipeline.credit.ops_in_flight <= BATCH_OPS * 2
    ask(pipeline)
    assert len(executor.done) == BATCH_OPS * 10 + 1


def test_never_more_bytes_are_under_way_than_credited_but_one_large_message_passes() -> None:
    executor = PlayedExecutor(credit_bytes=100)
    pipeline = executor.pipeline()
    for size in (60, 60, 500, 60, 60):
        write(pipeline, "x" * size)
        pipeline.flush()
        assert pipeline.credit.bytes_in_flight <= max(100, size)
    ask(pipeline)
    assert [len(str(word)) for _, word in executor.done] == [60, 60, 500, 60, 60, 3]


def test_the_journal_empties_when_ops_are_confirmed(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    for number in range(BATCH_OPS * 3):
        pipeline.record("op", (number,))
    assert pipeline.journal.held()[0].first == 1
    ask(pipeline)
    assert pipeline.journal.held() == []


def test_dropped_handles_travel_once_with_the_next_op(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    pipeline.dropped.extend([(7, None), (8, None)])
    pipeline.record("op", (1,))
    pipeline.dropped.append((9, None))
    ask(pipeline)
    assert executor.dropped == [7, 8, 9]
    assert not pipeline.dropped


# --- cancelling -------------------------------------------------------------------------------------------------------


def test_cancelled_ops_do_not_run_and_later_ones_do(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    for number in range(BATCH_OPS * 2 + 5):
        pipeline.record("op", (number,))
    executor.hear()
    executor.work(3)
    pipeline.cancel_pending()
    pipeline.record("op", ("later",))
    assert ask(pipeline) == "ask"
    words = [word for _, word in executor.done]
    assert words == [0, 1, 2, *[None] * (BATCH_OPS * 2 + 2), "later", "ask"]


def test_a_cancel_that_is_lost_with_its_connection_is_said_again(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    executor.pace = 1
    for number in range(BATCH_OPS):
        pipeline.record("op", (number,))
    executor.hear()
    pipeline.cancel_pending()
    assert executor.link is not None
    executor.link.cut()
    ask(pipeline)
    words = [word for _, word in executor.done]
    assert words == [0, *[None] * (BATCH_OPS - 1), "ask"]  # one ran before the new connection was greeted


# --- lost connections -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrived", [True, False])
def test_after_a_cut_no_op_is_lost_or_repeated(pipeline: Pipeline, executor: PlayedExecutor, arrived: bool) -> None:
    for number in range(BATCH_OPS * 2):
        pipeline.record("op", (number,))
    if arrived:
        executor.hear()
        executor.work(BATCH_OPS + 3)
    assert executor.link is not None
    executor.link.cut()
    assert ask(pipeline) == "ask"
    assert [word for _, word in executor.done] == [*range(BATCH_OPS * 2), "ask"]
    assert executor.connections == 2


def test_what_the_executor_has_taken_is_not_sent_again(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    write(pipeline, "x" * 100_000)
    pipeline.flush()
    executor.hear()
    assert executor.link is not None
    executor.link.cut()
    ask(pipeline)
    assert pipeline.connection.bytes_sent < 100_000


def test_an_answer_lost_on_the_way_comes_again(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    speak = executor.speak

    def lose_answers() -> None:
        executor.speak = speak  # type: ignore[method-assign]
        assert executor.link is not None
        executor.link.cut()

    executor.speak = lose_answers  # type: ignore[method-assign]
    assert ask(pipeline, "x") == "x"
    assert executor.done == [(1, "x")]


def test_a_lost_executor_is_told_once_and_its_successor_serves(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    for number in range(BATCH_OPS * 2 + 5):  # some sent, some not: the successor hears of none
        pipeline.record("op", (number,))
    assert executor.link is not None
    executor.link.cut()
    executor.restart()
    with pytest.raises(SessionLost, match=r"ended unexpectedly.*fresh executor \(epoch 2\)"):
        ask(pipeline)
    pipeline.record("op", ("new",))
    assert ask(pipeline) == "ask"
    assert [word for _, word in executor.done] == ["new", "ask"]


def test_an_executor_that_says_goodbye_is_quoted(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    executor.talk.end("The operator took the node away.")
    executor.speak()
    executor.epoch += 1
    executor.talk = type(executor.talk)(wire.Welcome(0, 2, 1_000, 1_000, 0, {}), "s")
    with pytest.raises(SessionLost, match=r"operator took the node away\. The arrays made so far"):
        ask(pipeline)


def test_a_session_gone_for_good_says_so_every_time(executor: PlayedExecutor) -> None:
    def gone(pipeline: Pipeline) -> PlayedConnection:
        pipeline.connection.close()
        raise SessionLost("The pool no longer has this session.")

    pipeline = Pipeline(executor.connect(), gone)  # type: ignore[arg-type]
    assert executor.link is not None
    executor.link.cut()
    for _ in range(3):
        with pytest.raises(SessionLost, match="no longer has this session"):
            ask(pipeline)


def test_while_the_pool_is_away_each_use_says_so_and_then_all_goes_on(executor: PlayedExecutor) -> None:
    is_away = True

    def renew(pipeline: Pipeline) -> PlayedConnection:
        pipeline.connection.close()
        if is_away:
            raise PoolUnreachable("The network is down.")
        return executor.connect(pipeline.first, pipeline.inbox.received)

    pipeline = Pipeline(executor.connect(), renew)
    pipeline.record("op", ("kept",))
    assert executor.link is not None
    executor.link.cut()
    for _ in range(2):
        with pytest.raises(PoolUnreachable, match="network is down"):
            ask(pipeline, "given up")
    is_away = False
    assert ask(pipeline) == "ask"
    assert [word for _, word in executor.done] == ["kept", "given up", "given up", "ask"]


def test_a_closed_pipeline_says_so(pipeline: Pipeline) -> None:
    assert pipeline.close(wire.Bye(), 1.0)
    assert pipeline.close(None, 1.0)  # again is harmless
    with pytest.raises(SessionLost, match="was closed"):
        ask(pipeline)


# --- several threads --------------------------------------------------------------------------------------------------


def test_threads_get_their_own_answers(executor: PlayedExecutor) -> None:
    pipeline = PlayedExecutor(credit_ops=BATCH_OPS * 2).pipeline()
    wrong: list[object] = []

    def work(name: int) -> None:
        for number in range(60):
            for _ in range(name):
                pipeline.record("op", (0,))
            write(pipeline, f"{name} {number}")  # batches with buffers are sealed on the way
            if ask(pipeline, f"{name} {number}") != f"{name} {number}":
                wrong.append((name, number))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
        assert not thread.is_alive()
    assert not wrong


def test_an_interrupted_thread_cancels_while_another_waits_for_credit() -> None:
    executor = PlayedExecutor(credit_ops=BATCH_OPS)
    pipeline = executor.pipeline()
    may_work = threading.Event()
    live = executor.live

    def live_later() -> None:
        executor.hear()
        if may_work.wait(0.001):
            live()

    executor.live = live_later  # type: ignore[method-assign]
    waiter = threading.Thread(target=lambda: [pipeline.record("op", (n,)) for n in range(BATCH_OPS * 3)])
    waiter.start()
    while not pipeline.is_behind:
        assert waiter.is_alive()
    pipeline.cancel_pending()
    may_work.set()
    waiter.join(90)
    ask(pipeline)
    assert executor.done[0] == (1, None)


def test_a_batch_larger_than_all_credit_is_sent_in_parts() -> None:
    """An executor may grant less than a batch, and an interrupted flush leaves a batch that grows on."""
    executor = PlayedExecutor(credit_ops=7)
    pipeline = executor.pipeline()
    for number in range(3 * FIRST_OPS):
        pipeline.record("op", (number,))
    assert ask(pipeline) == "ask"
    assert [word for _, word in executor.done] == [*range(3 * FIRST_OPS), "ask"]
