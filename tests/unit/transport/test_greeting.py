"""A port where somebody listens and no pool greets is told so; nothing is said of keys that nobody looked at."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic

import pytest
import zmq

from gpu_backend.transport import curve
from gpu_backend.transport.asking import ask
from gpu_backend.transport.exchange import Door, exchange
from gpu_backend.transport.greeting import Greeting, greeting_at
from gpu_backend.transport.sockets import as_server
from gpu_backend.wire.control import AskPool
from gpu_backend.wire.errors import ForeignServer, NotAuthorized, PoolUnreachable
from tests.faults.cutter import cutting
from tests.played_admission import AllowedKeys, guard_thread
from tests.spare_ports import spare_ports

SERVER, OWN = curve.generate(), curve.generate()
#: What is known at once is known long before.
_LONG_SECONDS = 90.0
#: What only the end of the time tells is told after it.
_SHORT_SECONDS = 1.5

_ANY_PORT = "tcp://127.0.0.1:*"

Meets = Callable[[socket.socket], object]


@contextmanager
def port(meets: Meets, path: Path | None = None) -> Iterator[str]:
    """Have an address, at ``path`` or at a port, where each connection is handed to ``meets``.

    It is left open if that does not close it.
    """
    at = (str(path), socket.AF_UNIX) if path else (("127.0.0.1", 0), socket.AF_INET)
    with ExitStack() as kept, socket.create_server(at[0], family=at[1]) as listener:

        def serve() -> None:
            while True:
                try:
                    meets(kept.enter_context(listener.accept()[0]))
                except OSError:  # the test is over, or who called is gone
                    if listener.fileno() < 0 or is_over:
                        return

        is_over: list[bool] = []
        serving = Thread(target=serve)
        serving.start()
        try:
            yield f"ipc://{path}" if path else f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            is_over.append(True)
            listener.shutdown(socket.SHUT_RDWR)
            serving.join()


@contextmanager
def zmq_port(is_encrypted: bool, at: str = _ANY_PORT) -> Iterator[str]:
    """Have a ZeroMQ server, encrypted or not, that lets in nobody."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    guard = guard_thread(context, AllowedKeys([]))
    with context.socket(zmq.ROUTER) as server:
        if is_encrypted:
            as_server(server, SERVER)
        server.bind(at)
        yield server.last_endpoint.decode()
    guard.stop()
    context.term()


def _closes(connected: socket.socket) -> None:
    connected.close()


def _closes_after_reading(connected: socket.socket) -> None:
    connected.recv(64)
    connected.close()


def _stays_silent(connected: socket.socket) -> None:
    pass


def _says_something_else(connected: socket.socket) -> None:
    connected.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")


def fill(address: str, waiting: ExitStack) -> None:
    """Connect to ``address``, where nobody accepts, until the system refuses."""
    while True:
        one = waiting.enter_context(socket.socket(socket.AF_UNIX))
        one.setblocking(False)
        one.connect(address)


WITHOUT_A_POOL = [
    (_closes, Greeting.CLOSED, "closes them without a word"),
    (_closes_after_reading, Greeting.CLOSED, "closes them without a word"),
    (_stays_silent, Greeting.SILENT, "then says nothing"),
    (_says_something_else, Greeting.OTHER, "does not speak as a pool does"),
]


def told_at(endpoint: str, seconds: float = _SHORT_SECONDS) -> str:
    with pytest.raises(PoolUnreachable) as told:
        exchange(Door(endpoint, SERVER.public, OWN), AskPool(0), seconds)
    return str(told.value)


