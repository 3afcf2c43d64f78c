"""What is known of the device's work without waiting for it."""

from __future__ import annotations

import pytest

from gpu_backend.wire.codec import encode
from gpu_backend.wire.errors import ProtocolError, RefusalCode
from gpu_backend.wire.messages import Op, Refused, Reply, Want
from gpu_backend.wire.values import Ref
from kernelproxy.session.signs import Transfer
from kernelproxy.stream import progress, work
from kernelproxy.stream.pipeline import Pipeline

from .played import PlayedExecutor

_NOW = 1e-3  # a time for answers that are there


@pytest.fixture
def executor() -> PlayedExecutor:
    return PlayedExecutor()


@pytest.fixture
def pipeline(executor: PlayedExecutor) -> Pipeline:
    return executor.pipeline()


def deaf(executor: PlayedExecutor) -> None:
    """Have the executor be in the middle of an op: it carries nothing out and says nothing."""
    executor.pace = 0
    executor.hear = executor.speak = lambda: None  # type: ignore[method-assign]


def test_a_quiet_pipeline_has_nothing_to_do(pipeline: Pipeline) -> None:
    pipeline.call("cupy.add", (1,), Want.CONTENTS)
    found = progress.heard(pipeline, 30.0)
    assert found == work.Work(is_heard=True)


