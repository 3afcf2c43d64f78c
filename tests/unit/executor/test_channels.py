"""Channels between executors: how they come to be, what waits for what, and a peer that does not as it should."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator
from functools import partial
from time import monotonic

import pytest

from gpu_backend.executor import channels as module
from gpu_backend.executor.channels import Awaits, Channel, Channels
from gpu_backend.node.certificate import make_certificate
from gpu_backend.transport import local
from gpu_backend.transport.entrance import Entrance, LocalDoor
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.secret_proof import channel_secret
from gpu_backend.wire.channels import Met, NoPiece, Piece, TakeChannel
from gpu_backend.wire.codec import encode
from gpu_backend.wire.errors import NotCopied
from tests.unit.transport.ways import Ways

A, B = "a.1", "b.1"


class Side:
    """One executor's channels, and how it waits."""

    def __init__(self) -> None:
        self.poll = select.epoll()
        self.channels = Channels(self.poll)

    def step(self, seconds: float = 0.0) -> None:
        self.channels.push()
        if seconds:
            self.channels.doze()
        self.channels.look({descriptor for descriptor, _ in self.poll.poll(seconds)})


@pytest.fixture
def sides() -> Iterator[tuple[Side, Side]]:
    made = Side(), Side()
    yield made
    for one in made:
        one.channels.close()
        one.poll.close()


@pytest.fixture(params=["local", "socket", "tls"])
def ways(request: pytest.FixtureRequest) -> Iterator[Ways]:
    made = Ways(request.param)
    yield made
    made.close()


def until(done: Callable[[], bool], *sides: Side) -> None:
    """Step ``sides`` until something is so."""
    end = monotonic() + 90
    while not done():
        assert monotonic() < end
        for one in sides:
            one.step(0.001)


def has_come(lacking: Callable[[], object]) -> bool:
    try:
        lacking()
    except Awaits:
        return False
    return True


def met(ways: Ways, sides: tuple[Side, Side]) -> None:
    """Let the second side have reached the first."""
    near, far = ways.channel()
    a, b = sides
    a.channels.admit(far)
    b.channels._reached.put(module._Reached(TakeChannel(B, A), near))
    b.channels.is_used = True
    b.channels._bell = os.eventfd(1)
    b.poll.register(b.channels._bell, select.EPOLLIN)
    until(lambda: has_come(lambda: b.channels.failure(A)) and B in a.channels._named, a, b)
    assert b.channels.failure(A) == ""


def sent(side: Side, peer: str, number: int, content: bytes) -> None:
    channel = side.channels.to(peer)
    assert channel is not None
    channel.send(Piece(number), content)


