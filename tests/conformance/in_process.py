"""A notebook and its executor in one thread: the real pipeline, protocol, op stream and device, without sockets."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device
from gpu_backend.devices.cpu.several import DEVICES
from gpu_backend.executor.config import PASSES
from gpu_backend.executor.program.run import OpStream
from gpu_backend.wire.messages import Want
from kernelproxy.client import current
from kernelproxy.mirror.host_mirror import HostMirror, Mode
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.session import Session
from kernelproxy.stream.spread import SpreadPipeline
from kernelproxy.stream.streams import Streams
from tests.unit.kernelproxy.played import PlayedExecutor

#: The optimisations that are on: `PASSES= pytest tests/conformance` has all go without.
_PASSES = os.environ.get("PASSES", ",".join(PASSES)).split(",")
#: Long enough for any op of a test.
_SECONDS = 600.0


class InProcess(PlayedExecutor):
    """Runs ops on a device, in their batches as an executor's process does, while the notebook waits."""

    def __init__(self, device: Device, passes: Collection[str] = _PASSES) -> None:
        self.device = device
        self.stream = OpStream(device, passes)
        #: What NumPy says in an executor of what it computes, and nothing, is not the notebook's.
        self.context = copy_context()
        super().__init__(credit_bytes=64 << 20)

    def work(self, most: int) -> None:
        """Run all ops that have arrived."""
        self.context.run(self._work)

    def _work(self) -> None:
        while (batch := self.talk.front()) is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of ops that nobody waits for nobody hears, as from another process
                place, answer = self.stream.run(batch, perf_counter() + _SECONDS)
            self.talk.advance(batch, place)
            if self.is_quick:  # or a notebook that is ahead would wait for it
                self.talk.note_done(self.talk.applied, self.busy_seconds)
            if answer is not None:
                self.talk.answer(answer)


def trips() -> int:
    """Wait for all that was recorded; return how many answers were waited for so far."""
    pipeline = current().pipeline
    pipeline.call(".nothing", (), Want.DESCRIPTION)
    return pipeline.counters.round_trips


def cost(function: Callable[[], Any]) -> int:
    """Return for how many answers ``function`` waits."""
    before = trips()
    function()
    return trips() - before - 1  # that of the count itself


@contextmanager
def mirrored(mode: Mode) -> Iterator[None]:
    """Have the notebook know values on its own, or not, from here on."""
    pipeline, before = current().pipeline, current().pipeline.mirror
    pipeline.mirror = HostMirror(mode)
    try:
        yield
    finally:
        pipeline.mirror = before


@contextmanager
def notebook_on_two(kind: str, kernels: Path) -> Iterator[InProcess]:
    """Let this process's notebook use an executor on two devices of ``kind``, whose CuPy may keep what it compiles."""
    os.environ.setdefault("CUPY_CACHE_DIR", str(kernels))
    if kind == "cuda" and pytest.importorskip("cupy").cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    try:
        with notebook_on(open_device(kind, count=2)) as executor:
            yield executor
    finally:
        if kind == "cpu":
            DEVICES.open(1)  # the processor stands for one again, for all that comes after in this process


@contextmanager
def notebook_on(device: Device, executor: InProcess | None = None) -> Iterator[InProcess]:
    """Let this process's notebook use an executor on ``device``, which need not be the only CuPy in the process.

    ``executor`` is one that was made for that device already; a new one without.
    """
    executor = executor or InProcess(device)
    pipeline = executor.pipeline(kind=MirroredPipeline if device.count == 1 else SpreadPipeline)
    played: Any = SimpleNamespace(pipeline=pipeline, devices=device.count, device=device.info._asdict())
    played.memory_limit_bytes = 0
    played.synchronize = lambda: Session.synchronize(played)
    played.memory = lambda number=0: Session.memory(played, number)
    current().adopt(played)
    try:
        yield executor
    finally:
        current().adopt(None)
        device.use(0)
        current().streams = Streams()  # who comes next is on the first device, and has left no default stream
