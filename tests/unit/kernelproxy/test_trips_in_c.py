"""Trips on the real connection and link: what the compiled core does of them is what Python does."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from select import POLLIN
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.messages import Want
from kernelproxy import compiled
from kernelproxy.session import connection as connections
from kernelproxy.session.connection import Connection
from kernelproxy.session.links import Link
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.pipeline import Pipeline

from .played import PlayedExecutor, PlayedLink
from .test_sending import STEPS, state

CONTENTS = Want.CONTENTS
needs_core = pytest.mark.skipif(not compiled.is_compiled, reason="nothing is compiled here")


class PlayedSocket:
    """A `MessageSocket` over a ring, for the real link: what is sent by it reaches a played executor."""

    passes_whole, has_read_ahead, is_sending, awaited = True, False, False, POLLIN

    def __init__(self, link: PlayedLink) -> None:
        self.played = link
        self.descriptors = os.pipe()
        #: Raised by the next of these.
        self.fails: dict[str, Exception] = {}

    def _fail(self, what: str) -> None:
        if what in self.fails:
            raise self.fails.pop(what)

    def fileno(self) -> int:
        return self.descriptors[0]

    def has_news(self) -> bool:
        return bool(self.played.arrived)

    def spin(self, until: float) -> bool:
        self._fail("spin")
        if until and not self.played.arrived:
            self.played._executor.live()
        return self.has_news()

    def take_whole(self) -> list[Frame] | None:
        taken = self.played.arrived.popleft() if self.played.arrived else None
        if taken is not None:
            self._fail("take")
        return taken

    def receive(self) -> list[Frame] | None:
        return None

    def place(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        return frames

    def send(self, frames: Sequence[Frame]) -> bool:
        self._fail("send")
        return self.played.send(frames)

    def push(self) -> bool:
        return True

    def doze(self) -> bool:
        self.played._executor.live()
        return not self.has_news()

    def wake(self, is_rung: bool) -> None: ...

    def most_sleep(self, seconds: float) -> float:
        return 0.0

    def own(self) -> None:
        self.played.own()

    def close(self) -> None:
        self.played.close()
        for one in self.descriptors:
            os.close(one)


class RingedExecutor(PlayedExecutor):
    """A played executor that is reached by the real connection and the real link."""

    socket: PlayedSocket

    def connect(self, first: int = 1, received: int = 0) -> Connection:  # type: ignore[override]
        def opened(*args: object) -> tuple[Link, str]:
            self.link = PlayedLink(self)
            self.socket = PlayedSocket(self.link)
            return Link(self.socket), "ring:played"  # type: ignore[arg-type]

        with mock.patch.object(connections, "open_link", opened):
            made = Connection(self.ticket(), "me", False, 1.0)
        made.greet(first, received, 1.0)
        return made


def outcome(are_used: bool, do: Callable[[RingedExecutor, MirroredPipeline], Any], *credit: int) -> list[Any]:
    """Return what ``do`` returns with quick ways or without, what was carried out, and what is counted then."""
    with compiled.used(are_used):
        executor = RingedExecutor(*credit)
        pipeline = executor.pipeline()
        found = do(executor, pipeline)
        told = [found, executor.done, executor.connections, state(pipeline), pipeline.most_ops]
        pipeline.connection.close()
        return told


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=30), st.integers(3, 12), st.integers(60, 200))
def test_trips_are_counted_alike_both_ways(steps: list[str], credit_ops: int, credit_bytes: int) -> None:
    def take(executor: RingedExecutor, pipeline: MirroredPipeline) -> list[object]:
        found = []
        for step in steps:
            STEPS[step](pipeline)
            found.append(state(pipeline))
        return found

    assert outcome(True, take, credit_ops, credit_bytes) == outcome(False, take, credit_ops, credit_bytes)


@needs_core
def test_python_is_not_asked_to_send_or_to_receive(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = RingedExecutor()
    pipeline = executor.pipeline()
    for of, name in ((Pipeline, "_send_sealed"), (Pipeline, "_pump"), (Connection, "send"), (Connection, "receive")):
        monkeypatch.setattr(of, name, None)
    for number in range(40):
        pipeline.record("op", (number,))
        assert pipeline.call("op", (f"{number}",), CONTENTS).value == f"{number}"
    assert not pipeline.connection._link.is_torn
    monkeypatch.undo()
    pipeline.connection.close()


def refused(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
    told, before = "That is all.", pipeline.connection
    executor.talk.end(told)
    pipeline.call("op", (1,), CONTENTS)
    assert before.ended_for == told
    return pipeline.connection is before


def unfit(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
    with pytest.raises(ValueError, match="cannot be sent"):
        pipeline.call("op", (object(),), CONTENTS)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most"):
        pipeline.call("op", ("x" * (9 << 20),), CONTENTS)
    return pipeline.call("op", (3,), CONTENTS).value


def lost(what: str) -> Callable[[RingedExecutor, MirroredPipeline], object]:
    def lose(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
        executor.socket.fails[what] = ConnectionLost("cut")
        return pipeline.call("op", (5,), CONTENTS).value

    return lose


def asked_and_put_back(pipeline: MirroredPipeline) -> int:
    """Return the number of an op whose answer has come and was put back."""
    seq = pipeline.ask("op", (6,), CONTENTS)
    incoming = None
    while incoming is None:
        incoming = pipeline.connection.receive(0.01)
    pipeline.connection.put_back(incoming)
    return seq


def put_back(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
    return pipeline.answer(asked_and_put_back(pipeline)).value


def failed(executor: RingedExecutor, pipeline: MirroredPipeline) -> object:
    pipeline.record("fail", ("a",))
    with pytest.raises(ValueError, match="a failed"):
        pipeline.call("op", (7,), CONTENTS)
    return pipeline.call("op", (8,), CONTENTS).value


@pytest.mark.parametrize("do", [refused, unfit, lost("send"), lost("spin"), lost("take"), put_back, failed])
def test_what_stands_in_the_way_is_met_alike_both_ways(do: Callable[[RingedExecutor, MirroredPipeline], Any]) -> None:
    assert outcome(True, do) == outcome(False, do)


@needs_core
def test_a_batch_is_followed_by_one_as_python_makes_it() -> None:
    executor = RingedExecutor()
    pipeline = executor.pipeline()
    for number in range(3):
        pipeline.record("op", (number,))
    before = pipeline.open_batch
    pipeline.ask("op", (4,), CONTENTS)
    made, wanted = pipeline.open_batch, OpenBatch(before.end)
    names = [name for kind in OpenBatch.__mro__ for name in getattr(kind, "__slots__", ())]
    assert {name: getattr(made, name) for name in names} == {name: getattr(wanted, name) for name in names}
    assert type(made) is OpenBatch
    pipeline.connection.close()
