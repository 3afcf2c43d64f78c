"""The executor's own sockets: what comes from notebooks of this host and of others."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.executor.config import CERTIFICATE, Descriptors, ExecutorConfig
from gpu_backend.executor.outbox import Outbox
from gpu_backend.executor.ports import Ports
from gpu_backend.node import inherited
from gpu_backend.node.certificate import make_certificate
from gpu_backend.transport import tls
from gpu_backend.transport.framing import place_of
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.reaching import Expected, reach_far, reach_local
from gpu_backend.wire.codec import Frame

SECRET = os.urandom(32)


@pytest.fixture
def config(tmp_path: Path) -> ExecutorConfig:
    made = make_certificate()
    (tmp_path / CERTIFICATE).write_bytes(made.pem)
    with inherited.listening(tmp_path, "127.0.0.1") as handed:
        near, control, far, report = map(os.dup, handed.numbers)
    return ExecutorConfig(
        device_kind="cpu", own=str(tmp_path), agent_key="", endpoints=handed.endpoints,
        descriptors=Descriptors(local=near, control=control, far=far, report=report), secret=SECRET.hex(),
        certificate=made.fingerprint,
    )  # fmt: skip


@pytest.fixture
def ports(config: ExecutorConfig) -> Iterator[Ports]:
    made_ports = Ports(config, lambda memory: None)
    yield made_ports
    made_ports.close()


@pytest.fixture
def with_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this machine have processors for two lanes."""
    monkeypatch.setattr(tls, "threads_beside", lambda most: 2)


@pytest.fixture(params=[0, 1], ids=["local", "tls"])
def notebook(config: ExecutorConfig, ports: Ports, request: pytest.FixtureRequest) -> Iterator[MessageSocket]:
    """A notebook of this host, or of another."""
    expected, endpoint = Expected(SECRET, config.certificate), config.endpoints[request.param]
    reached: list[MessageSocket] = []

    def reach() -> None:
        if request.param:
            reached.append(reach_far(endpoint, expected, 60.0, 2)[0])
        else:
            reached.append(reach_local(endpoint, expected, 60.0))

    reaching = threading.Thread(target=reach)
    reaching.start()
    while not reached:
        ports.wait(0.1)
    reaching.join()
    yield reached[0]
    reached[0].close()


def _read(ports: Ports, count: int, seconds: float = 0.0) -> list[bytes]:
    """Read as the executor does, until ``count`` messages have come or nothing is heard for so long."""
    read: list[bytes] = []
    while len(read) < count and (ports.hears_peers() or ports.wait(seconds).data):
        read += [bytes(frames[0]) for _, frames in ports.read_data()]
    return read