def test_the_oldest_op_that_may_take_long_is_named_with_its_line(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    executor.pace = 1
    for name in ("cupy.zeros", "cupy.linalg.svd", "cupy.add"):
        pipeline.record(name, (name,))
    pipeline.flush()
    executor.live()
    found = progress.heard(pipeline, 30.0)
    assert found.what.startswith("cupy.linalg.svd")
    assert "test_work.py" in found.place
    assert (found.queued, found.unsent, found.is_heard) == (2, 0, True)


def test_an_executor_that_says_nothing_is_not_waited_for(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    pipeline.record("cupy.linalg.svd", (1,))
    pipeline.record("cupy.linalg.inv", (2,))
    deaf(executor)
    pipeline.flush()
    pipeline.ahead.costs[0]["cupy.add"].learn(0.0)  # else it would be sent at once
    pipeline.record("cupy.add", (3,))
    found = progress.heard(pipeline, _NOW)
    assert found.what == "cupy.linalg.svd, or another of what is queued,"
    assert (found.queued, found.is_heard) == (3, False)
    assert work.sign(pipeline).much == "or one of 2 other operations"
    assert progress.memory(pipeline, _NOW) == []


@pytest.mark.parametrize("want", [Want.DESCRIPTION, Want.NOTHING])
def test_a_read_waits_for_what_the_device_still_computes(
    pipeline: Pipeline, executor: PlayedExecutor, want: Want
) -> None:
    executor.is_quick = False
    if want is Want.NOTHING:
        pipeline.record(".launch", (Ref(5), 0))
        pipeline.flush()
        executor.live()
        pipeline.read(0)
    else:
        pipeline.call(".launch", (Ref(5), 0), want)
    assert pipeline.journal.marks.applied == 1
    deaf(executor)
    seq = pipeline.ask(".same", (Ref(6),), Want.CONTENTS)
    assert "kernel" in work.sign(pipeline, Transfer("Download", 9, 0.0)).what
    assert "kernel" in work.under_way(pipeline).what
    pipeline.inbox.note(Reply(seq, None, None, seq), [])
    assert work.under_way(pipeline).what == ""


def test_what_was_heard_before_they_were_sent_tells_nothing_of_them(
    pipeline: Pipeline, executor: PlayedExecutor
) -> None:
    pipeline.call("cupy.add", (1,), Want.CONTENTS)
    pipeline.ping()
    executor.live()
    pipeline.read(0)
    assert pipeline.inbox.heard_at, "it has said that it has nothing to do"
    for name in ("cupy.zeros", "cupy.linalg.svd"):
        pipeline.record(name, (name,))
    deaf(executor)
    pipeline.flush()
    assert work.sign(pipeline).what == "cupy.linalg.svd"


def test_what_takes_longest_is_taken_for_what_runs(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    for name in ("cupy.zeros", "cupy.add", "cupy.linalg.svd", "cupy.linalg.inv", ".same"):
        pipeline.record(name, (name,))
    deaf(executor)
    pipeline.flush()
    assert work.sign(pipeline)[:2] == ("cupy.linalg.svd", "or one of 4 other operations")


@pytest.mark.parametrize("asked", [".synchronize", ".memory", ".ways"])
def test_who_asks_about_the_device_is_not_taken_for_its_work(
    pipeline: Pipeline, executor: PlayedExecutor, asked: str
) -> None:
    pipeline.record("cupy.linalg.svd", (1,))
    pipeline.record(asked, ())
    deaf(executor)
    pipeline.flush()
    assert work.sign(pipeline)[:2] == ("cupy.linalg.svd", "1 operation behind it")


def test_of_two_it_is_one_or_the_other(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    pipeline.record("cupy.linalg.svd", (1,))
    pipeline.record("cupy.linalg.inv", (2,))
    deaf(executor)
    pipeline.flush()
    assert work.sign(pipeline)[:2] == ("cupy.linalg.svd", "or the other operation")


def test_what_reads_is_not_taken_for_what_it_reads(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    pipeline.record("cupy.linalg.svd", (1,))
    pipeline.record(".same", (2,))
    deaf(executor)
    pipeline.flush()
    assert work.sign(pipeline)[:2] == ("cupy.linalg.svd", "1 operation behind it")


def test_a_lost_connection_is_not_sought(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    assert executor.link is not None
    executor.link.cut()
    assert not progress.heard(pipeline, 30.0).is_heard
    assert progress.memory(pipeline, 30.0) == []
    assert executor.connections == 1


def test_a_refusal_is_left_to_whoever_acts_on_it(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    assert executor.link is not None
    executor.link.arrived.append([bytes(one) for one in encode(Refused(RefusalCode.ENDED, "It was stopped."))])
    assert not progress.heard(pipeline, 30.0).is_heard
    assert executor.connections == 1
    assert pipeline.call("op", ("on",), Want.CONTENTS).value == "on"
    assert executor.connections == 2, "it was heard, and acted on, by the next call"


def test_what_has_failed_is_kept_for_the_users_own_call(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    pipeline.record("fail", ("early",))
    assert progress.heard(pipeline, 30.0).is_heard
    pipeline.flush()
    executor.live()
    assert progress.heard(pipeline, 30.0).is_heard
    with pytest.raises(ProtocolError, match="no tuple"):  # what the played one answers: it was heard, and no failure
        progress.memory(pipeline, 30.0)
    with pytest.raises(ValueError, match="early failed"):
        pipeline.call("op", (1,), Want.CONTENTS)


def test_a_device_that_computes_on_is_not_idle(pipeline: Pipeline, executor: PlayedExecutor) -> None:
    pipeline.record("cupy.linalg.svd", (1,))
    pipeline.flush()
    executor.hear()
    executor.work(1)
    executor.talk.note_done(0, 0.0)  # launched, and not done
    executor.speak()
    executor.work = lambda most: None  # type: ignore[method-assign]
    found = progress.heard(pipeline, 30.0)
    assert (found.what, found.queued) == ("cupy.linalg.svd", 0)
    executor.talk.note_done(1, 30.0)
    assert progress.heard(pipeline, 30.0).what == ""


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (Op("cupy.linalg.svd", 1, ()), "cupy.linalg.svd"),
        (Op(".method", 1, (Ref(1), "sort")), "The method sort"),
        (Op(".same", 1, (Ref(1),)), "Download"),
        (Op(".begin", 1, ("cupy.apply_along_axis",)), "cupy.apply_along_axis"),
        (Op(".call", 1, (Ref(1),), None, Want.DESCRIPTION), "Compiling and running a kernel"),
        (Op(".compile", 1, (Ref(1), False), None, Want.CONTENTS), "Compiling a kernel"),
        (Op(".unheard_of", 1, ()), ".unheard_of"),
    ],
)
def test_ops_in_words(op: Op, words: str) -> None:
    assert work.in_words(op, {}) == words


def test_kernels_go_by_their_name_while_they_live(executor: PlayedExecutor) -> None:
    class Kernel:
        _handle = 77

    kernel = Kernel()
    recorder = executor.pipeline()
    work.note_kernel(recorder, kernel, "saxpy")
    op = Op(".launch", 1, (Ref(77),), None, Want.DESCRIPTION)
    assert work.in_words(op, recorder.kernels) == "Compiling and running saxpy"
    del kernel
    assert work.in_words(op, recorder.kernels) == "Compiling and running a kernel"
