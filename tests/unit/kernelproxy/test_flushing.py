"""What is recorded is sent while nobody waits for it: the compiled core does as Python does, and without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpu_backend.transport.lost import ConnectionLost
from kernelproxy import compiled
from kernelproxy.session.connection import Connection
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.pipeline import Pipeline

from .played import interrupt_at
from .test_trips_in_c import CONTENTS, RingedExecutor, asked_and_put_back, needs_core, outcome

Do = Callable[[RingedExecutor, MirroredPipeline], Any]


def recorded(pipeline: MirroredPipeline, *words: object) -> None:
    for word in words:
        pipeline.record("op", (word,))  # type: ignore[arg-type]


@needs_core
def test_python_is_not_asked_to_send(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = RingedExecutor()
    pipeline = executor.pipeline()
    pipeline.call("op", ("known",), CONTENTS)
    recorded(pipeline, 0)
    pipeline.call("op", ("and timed",), CONTENTS)
    before, asked = pipeline.counters.batches, Pipeline._read_all
    for of, name in ((Pipeline, "_send_sealed"), (Pipeline, "_send_recorded"), (Connection, "send")):
        monkeypatch.setattr(of, name, None)
    monkeypatch.setattr(
        Pipeline, "_read_all", lambda self: asked(self) if executor.link.arrived else pytest.fail("quiet")
    )
    recorded(pipeline, *range(200))
    assert pipeline.counters.batches > before
    recorded(pipeline, "last")
    pipeline.flush()
    assert not pipeline.open_batch.ops
    monkeypatch.undo()
    assert pipeline.call("op", ("asked",), CONTENTS).value == "asked"
    assert [word for _, word in executor.done][-202:] == [*range(200), "last", "asked"]
    pipeline.connection.close()


def nothing(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
    pipeline.flush()
    pipeline.flush()
    return pipeline.counters.batches


def of_unknown_length(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
    """Of what was never timed a handful is under way."""
    for number in range(12):
        pipeline.record(f"slow {number % 2}", (number,))
    return pipeline.counters.batches, pipeline.counters.ops


def more_than_is_granted(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
    recorded(pipeline, *range(20))
    pipeline.flush()
    return pipeline.call("op", ("asked",), CONTENTS).value


def unfit(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
    recorded(pipeline, 1, object(), 2)
    pipeline.flush()
    with pytest.raises(ValueError, match="cannot be sent"):
        pipeline.call("op", (3,), CONTENTS)
    return pipeline.call("op", (4,), CONTENTS).value


class Lasting(dict[str, Exception]):
    """What fails once and for all, as the socket of a connection that is cut does."""

    def pop(self, what: str) -> Exception:  # type: ignore[override]
        return self[what]


def lost(what: str) -> Do:
    def lose(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
        recorded(pipeline, 1, 2)
        executor.socket.fails = Lasting({what: ConnectionLost("cut")})
        pipeline.flush()
        recorded(pipeline, 3)
        pipeline.flush()
        return pipeline.call("op", (4,), CONTENTS).value

    return lose


def put_back(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
    """What was put back is read first, also where nobody waits."""
    seq = asked_and_put_back(pipeline)
    recorded(pipeline, 7)
    pipeline.flush()
    return pipeline.connection._put_back, pipeline.answer(seq).value


def failed(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
    pipeline.record("fail", ("a",))
    pipeline.flush()
    executor.live()
    recorded(pipeline, 8)
    pipeline.flush()
    with pytest.raises(ValueError, match="a failed"):
        pipeline.call("op", (9,), CONTENTS)
    return pipeline.call("op", (10,), CONTENTS).value


@pytest.mark.parametrize(
    "do",
    [
        nothing,
        of_unknown_length,
        more_than_is_granted,
        unfit,
        lost("send"),
        lost("spin"),
        lost("take"),
        put_back,
        failed,
    ],
)
def test_what_stands_in_the_way_is_met_alike_both_ways(do: Do) -> None:
    assert outcome(True, do, 7) == outcome(False, do, 7)


@needs_core
def test_another_thread_that_has_the_connection_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = RingedExecutor()
    pipeline, said = executor.pipeline(), []
    monkeypatch.setattr(Pipeline, "_send_recorded", lambda self: said.append("send"))
    monkeypatch.setattr(Pipeline, "_read_all", lambda self: said.append("read"))
    monkeypatch.setattr(executor.socket, "spin", lambda until: True)

    class Held:
        def acquire(self, blocking: bool = True) -> bool:
            said.append("wait" if blocking else "ask")
            return blocking

        def release(self) -> None:
            said.append("let go")

    recorded(pipeline, 1)
    with monkeypatch.context() as held:
        held.setattr(pipeline, "_io", Held())
        pipeline.flush()
    assert said == ["ask", "send", "wait", "read", "let go"]
    pipeline.connection.close()


@needs_core
def test_what_a_signal_raises_while_it_is_looked_for_news_is_raised() -> None:
    executor = RingedExecutor()
    pipeline = executor.pipeline()
    recorded(pipeline, 1)
    executor.socket.fails["spin"] = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        pipeline.flush()
    assert pipeline.call("op", (2,), CONTENTS).value == 2
    assert [word for _, word in executor.done] == [1, 2]
    pipeline.connection.close()


@pytest.mark.parametrize("are_used", [True, False])
def test_an_interrupt_at_any_moment_loses_nothing(are_used: bool) -> None:
    moment = moments = 0
    while moment <= moments:
        with compiled.used(are_used):
            executor = RingedExecutor()
            pipeline = executor.pipeline()
            pipeline.call("op", (0,), CONTENTS)
            recorded(pipeline, 1, 2)
            was_interrupted = False
            try:
                with interrupt_at(moment) as passed:
                    pipeline.flush()
            except KeyboardInterrupt:
                was_interrupted = True
            moments = passed[0]
            assert was_interrupted or moments <= moment
            recorded(pipeline, 3)
            assert pipeline.call("op", (4,), CONTENTS).value == 4
            assert [word for _, word in executor.done] == [0, 1, 2, 3, 4]
            pipeline.connection.close()
        moment += 1
    assert moment > 5
