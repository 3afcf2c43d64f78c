"""A notebook and its executor in one thread: the real pipeline, protocol, op stream and device, without sockets."""

from __future__ import annotations

import os
import secrets
import socket
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
from gpu_backend.executor.channel import Channel
from gpu_backend.executor.channels import Channels
from gpu_backend.executor.config import PASSES
from gpu_backend.executor.program.run import OpStream
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.wire.messages import Want
from kernelproxy.client import Beside, current
from kernelproxy.mirror.host_mirror import HostMirror, Mode
from kernelproxy.stream.joined import JoinedPipeline
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

    #: Whether one host has all devices of the notebook.
    is_on_one_host = True

    def __init__(self, device: Device, passes: Collection[str] = _PASSES, channels: Channels | None = None) -> None:
        self.device = device
        self.stream = OpStream(device, passes, channels=channels)
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
                is_cancelled = self.talk.is_cancelled
                place, answer = self.stream.cancel(batch) if is_cancelled else self.stream.run(batch, _until())
            self.talk.advance(batch, place)
            if self.is_quick:  # or a notebook that is ahead would wait for it
                self.talk.note_done(self.talk.applied, self.busy_seconds)
            if answer is not None:
                self.talk.answer(answer)


def _until() -> float:
    return perf_counter() + _SECONDS


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
    """Let this process's notebook use an executor on two devices of ``kind``, whose CuPy may keep what it compiles.

    Or, with "apart", two executors that have a CPU device each.
    """
    if kind == "apart":
        with _notebook_on_two_apart(kernels) as executor:
            yield executor
        return
    os.environ.setdefault("CUPY_CACHE_DIR", str(kernels))
    if kind == "cuda" and pytest.importorskip("cupy").cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    try:
        with notebook_on(open_device(kind, count=2)) as executor:
            yield executor
    finally:
        if kind == "cpu":
            DEVICES.open(1)  # the processor stands for one again, for all that comes after in this process


class _Alone:
    """One of the devices of a process, for an executor that knows no other."""

    count = 1

    def __init__(self, device: Device, number: int) -> None:
        self._device, self._number = device, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


class _InProcessAlone(InProcess):
    """An executor of one of the devices, beside others in this process."""

    is_on_one_host = False

    def __init__(self, device: Device, number: int) -> None:
        self._every, self._number = device, number
        self.channels = Channels()
        #: The one that there is a channel to.
        self.beside: _InProcessAlone | None = None
        super().__init__(_Alone(device, number), channels=self.channels)  # type: ignore[arg-type]

    def reach(self, other: _InProcessAlone, name: str) -> None:
        """Have a channel of that name to another."""
        for one, beside, connected in zip((self, other), (other, self), socket.socketpair(), strict=True):
            connected.setblocking(False)
            one.channels._named[name] = known = Channel(MessageSocket(connected), name)
            known.is_met, one.beside = True, beside

    def _work(self) -> None:
        self._run()
        while self.talk.queued_ops and self.beside is not None:  # it waits for the other one, which is heard here
            self.beside.hear()
            self.beside.context.run(self.beside._run)
            for one in (self, self.beside):
                one.channels.look(set())
            self._run()

    def _run(self) -> None:
        before = DEVICES.current
        self._every.use(self._number)
        try:
            super()._work()
        finally:
            self._every.use(before)


@contextmanager
def _notebook_on_two_apart(kernels: Path) -> Iterator[InProcess]:
    """Let this process's notebook use two executors with a CPU device each, as if they were on two hosts."""
    os.environ.setdefault("CUPY_CACHE_DIR", str(kernels))
    head, device = current(), open_device("cpu", count=2)
    executors = [_InProcessAlone(device, number) for number in range(2)]
    other = Beside(head)
    head.join([other])
    try:
        for client, executor in zip((head, other), executors, strict=True):
            client.adopt(_session(device, executor, JoinedPipeline, 1))
            client.session.ticket = SimpleNamespace(session=secrets.token_hex(8), epoch=1)
            client.session.open_channel = lambda to, name: executors[0].reach(executors[1], name)
        executors[0].device = device
        yield executors[0]
    finally:
        for executor in executors:
            for channel in executor.channels._all():
                channel.lose("the test ends")  # one thread is both: nobody would hear who takes leave
            executor.channels.close()
        head.streams.set_device(0)
        other.adopt(None)
        head.part_with()
        head.adopt(None)
        DEVICES.open(1)


@contextmanager
def notebook_on(device: Device, executor: InProcess | None = None) -> Iterator[InProcess]:
    """Let this process's notebook use an executor on ``device``, which need not be the only CuPy in the process.

    ``executor`` is one that was made for that device already; a new one without.
    """
    executor = executor or InProcess(device)
    kind = MirroredPipeline if device.count == 1 else SpreadPipeline
    current().adopt(_session(device, executor, kind, device.count))
    try:
        yield executor
    finally:
        current().adopt(None)
        device.use(0)
        current().streams = Streams()  # who comes next is on the first device, and has left no default stream


def _session(device: Device, executor: InProcess, kind: type[MirroredPipeline], count: int) -> Any:
    pipeline = executor.pipeline(kind=kind)
    played: Any = SimpleNamespace(pipeline=pipeline, devices=count, device=device.info._asdict())
    played.memory_limit_bytes = 0
    played.synchronize = lambda: Session.synchronize(played)
    played.memory = lambda number=0: Session.memory(played, number)
    return played
