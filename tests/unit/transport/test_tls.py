"""The encrypted way: what it notices of the other side, and what its makers give away."""

from __future__ import annotations

import ctypes
import select
import socket
import struct
from collections.abc import Iterator
from time import monotonic

import msgspec
import pytest

from gpu_backend.transport import tls
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.tls import TlsStream
from gpu_backend.wire.control import ExecutorReport, Ticket
from kernelproxy.session.links import Link

from .ways import SECRET, Ways, certificate, received

_SO_ATTACH_FILTER = 26


@pytest.fixture
def ways() -> Iterator[Ways]:
    made = Ways("tls")
    yield made
    made.close()


def stream_of(one: MessageSocket) -> TlsStream:
    assert isinstance(one._stream, TlsStream)
    return one._stream


def hear_nothing(stream: TlsStream) -> None:
    """Have the system drop whatever comes for ``stream``, as if the network were gone."""
    instruction = struct.pack("HBBI", 0x06, 0, 0, 0)  # return 0: keep no byte
    kept = ctypes.create_string_buffer(instruction)
    stream._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HxxxxxxP", 1, ctypes.addressof(kept)))


def test_a_network_that_is_gone_without_a_word_is_noticed(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "SILENCE_SECONDS", 0.3)
    monkeypatch.setattr("kernelproxy.session.links._LOOK_SECONDS", 0.05)
    near, far = ways.pair()
    link = Link(near, stream_of(near).is_silent)
    assert link.send([b"heard"])
    assert received(far, near) == [b"heard"]
    assert not link.is_cut
    hear_nothing(stream_of(far))
    assert link.send([b"unheard"])
    until = monotonic() + 90
    while not link.is_cut:
        assert link.receive(0.02) is None
        assert monotonic() < until


def test_an_executor_that_computes_and_reads_nothing_is_not_taken_for_gone(
    ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "SILENCE_SECONDS", 0.5)
    near, _ = ways.pair()
    while near.send([bytes(4 << 20)]):  # until its system takes no more
        near.push()
    until = monotonic() + 1.5
    while monotonic() < until:
        select.select([], [], [], 0.05)
        assert not stream_of(near).is_silent()


def test_bytes_that_were_altered_cut_the_connection(ways: Ways) -> None:
    near, far = ways.pair()
    stream_of(near)._socket.send(b"\x17\x03\x03\x00\x20" + bytes(32))
    with pytest.raises(ConnectionLost):
        received(far, near)


def test_what_holds_a_secret_does_not_show_it(ways: Ways) -> None:
    secret, made = SECRET.hex(), certificate()
    ticket = Ticket(0, "s", 1, (), secret, made.fingerprint, "d", "cpu", 0, 1.0)
    report = ExecutorReport("s", 1, 0, "k", (), secret, made.fingerprint, 0, 1.0, 0, 0, 0.0)
    for one in (ticket, report, ways.expected):
        assert secret not in repr(one)
        assert repr(SECRET) not in repr(one)
        assert made.fingerprint in repr(one)
    assert made.pem.decode() not in repr(made)
    assert msgspec.convert(msgspec.to_builtins(ticket), Ticket).secret == secret
