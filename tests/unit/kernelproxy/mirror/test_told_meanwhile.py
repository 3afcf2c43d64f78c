"""What a thread is told while another has an array written is not known behind that: masks, integers and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream.layout import contiguous
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Ref
from kernelproxy import compiled
from kernelproxy.mirror import bins, counts
from kernelproxy.mirror.host_mirror import HostMirror
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.recorder import HANDLES_PER_CALL
from tests.unit.kernelproxy.played import PlayedExecutor

ARRAY, FOUR = Ref(5), contiguous((4,), np.dtype("f8"))
WRITES = [("cupy.ndarray.fill", (ARRAY, True)), (".method", (ARRAY, "sort")), ("cupy.copyto", (ARRAY, Ref(6)))]


class Contended:
    """A lock that another thread always gets first."""

    def __init__(self, lock: Any, turn: Any) -> None:
        self._lock, self._turn = lock, turn

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        with self._lock:
            self._turn()
        return bool(self._lock.acquire(blocking))

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *of: object) -> None:
        self.release()


class Meanwhile:
    """Another thread: it asks just before each time that the first may record, and hears when that sends."""

    def __init__(self, pipeline: MirroredPipeline) -> None:
        self.pipeline, self.mirror = pipeline, pipeline.mirror
        self.counted: Any = None
        self.awaited: Any = None
        #: What it knows by what it has heard.
        self.known: list[object] = []
        pipeline._recording = Contended(pipeline._recording, self.ask)
        self._send, pipeline.connection.send = pipeline.connection.send, self.hear  # type: ignore[method-assign]

    def ask(self) -> None:
        if self.pipeline.open_batch.end == 1:  # the write is not recorded yet
            self.counted = counts.expect(self.mirror, ARRAY)
            self.awaited = self.mirror.await_(7, FOUR)

    def hear(self, *message: Any) -> bool:
        if self.counted is not None:
            counts.note(self.mirror, ARRAY, self.counted, 3)
            bins.note(self.mirror, ARRAY, self.counted, 9, 0)
        self.mirror.note_fetched(7, self.awaited, np.zeros(4), True)
        self.known += counts.count(self.mirror, ARRAY), bins.length(self.mirror, ARRAY, 0)
        self.known.append(self.mirror.read(Ref(7), FOUR))
        return self._send(*message)


@pytest.fixture(params=[True, False], ids=["compiled", "pure"])
def pipeline(request: pytest.FixtureRequest) -> Iterator[MirroredPipeline]:
    """A pipeline that knows what it is told."""
    executor = PlayedExecutor()
    made = MirroredPipeline(executor.connect(), executor.renew)
    made.mirror = HostMirror()
    with compiled.used(request.param):
        yield made


@pytest.mark.parametrize(("name", "args"), WRITES)
def test_what_was_asked_before_a_write_is_not_known_behind_it(pipeline: MirroredPipeline, name: str, args: Any) -> None:
    other = Meanwhile(pipeline)
    pipeline.ask(name, (*args, Ref(7)), Want.DESCRIPTION)
    assert other.known == [None, None, None]


def test_what_was_asked_before_a_look_is_known_behind_it(pipeline: MirroredPipeline) -> None:
    other = Meanwhile(pipeline)
    pipeline.ask(".same", (ARRAY,), Want.CONTENTS)
    assert other.known[:2] == [3, 9]
    assert other.known[2] is not None


def test_what_looking_at_an_op_sets_off_may_record_ops_itself(pipeline: MirroredPipeline) -> None:
    """As a finalizer of the user's does, which may run wherever Python does."""
    look, between = pipeline.mirror.note_asked, []

    def looking(*of: Any) -> None:
        between.append(pipeline.record("op", ("between",), 1))
        look(*of)

    pipeline.mirror.note_asked = looking  # type: ignore[method-assign]
    first = pipeline.next_handle
    assert pipeline.call("op", ("asked",), Want.CONTENTS).value == "asked"
    assert between == [first]
    assert pipeline.next_handle == first + 1 + HANDLES_PER_CALL
    assert pipeline.inbox.answers == {}
