"""Channels between executors: how they come to be, and peers that do not as they should."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from gpu_backend.executor import channels as module
from gpu_backend.executor.channel import Channel
from gpu_backend.executor.channels import Awaits
from gpu_backend.node.certificate import make_certificate
from gpu_backend.transport import local, tls
from gpu_backend.transport.entrance import Entrance, LocalDoor
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.secret_proof import channel_secret
from gpu_backend.wire.channels import Meet, Met, NoPiece, Piece, TakeChannel
from gpu_backend.wire.codec import encode
from gpu_backend.wire.errors import NotCopied
from tests.unit.executor.channel_sides import NAME, OTHER, Side, has_come, met, sent, sides, until, ways
from tests.unit.transport.ways import Ways

__all__ = ["sides", "ways"]


@pytest.mark.parametrize(
    "said", [[Met()], [Piece(1)], [NoPiece(1, "")], [b"rubbish"], [Piece(1), b"x", b"y"]], ids=repr
)
def test_who_says_what_it_has_no_reason_to_is_cut_off(ways: Ways, sides: tuple[Side, Side], said: list[object]) -> None:
    near, far = ways.channel()
    a, _ = sides
    a.channels.admit(far)
    (channel,) = a.channels._unmet
    head, *buffers = said
    frames = [head] if isinstance(head, bytes) else encode(head, buffers)  # type: ignore[arg-type]
    near.send(frames)  # type: ignore[arg-type]
    until(lambda: bool(channel.lost), a)
    assert a.channels._all() == ()


def test_each_channel_is_its_own_and_nobody_takes_the_name_of_another(ways: Ways, sides: tuple[Side, Side]) -> None:
    a, b = sides
    met(ways, sides)
    met(ways, sides, OTHER)
    sent(a, 1, b"one")
    sent(a, 2, b"other", OTHER)
    until(lambda: b.channels._named[NAME].is_there(1) and b.channels._named[OTHER].is_there(2), a, b)
    near, far = ways.channel()
    a.channels.admit(far)
    near.send(encode(Meet(NAME)))
    (guest,) = a.channels._unmet
    until(lambda: bool(guest.lost), a)
    assert not a.channels._named[NAME].lost
    assert bytes(b.channels.taken(NAME, 1)) == b"one"


def test_so_many_come_and_no_more(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CHANNELS", 2)
    a, _ = sides
    pairs = [socket.socketpair() for _ in range(3)]
    for near, _ in pairs:
        near.setblocking(False)
        a.channels.admit(MessageSocket(near))
    assert [one.fileno() for one in a.channels._all()] == [near.fileno() for near, _ in pairs[1:]]
    for _, far in pairs:
        far.close()


# --- handed over by the agent -----------------------------------------------------------------------------------------


def test_a_connection_that_is_handed_over_is_proved_in_a_thread(sides: tuple[Side, Side]) -> None:
    a, b = sides
    ways = Ways("local")
    try:
        connected = local.connect(ways.endpoint, 90.0)
        order = TakeChannel(NAME, channel_secret(ways.expected.secret).hex(), ways.expected.certificate)
        b.channels.take(order, connected.detach())
        ways.is_for_channels = True
        a.channels.admit(ways.admit())
        until(lambda: has_come(lambda: b.channels.failure(NAME, True)), a, b)
        assert b.channels.failure(NAME, True) == ""
    finally:
        ways.close()


def test_why_there_is_none_is_told(sides: tuple[Side, Side]) -> None:
    _, b = sides
    with pytest.raises(Awaits) as lacking:
        b.channels.failure(NAME, True)
    b.channels.take(TakeChannel(NAME, failure="nobody listens"), None)
    assert lacking.value.has_come()
    assert b.channels.failure(NAME, True) == "nobody listens"
    assert not has_come(lambda: b.channels.failure(OTHER, True))
    assert b.channels.failure(OTHER, False)


def test_a_wrong_secret_is_told(sides: tuple[Side, Side]) -> None:
    _, b = sides
    listening, endpoint = local.listen("test")
    entrance = Entrance(os.urandom(32), (LocalDoor(listening, lambda: None),))
    try:
        connected = local.connect(endpoint, 90.0)
        b.channels.take(TakeChannel(NAME, os.urandom(32).hex(), make_certificate().fingerprint), connected.detach())
        while not has_come(lambda: b.channels.failure(NAME, True)):
            assert not entrance.admitted()
            b.step(0.001)
        assert b.channels.failure(NAME, True)
    finally:
        entrance.close()


def test_nobody_is_waited_for_for_ever(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COMING_SECONDS", 0.0)
    _, b = sides
    assert b.channels.failure(NAME, True) == "the other side was not heard in time"


def test_a_channel_that_was_lost_before_it_was_met_is_told(sides: tuple[Side, Side]) -> None:
    _, b = sides
    near, far = socket.socketpair()
    near.setblocking(False)
    b.channels._note_reached(module._Reached(NAME, MessageSocket(near)))
    with pytest.raises(Awaits) as lacking:
        b.channels.failure(NAME, True)
    far.close()
    until(lacking.value.has_come, b)
    assert b.channels.failure(NAME, True)


def test_what_is_no_socket_and_what_has_no_thread_ends_nobody(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, b = sides
    read, write = os.pipe()
    os.close(write)
    b.channels.take(TakeChannel(NAME, "5" * 64, "c" * 64), read)
    assert b.channels.failure(NAME, True)
    near, far = socket.socketpair()

    def start(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    b.channels.take(TakeChannel(OTHER, "5" * 64, "c" * 64), near.detach())
    assert b.channels.failure(OTHER, True) == "can't start new thread"
    assert far.recv(1) == b""
    far.close()


def test_a_host_that_does_not_answer_is_given_up(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    _, b = sides
    ways = Ways("tls")
    try:
        met(ways, sides)
        monkeypatch.setattr(tls, "is_silent", lambda connected: True)
        b.channels._tidy_at = 0.0
        b.step()
        assert b.channels._all() == ()
        with pytest.raises(NotCopied, match="its host does not answer"):
            b.channels.taken(NAME, 1)
    finally:
        ways.close()


def test_what_comes_when_nobody_waits_for_it_any_more_is_hung_up_on(ways: Ways, sides: tuple[Side, Side]) -> None:
    a, b = sides
    b.channels._fail(NAME, "the other side was not heard in time")
    near, far = ways.channel()
    a.channels.admit(far)
    b.channels._under_proof += 1
    b.channels._reached.put(module._Reached(NAME, near))
    until(lambda: NAME in a.channels._named and bool(a.channels._named[NAME].lost), a, b)
    assert b.channels._all() == ()


def test_no_descriptor_to_look_by_is_no_silence(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    ways = Ways("tls")
    try:
        met(ways, sides)
        _, b = sides

        def dup(descriptor: int) -> int:
            raise OSError(24, "Too many open files")

        monkeypatch.setattr(os, "dup", dup)
        b.channels._tidy()
        assert not b.channels._named[NAME].lost
    finally:
        ways.close()


def test_a_closed_channel_sends_nothing() -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    channel = Channel(MessageSocket(near), NAME)
    channel.lose("it ended")
    channel.lose("again")
    channel.hear()
    assert channel.lost == "it ended"
    far.close()