def test_what_speaks_otherwise_before_it_is_asked_anything_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where this process is kept from the processor meanwhile: the connection is over, and takes no question."""
    connect, until = zmq.Socket.connect, monotonic() + _LONG_SECONDS

    def connect_and_lose(asking: zmq.Socket[bytes], endpoint: str) -> None:
        connect(asking, endpoint)
        while asking.type == zmq.DEALER and asking.poll(10, zmq.POLLOUT):
            assert monotonic() < until, "it never ends"
            select.select([], [], [], 0.01)

    monkeypatch.setattr(zmq.Socket, "connect", connect_and_lose)
    with port(_says_something_else) as endpoint:
        assert "does not speak as a pool does" in told_at(endpoint)


@pytest.mark.parametrize(("meets", "greeting", "words"), WITHOUT_A_POOL)
def test_what_listens_and_is_no_pool(
    meets: Meets, greeting: Greeting, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = _SHORT_SECONDS if greeting is Greeting.SILENT else _LONG_SECONDS
    monkeypatch.setattr("gpu_backend.transport.exchange._GREETING_SECONDS", patience)
    with port(meets) as endpoint:
        assert greeting_at(endpoint, patience) is greeting
        told = told_at(endpoint)
    assert words in told
    assert f"Something at {endpoint} " in told
    assert "near end of a tunnel" in told
    assert "No key was looked at" in told


def test_a_tunnel_that_leads_to_a_closed_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_backend.transport.exchange._GREETING_SECONDS", _LONG_SECONDS)
    (shut,) = spare_ports(1)
    with cutting(f"tcp://127.0.0.1:{shut}", []) as tunnel:
        assert greeting_at(tunnel.endpoint, _LONG_SECONDS) is Greeting.CLOSED
        assert "closes them without a word: no pool is behind it" in told_at(tunnel.endpoint)


def test_the_process_that_asks_a_network_says_the_same() -> None:
    with port(_closes) as endpoint, pytest.raises(PoolUnreachable, match="closes them without a word"):
        ask(Door(endpoint, SERVER.public, OWN), AskPool(0), _SHORT_SECONDS)


def test_where_nobody_listens() -> None:
    (shut,) = spare_ports(1)
    endpoint = f"tcp://127.0.0.1:{shut}"
    assert greeting_at(endpoint, _LONG_SECONDS) is Greeting.NOBODY
    assert "Nobody answers at" in told_at(endpoint)


def test_a_name_that_no_host_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*address: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert greeting_at("tcp://gpu..example.org:7733", _LONG_SECONDS) is Greeting.UNKNOWN
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert greeting_at("tcp://gpu.example.org:7733", _LONG_SECONDS) is Greeting.UNKNOWN
    monkeypatch.setattr("gpu_backend.transport.exchange.greeting_at", lambda *address: Greeting.UNKNOWN)
    (shut,) = spare_ports(1)
    assert f"No machine is known here by the name in tcp://127.0.0.1:{shut}" in told_at(f"tcp://127.0.0.1:{shut}")


@pytest.mark.parametrize("meets", [_closes, _closes_after_reading])
def test_a_gateway_of_this_host_that_is_killed_meanwhile_is_nobody(tmp_path: Path, meets: Meets) -> None:
    with port(meets, tmp_path / "gateway") as endpoint:  # so does a process whose last threads are being ended
        assert greeting_at(endpoint, _LONG_SECONDS) is Greeting.NOBODY
        assert "Nobody answers at" in told_at(endpoint)


def test_a_gateway_of_this_host_that_is_halted(tmp_path: Path) -> None:
    with port(_stays_silent, tmp_path / "gateway") as endpoint:
        assert greeting_at(endpoint, _SHORT_SECONDS) is Greeting.SILENT


def test_a_halted_gateway_of_this_host_for_which_too_many_wait(tmp_path: Path) -> None:
    address = str(tmp_path / "gateway")
    with ExitStack() as waiting, socket.create_server(address, family=socket.AF_UNIX, backlog=1):
        with pytest.raises(BlockingIOError):
            fill(address, waiting)
        assert greeting_at(f"ipc://{address}", _LONG_SECONDS) is Greeting.SILENT
        assert "then says nothing" in told_at(f"ipc://{address}")


def test_a_gateway_of_this_host_that_is_gone(tmp_path: Path) -> None:
    with socket.create_server(str(tmp_path / "left"), family=socket.AF_UNIX):
        pass
    for name in ("left", "never"):
        assert greeting_at(f"ipc://{tmp_path / name}", _LONG_SECONDS) is Greeting.NOBODY


def test_zeromq_without_keys_is_no_pool() -> None:
    with zmq_port(is_encrypted=False) as endpoint:
        assert greeting_at(endpoint, _LONG_SECONDS) is Greeting.OTHER
        assert "does not speak as a pool does" in told_at(endpoint)


@pytest.mark.parametrize("at", [_ANY_PORT, "ipc://{}/gateway"])
def test_a_wrong_server_key_is_still_told_as_one(tmp_path: Path, at: str) -> None:
    with zmq_port(is_encrypted=True, at=at.format(tmp_path)) as endpoint:
        assert greeting_at(endpoint, _LONG_SECONDS) is Greeting.CURVE
        with pytest.raises(ForeignServer, match="is not the pool whose public key we hold"):
            exchange(Door(endpoint, curve.generate().public, OWN), AskPool(0), _LONG_SECONDS)


def test_a_wrong_key_of_ones_own_is_still_told_as_one() -> None:
    with zmq_port(is_encrypted=True) as endpoint, pytest.raises(NotAuthorized, match="does not know our key") as told:
        exchange(Door(endpoint, SERVER.public, OWN), AskPool(0), _LONG_SECONDS)
    assert not isinstance(told.value, ForeignServer)
