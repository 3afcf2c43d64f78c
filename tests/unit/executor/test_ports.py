"""The executor's own sockets: what comes from a notebook of this host."""

from __future__ import annotations

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
