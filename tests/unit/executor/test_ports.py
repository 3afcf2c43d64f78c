"""The executor's own sockets: what comes from a notebook of this host."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from gpu_backend.executor.config import ExecutorConfig
from gpu_backend.executor.ports import Ports
from gpu_backend.transport import local
from gpu_backend.transport.local import LocalSocket


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[Ports]:
    with zmq.Context() as context:
        made = Ports(context, tmp_path, ExecutorConfig(bind_host="127.0.0.1", agent_key="", device_kind="cpu"))
        yield made
        made.close()


@pytest.fixture
def notebook(ports: Ports, tmp_path: Path) -> Iterator[LocalSocket]:
    connected = local.connect(str(tmp_path / "local"))
    ports.wait(1.0)  # it is accepted
    yield connected
    connected.close()


def _read(ports: Ports, count: int, seconds: float = 0.0) -> list[bytes]:
    """Read as the executor does, until ``count`` messages have come or nothing is heard for so long."""
    read: list[bytes] = []
    while len(read) < count and (ports.hears_locally() or ports.wait(seconds).data):
        read += [bytes(frames[0]) for _, frames in ports.read_data()]
    return read


@pytest.fixture
def another(ports: Ports, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that connects, says so, and waits to be ended."""
    code = f"""
import signal
from gpu_backend.transport import local
connected = local.connect({str(tmp_path / "local")!r})
connected.send([b"hello"])
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", code], text=True) as process:
        yield process
        process.kill()


def test_the_end_of_the_process_that_is_watched_is_seen_whenever_it_was_cut_off(
    ports: Ports, another: subprocess.Popen[str], notebook: LocalSocket
) -> None:
    assert notebook.send([b"mine"])
    read: dict[bytes, bytes] = {}
    while len(read) < 2:
        ports.wait(1.0)
        read |= {bytes(frames[0]): peer for peer, frames in ports.read_data()}
    ports.watch_owner(read[b"hello"])
    assert not ports.has_owner_ended()
    another.kill()
    another.wait()
    assert ports.wait(1.0).data
    assert not list(ports.read_data())  # the connection is forgotten, its process is not
    assert ports.has_owner_ended()
    ports.watch_owner(read[b"mine"])
    assert not ports.has_owner_ended()
    ports.watch_owner(b"from afar")
    assert not ports.has_owner_ended()


def test_many_small_messages_at_once_are_all_read(ports: Ports, notebook: LocalSocket) -> None:
    """More than are read in one go come in one piece; nothing that is sent later reminds of the rest."""
    sent = [b"%d" % number for number in range(500)]
    for message in sent:
        assert notebook.send([message])
    assert _read(ports, len(sent), 1.0) == sent


def test_a_message_that_comes_in_pieces_is_read_whole(ports: Ports, notebook: LocalSocket) -> None:
    """Neither what stands before it nor what stands behind it in the same piece is left unread."""
    sent = [b"first", bytes(8 << 20), b"last"]
    read: list[bytes] = []
    for message in sent:
        while not notebook.send([message]):
            read += _read(ports, 1)
    while notebook.is_sending or len(read) < len(sent):
        notebook.push()
        read += _read(ports, 1)
    assert read == sent
