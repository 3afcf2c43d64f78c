"""The first interrupt lets what was asked for be done; the second drops it, and says what is missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream.layout import contiguous
from gpu_backend.wire.errors import OpCancelled
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Ref, Tuple, View
from kernelproxy.calls import array_core
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.interruption import after_interrupt, tell_interrupted
from kernelproxy.client import Client
from kernelproxy.stream.pipeline import Pipeline

from .played import PlayedExecutor

LAYOUT = contiguous((3,), np.dtype("f8"))


@pytest.fixture
def executor() -> PlayedExecutor:
    return PlayedExecutor()


@pytest.fixture
def pipeline(executor: PlayedExecutor) -> Pipeline:
    return executor.pipeline()


def client_of(pipeline: Pipeline) -> Client:
    session: Any = SimpleNamespace(pipeline=pipeline)
    client = Client()
    client.adopt(session)
    return client


def array(pipeline: Pipeline, name: str = "op", args: tuple[Any, ...] = ("made",)) -> Any:
    return array_core.fresh(client_of(pipeline), LAYOUT, pipeline.record(name, args))


def some_are_done(executor: PlayedExecutor, pipeline: Pipeline, count: int) -> None:
    executor.pace = 0
    pipeline.flush()
    executor.hear()
    executor.work(count)


def test_nothing_is_told_where_nothing_is_under_way(executor: PlayedExecutor, pipeline: Pipeline) -> None:
    u = array(pipeline)
    pipeline.call("op", ("wait",), Want.CONTENTS)
    assert after_interrupt(pipeline, {"u": u}) == ""


def test_the_first_interrupt_drops_nothing(executor: PlayedExecutor, pipeline: Pipeline) -> None:
    u = array(pipeline)
    told = after_interrupt(pipeline, {"u": u})
    assert "still done" in told
    assert "interrupt again to drop it" in told
    pipeline.call("op", ("wait",), Want.CONTENTS)
    assert [word for _, word in executor.done] == ["made", "wait"]


@pytest.mark.parametrize("hears_interrupts", [True, False])
def test_only_what_a_cell_may_have_asked_for_is_settled(
    executor: PlayedExecutor, pipeline: Pipeline, capsys: pytest.CaptureFixture[str], hears_interrupts: bool
) -> None:
    u = array(pipeline)
    u._client.hears_interrupts = hears_interrupts
    some_are_done(executor, pipeline, 0)
    tell_interrupted({"u": u})
    assert pipeline.is_draining == hears_interrupts
    assert ("Interrupted." in capsys.readouterr().err) == hears_interrupts


def test_an_interrupt_when_all_of_the_last_is_done_is_a_first_one(executor: PlayedExecutor, pipeline: Pipeline) -> None:
    for _ in range(3):
        u = array(pipeline)
        assert "still done" in after_interrupt(pipeline, {"u": u})
        executor.live()
    pipeline.call("op", ("wait",), Want.CONTENTS)
    assert [word for _, word in executor.done] == ["made", "made", "made", "wait"]


def test_the_second_drops_what_has_not_begun_and_names_it(executor: PlayedExecutor, pipeline: Pipeline) -> None:
    old, window, other = array(pipeline), array(pipeline), array(pipeline)
    pipeline.call("op", ("wait",), Want.CONTENTS)
    done = array(pipeline)
    lost = array(pipeline)
    pipeline.record("cupy.add", (old._ref, other._ref, old._ref), 0)
    pipeline.record(".store", (View(window._ref.handle, 0, (2,), (8,), "<f8", ""), 1.0), 0)
    names = {
        "done": done, "lost": lost, "old": old, "other": other, "several": [1, {"a": (lost,)}], "_hidden": lost,
        "part": window, "number": 3,
    }  # fmt: skip
    assert "still done" in after_interrupt(pipeline, names)
    some_are_done(executor, pipeline, 1)
    executor.pace = 1_000
    told = after_interrupt(pipeline, names)
    assert "3 operations that had not begun are dropped" in told
    assert "Never computed: lost, several." in told
    assert "Not brought up to date: old, part." in told
    assert [word for _, word in executor.done[-3:]] == [None] * 3


def test_what_a_users_kernel_might_have_changed_is_named(executor: PlayedExecutor, pipeline: Pipeline) -> None:
    x, y = array(pipeline), array(pipeline)
    pipeline.call("op", ("wait",), Want.CONTENTS)
    pipeline.record(".call", (Ref(10**9), Tuple((1,)), Tuple((x._ref,))), 0)
    names = {"x": x, "y": y}
    after_interrupt(pipeline, names)
    some_are_done(executor, pipeline, 0)
    executor.pace = 1_000
    told = after_interrupt(pipeline, names)
    assert "1 operation that had not begun is dropped. Not brought up to date: x. Run" in told


def test_where_the_executor_says_nothing_what_may_be_lost_is_named(
    executor: PlayedExecutor, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelproxy.calls.interruption._HEAR_SECONDS", 0.0)
    u = array(pipeline)
    after_interrupt(pipeline, {"u": u})
    monkeypatch.setattr(executor, "live", lambda: None)
    told = after_interrupt(pipeline, {"u": u})
    assert "The GPU is busy: some of it may be done after all. Never computed: u." in told


def test_an_interrupt_while_it_is_told_is_the_second(executor: PlayedExecutor, pipeline: Pipeline) -> None:
    u = array(pipeline)
    drain = pipeline.drain

    def interrupted() -> None:
        drain()
        raise KeyboardInterrupt

    pipeline.drain = interrupted  # type: ignore[method-assign]
    assert "Never computed: u" in after_interrupt(pipeline, {"u": u})


def test_a_loss_that_is_found_then_is_told_later(executor: PlayedExecutor, pipeline: Pipeline) -> None:
    u = array(pipeline)
    assert executor.link is not None
    after_interrupt(pipeline, {"u": u})
    executor.link.cut()
    executor.restart()
    after_interrupt(pipeline, {"u": u})
    with pytest.raises(Exception, match="fresh executor"):
        pipeline.call("op", ("wait",), Want.CONTENTS)


def test_the_line_that_asked_for_what_is_missing_is_blamed(executor: PlayedExecutor, pipeline: Pipeline) -> None:
    u = array(pipeline)  # the line to blame
    pipeline.cancel_pending()
    pipeline.call("op", ("wait",), Want.CONTENTS)
    from gpu_backend.executor.program.failures import CANCELLED
    from gpu_backend.wire.errors import ErrorRecord
    from gpu_backend.wire.messages import Failed

    seq = pipeline.ask("op", ("shown",), Want.CONTENTS)
    lost = ErrorRecord(CANCELLED.kind, CANCELLED.message, caused_by=1)
    pipeline.inbox.note(Failed(seq, lost), [])
    with pytest.raises(OpCancelled) as caught:
        pipeline.answer(seq)
    (note,) = caught.value.__notes__
    assert "core.fresh(client_of" in note or "the line to blame" in note
    assert isinstance(u, ArrayCore)
