"""What is timed as one group: ops that run one behind the other, and nobody's waiting for the rest of a message."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import perf_counter

import pytest

from gpu_backend.devices import open_device
from gpu_backend.executor.config import CERTIFICATE, Descriptors, ExecutorConfig
from gpu_backend.executor.conversation import Conversation
from gpu_backend.executor.instructions import Run
from gpu_backend.executor.ports import Ports
from gpu_backend.executor.process import Executor
from gpu_backend.node import inherited
from gpu_backend.node.certificate import make_certificate
from gpu_backend.transport.framing import head
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.reaching import Expected, reach_far
from gpu_backend.wire.codec import encode
from gpu_backend.wire.messages import Batch, Hello, Op
from gpu_backend.wire.orders import Assign

SECONDS = 30.0


@contextmanager
def executor_with_a_notebook(own: Path) -> Iterator[tuple[Executor, MessageSocket]]:
    """Return an executor whose steps are the test's to take, and the end of its notebook, of another host."""
    made, secret = make_certificate(), os.urandom(32)
    (own / CERTIFICATE).write_bytes(made.pem)
    with inherited.listening(own, "127.0.0.1") as handed:
        near, control, far, report = map(os.dup, handed.numbers)
    config = ExecutorConfig(
        device_kind="cpu", own=str(own), agent_key="", endpoints=handed.endpoints, secret=secret.hex(),
        descriptors=Descriptors(local=near, control=control, far=far, report=report), certificate=made.fingerprint,
        has_arbiter=False, orphan_seconds=SECONDS,
    )  # fmt: skip
    ports = Ports(config, lambda memory: None)
    executor = Executor(config, open_device("cpu"), ports)
    executor._assign(Assign("s", 1, "", 0, SECONDS, ""))
    with closing(ports), ThreadPoolExecutor(1) as other:
        reached = other.submit(reach_far, config.endpoints[1], Expected(secret, config.certificate), SECONDS, 0)
        until(reached.done, executor)
        notebook = reached.result()[0]
        with closing(notebook):
            notebook.send(encode(Hello("s", 1, "i", 1, 0)))
            until(lambda: talk_of(executor).is_connected, executor)
            yield executor, notebook


def talk_of(executor: Executor) -> Conversation:
    """Return what was said to ``executor``."""
    talk = executor._conversation
    assert talk is not None
    return talk


def until(is_done: Callable[[], bool], listening: Executor | None = None) -> None:
    """Wait until something ``is_done``, and have an executor listen meanwhile if one is given."""
    end = perf_counter() + SECONDS
    while not is_done():
        assert perf_counter() < end
        if listening is not None:
            listening._take_in(0.01)


def message(number: int) -> bytes:
    """Return the bytes of a message with one op, the ``number``-th."""
    frames = encode(Batch(number, 0, (Op("cupy.zeros", 10 + number, (9,)),)))
    return head(frames, [None] * len(frames)) + b"".join(map(bytes, frames))


def send(notebook: MessageSocket, part: bytes) -> None:
    """Send bytes that need not be a message."""
    while part:
        with suppress(BlockingIOError):
            part = part[notebook._stream.send(part) :]


@pytest.mark.parametrize("is_whole", [True, False])
def test_only_ops_that_are_there_are_timed_with_those_before_them(tmp_path: Path, is_whole: bool) -> None:
    with executor_with_a_notebook(tmp_path) as (executor, notebook):
        talk, following = talk_of(executor), message(2)
        send(notebook, message(1))
        until(lambda: talk.has_work, executor)
        send(notebook, following if is_whole else following[:-1])
        until(executor._ports.hears_peers)
        executor._work(Run(perf_counter() + SECONDS))
        assert talk.applied == 1
        assert talk.has_work == is_whole
        assert executor._pace._open_ops == int(is_whole)