def test_pieces_pass_each_way_in_order(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    large = os.urandom(1 << 20)
    sent(a, B, 1, b"small")
    sent(b, A, 2, large)
    sent(a, B, 3, large[::-1])
    for side, peer, number, content in ((a, B, 2, large), (b, A, 1, b"small"), (b, A, 3, large[::-1])):
        channel = side.channels._named[peer]
        until(partial(channel.is_there, number), a, b)
        assert bytes(side.channels.taken(peer, number)) == content


def test_what_has_not_come_is_waited_for_and_what_never_will_is_told(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    with pytest.raises(Awaits) as lacking:
        b.channels.taken(A, 7)
    assert not lacking.value.has_come()
    a.channels.give_up(B, 7, "it was cancelled")
    until(lacking.value.has_come, a, b)
    with pytest.raises(NotCopied, match="it was cancelled"):
        b.channels.taken(A, 7)
    with pytest.raises(NotCopied, match="too late"):
        b.channels.taken(A, 6)


def test_no_more_is_read_than_is_asked_for_and_no_more_made_than_is_taken(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    content, number = bytes(4 << 20), 0
    for _ in range(200):
        if not has_come(lambda: a.channels.to(B)):
            break
        number += 1
        sent(a, B, number, content)
        a.step()
        b.step()
    assert 4 <= number < 200, "the sender is never told to wait"
    assert len(b.channels._named[A]._arrived) <= module._MOST_UNASKED
    assert not b.channels.has_news(), "who cannot read does not stay awake for it"
    with pytest.raises(Awaits) as lacking:
        a.channels.to(B)
    # The notebook was interrupted, and asks for a later piece: nothing before it stands in the way.
    until(lambda: b.channels._named[A].is_there(number), a, b)
    assert len(b.channels.taken(A, number)) == len(content)
    assert lacking.value.has_come()


def test_a_lost_peer_is_told_to_who_waits_and_what_came_is_still_there(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    sent(a, B, 1, b"came")
    until(lambda: b.channels._named[A].is_there(1), a, b)
    with pytest.raises(Awaits) as lacking:
        b.channels.to(A) and b.channels.taken(A, 1) and b.channels.taken(A, 2)
    a.channels.close()
    until(lacking.value.has_come, b)
    with pytest.raises(NotCopied, match="Run the cell again"):
        b.channels.taken(A, 2)
    assert b.channels.to(A) is None
    assert not has_come(lambda: b.channels.failure(A)), "another may have been asked for since"


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


def test_a_message_larger_than_a_piece_cuts_it_off(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    channel = a.channels._named[B]
    b.channels._named[A].connected.send(encode(Piece(1), [bytes(5 << 20)]))
    until(lambda: bool(channel.lost), a, b)
    assert "a message of" in channel.lost


def test_a_new_channel_takes_the_place_of_the_one_before(ways: Ways, sides: tuple[Side, Side]) -> None:
    a, b = sides
    met(ways, sides)
    first = a.channels._named[B]
    met(ways, sides)
    until(lambda: bool(first.lost), a, b)
    sent(a, B, 1, b"new")
    until(lambda: b.channels._named[A].is_there(1), a, b)


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
        order = TakeChannel(B, A, channel_secret(ways.expected.secret).hex(), ways.expected.certificate)
        b.channels.take(order, connected.detach())
        ways.is_for_channels = True
        a.channels.admit(ways.admit())
        until(lambda: has_come(lambda: b.channels.failure(A)), a, b)
        assert b.channels.failure(A) == ""
    finally:
        ways.close()


def test_why_there_is_none_is_told_once(sides: tuple[Side, Side]) -> None:
    _, b = sides
    with pytest.raises(Awaits) as lacking:
        b.channels.failure(A)
    b.channels.take(TakeChannel(B, A, failure="nobody listens"), None)
    assert lacking.value.has_come()
    assert b.channels.failure(A) == "nobody listens"
    assert not has_come(lambda: b.channels.failure(A))


def test_a_wrong_secret_is_told(sides: tuple[Side, Side]) -> None:
    _, b = sides
    listening, endpoint = local.listen("test")
    entrance = Entrance(os.urandom(32), (LocalDoor(listening, lambda: None),))
    try:
        connected = local.connect(endpoint, 90.0)
        b.channels.take(TakeChannel(B, A, os.urandom(32).hex(), make_certificate().fingerprint), connected.detach())
        while not has_come(lambda: b.channels.failure(A)):
            assert not entrance.admitted()
            b.step(0.001)
        b.channels.take(TakeChannel(B, A, failure="another"), None)
        assert b.channels.failure(A) == "another"
    finally:
        entrance.close()


def test_nobody_is_waited_for_for_ever(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COMING_SECONDS", 0.0)
    _, b = sides
    assert b.channels.failure(A) == "the other side was not heard in time"


def test_a_channel_that_was_lost_before_it_was_met_is_told(sides: tuple[Side, Side]) -> None:
    _, b = sides
    near, far = socket.socketpair()
    near.setblocking(False)
    b.channels._note_reached(module._Reached(TakeChannel(B, A), MessageSocket(near)))
    with pytest.raises(Awaits) as lacking:
        b.channels.failure(A)
    far.close()
    until(lacking.value.has_come, b)
    assert b.channels.failure(A)


def test_a_closed_channel_sends_nothing() -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    channel = Channel(MessageSocket(near), A)
    channel.lose("it ended")
    channel.lose("again")
    channel.hear()
    assert channel.lost == "it ended"
    far.close()