@pytest.fixture
def another(config: ExecutorConfig, ports: Ports) -> Iterator[subprocess.Popen[str]]:
    """A process that connects, says so, and waits to be ended."""
    code = f"""
import signal
from gpu_backend.transport.reaching import Expected, reach_local
connected = reach_local({config.endpoints[0]!r}, Expected({SECRET!r}, ""), 60.0)
connected.send([b"hello"])
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", code], text=True) as process:
        yield process
        process.kill()


def test_the_end_of_the_process_that_is_watched_is_seen_whenever_it_was_cut_off(
    ports: Ports, another: subprocess.Popen[str], notebook: MessageSocket
) -> None:
    assert notebook.send([b"mine"])
    read: dict[bytes, bytes] = {}
    while len(read) < 2:
        ports.wait(60.0)
        read |= {bytes(frames[0]): peer for peer, frames in ports.read_data()}
    ports.watch_owner(read[b"hello"])
    assert not ports.has_owner_ended()
    another.kill()
    another.wait()
    assert ports.wait(60.0).data
    assert not list(ports.read_data())  # the connection is forgotten, its process is not
    assert ports.has_owner_ended()
    ports.watch_owner(read[b"mine"])
    assert not ports.has_owner_ended()
    ports.watch_owner(b"from afar")
    assert not ports.has_owner_ended()


def test_many_small_messages_at_once_are_all_read(ports: Ports, notebook: MessageSocket) -> None:
    """More than are read in one go come in one piece; nothing that is sent later reminds of the rest."""
    sent = [b"%d" % number for number in range(500)]
    for message in sent:
        assert notebook.send([message])
    assert _read(ports, len(sent), 60.0) == sent


def test_a_message_that_comes_in_pieces_is_read_whole(ports: Ports, notebook: MessageSocket) -> None:
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


@pytest.mark.parametrize("notebook", [1], indirect=True)
def test_what_comes_by_lanes_wakes_who_sleeps_and_is_answered_so(
    with_lanes: None, ports: Ports, notebook: MessageSocket
) -> None:
    large = os.urandom(5 << 20)
    assert notebook._laned is not None
    lanes = notebook._laned.lanes
    lanes.want()
    while any(len(streams) < 2 for streams in lanes._streams.values()):
        ports.wait(0.1)
    for _ in range(3):
        assert notebook.send([b"head", large, b"tail"])
        read: list[tuple[bytes, list[Frame]]] = []
        while not read:
            ports.wait(60.0)
            read += ports.read_data()
        ((peer, message),) = read
        assert message == [b"head", large, b"tail"]
        outbox = Outbox()
        outbox.put(peer, [b"back", message[1]])
        ports.send(outbox)
        while (answer := notebook.receive()) is None:
            assert select.select([notebook], [], [], 60.0)[0]
        assert answer == [b"back", large]


@pytest.mark.parametrize("seconds", [60e-6, 0.25e-3, 0.9e-3])
def test_a_sleep_of_less_than_a_millisecond_is_slept(
    ports: Ports, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poller counts in milliseconds: with less it does not sleep at all, and who asks again keeps a core busy."""
    asked: list[float] = []

    def slept(readers: object, writers: object, others: object, timeout: float) -> tuple[list[int], ...]:
        asked.append(timeout)
        return [], [], []

    monkeypatch.setattr(select, "select", slept)
    assert not any(ports.wait(seconds))
    assert asked == [seconds]


def test_what_is_filled_in_place_goes_out_as_it_is_where_memory_is_shared(
    ports: Ports, notebook: MessageSocket
) -> None:
    assert notebook.send([b"who"])
    assert ports.wait(60.0).data
    ((name, _),) = ports.read_data()
    lent = ports.lend(name, 100_000)
    is_far = notebook.lend(100_000) is None
    assert (lent is None) == is_far
    assert ports.lend(None, 100_000) is None
    assert ports.lend(b"somebody else", 100_000) is None
    if lent is None:
        return
    lent[:] = 5
    outbox = Outbox()
    outbox.put(name, [b"answer", lent.data])
    ports.send(outbox)
    while (message := notebook.receive()) is None:
        continue
    lent[7] = 6
    assert message[1][7] == 6


def test_all_that_lies_there_is_read_in_one_look(ports: Ports, notebook: MessageSocket) -> None:
    """What comes last may cancel all before it."""
    for number in range(40):
        assert notebook.send([b"%d" % number])
    looks: list[list[bytes]] = []
    while sum(map(len, looks)) < 40:
        assert ports.wait(60.0).data
        looks.append([bytes(frames[0]) for _, frames in ports.read_data()])
    assert [one for look in looks for one in look] == [b"%d" % number for number in range(40)]
    assert len(looks) < 5


@pytest.mark.parametrize("notebook", [0], indirect=True)
def test_a_notebook_that_speaks_of_a_block_that_it_never_gave_is_let_go_of(
    ports: Ports, notebook: MessageSocket
) -> None:
    assert notebook.send([b"who"])
    assert _read(ports, 1, 60.0) == [b"who"]
    assert notebook._ring is not None
    assert notebook._ring.put_whole(b"rubbish", place_of(3, 1000))
    assert ports.wait(60.0).data
    assert not list(ports.read_data())
    assert not ports.hears_peers()
    assert select.select([notebook], [], [], 60.0)[0]
    with pytest.raises(ConnectionLost):
        notebook.receive()
