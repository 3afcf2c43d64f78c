"""An executor that nobody wants yet gets ready what copies pass through, and hears orders meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpu_backend.devices.cpu.device import CpuDevice
from gpu_backend.executor.config import CERTIFICATE, CONTROL, Descriptors, ExecutorConfig
from gpu_backend.executor.ports import Ports
from gpu_backend.executor.process import EXIT_ORDERED, Executor
from gpu_backend.node import inherited
from gpu_backend.node.certificate import make_certificate
from gpu_backend.transport import control_socket
from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.shared_frames import BLOCKS
from gpu_backend.wire import orders
from gpu_backend.wire.codec import encode


class Pin:
    """Counts what it is told of; ``then`` is done each time."""

    def __init__(self, then: Callable[[int], None] = lambda count: None) -> None:
        self.count = 0
        self._then = then

    def __call__(self, memory: Bytes) -> Pin:
        self.count += 1
        self._then(self.count)
        return self

    def release(self) -> None:
        self.count -= 1


@pytest.fixture
def config() -> Iterator[ExecutorConfig]:
    made = make_certificate()
    with TemporaryDirectory(prefix="gwb") as directory:
        own = Path(directory)
        (own / CERTIFICATE).write_bytes(made.pem)
        with inherited.listening(own, "127.0.0.1") as handed:
            near, orders, far, report = map(os.dup, handed.numbers)
        yield ExecutorConfig(
            device_kind="cpu", own=str(own), agent_key="", endpoints=handed.endpoints,
            descriptors=Descriptors(local=near, control=orders, far=far, report=report), secret=os.urandom(32).hex(),
            certificate=made.fingerprint, has_arbiter=False, orphan_seconds=0.0,
        )  # fmt: skip


def test_all_is_ready_before_anybody_comes(config: ExecutorConfig) -> None:
    pin = Pin()
    assert Executor(config, CpuDevice(), Ports(config, pin)).run() == EXIT_ORDERED  # for want of an agent
    assert pin.count == 2 * BLOCKS


def test_an_order_is_heard_before_all_is_ready(config: ExecutorConfig) -> None:
    def stop(count: int) -> None:
        if count == 3:
            agent = control_socket.connect(Path(config.own) / CONTROL)
            assert agent.send(encode(orders.Stop("It is over."))[0])
            agent.close()

    pin = Pin(stop)
    assert Executor(config, CpuDevice(), Ports(config, pin)).run() == EXIT_ORDERED
    assert 3 <= pin.count < 2 * BLOCKS
