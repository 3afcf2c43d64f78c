"""Channels between executors: how they come to be, what waits for what, and a peer that does not as it should."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from time import monotonic

import pytest

from gpu_backend.executor import channels as module
from gpu_backend.executor.channel import MOST_UNASKED, Channel
from gpu_backend.executor.channels import Awaits, Channels
from gpu_backend.node.certificate import make_certificate
from gpu_backend.transport import local, tls
from gpu_backend.transport.entrance import Entrance, LocalDoor
from gpu_backend.transport.framing import head
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.secret_proof import channel_secret
from gpu_backend.wire.channels import Meet, Met, NoPiece, Piece, TakeChannel
from gpu_backend.wire.codec import encode
from gpu_backend.wire.errors import NotCopied
from tests.unit.transport.ways import Ways

#: The name of the channel between both sides, and of another.
NAME, OTHER = "n" * 32, "o" * 32


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


def met(ways: Ways, sides: tuple[Side, Side], name: str = NAME) -> None:
    """Let the second side have reached the first."""
    near, far = ways.channel()
    a, b = sides
    a.channels.admit(far)
    b.channels._under_proof += 1
    b.channels._reached.put(module._Reached(name, near))
    until(lambda: has_come(lambda: b.channels.failure(name, True)) and name in a.channels._named, a, b)
    assert b.channels.failure(name, False) == ""


def sent(side: Side, number: int, content: bytes, name: str = NAME) -> None:
    channel = side.channels.to(name)
    assert channel is not None
    channel.send(Piece(number), content)


def test_pieces_pass_each_way_in_order(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    large = os.urandom(1 << 20)
    sent(a, 1, b"small")
    sent(b, 2, large)
    sent(a, 3, large[::-1])
    for side, number, content in ((a, 2, large), (b, 1, b"small"), (b, 3, large[::-1])):
        channel = side.channels._named[NAME]
        until(partial(channel.is_there, number), a, b)
        assert bytes(side.channels.taken(NAME, number)) == content


def test_what_has_not_come_is_waited_for_and_what_never_will_is_told(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    with pytest.raises(Awaits) as lacking:
        b.channels.taken(NAME, 7)
    assert not lacking.value.has_come()
    a.channels.give_up(NAME, 7, "it was cancelled")
    until(lacking.value.has_come, a, b)
    with pytest.raises(NotCopied, match="it was cancelled"):
        b.channels.taken(NAME, 7)
    with pytest.raises(NotCopied, match="too late"):
        b.channels.taken(NAME, 6)


def test_no_more_is_read_than_is_asked_for_and_no_more_made_than_is_taken(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    content, number = bytes(4 << 20), 0
    for _ in range(200):
        if not has_come(lambda: a.channels.to(NAME)):
            break
        number += 1
        sent(a, number, content)
        a.step()
        b.step()
    assert 4 <= number < 200, "the sender is never told to wait"
    assert len(b.channels._named[NAME]._arrived) <= MOST_UNASKED
    assert not b.channels.has_news(), "who cannot read does not stay awake for it"
    with pytest.raises(Awaits) as lacking:
        a.channels.to(NAME)
    # The notebook was interrupted, and asks for a later piece: nothing before it stands in the way.
    until(lambda: b.channels._named[NAME].is_there(number), a, b)
    assert len(b.channels.taken(NAME, number)) == len(content)
    assert lacking.value.has_come()


def test_a_lost_peer_is_told_to_who_waits_and_what_came_is_still_there(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    sent(a, 1, b"came")
    until(lambda: b.channels._named[NAME].is_there(1), a, b)
    with pytest.raises(Awaits) as lacking:
        b.channels.to(NAME) and b.channels.taken(NAME, 1) and b.channels.taken(NAME, 2)
    a.channels.close()
    until(lacking.value.has_come, b)
    with pytest.raises(NotCopied, match="Run the cell again"):
        b.channels.taken(NAME, 2)
    assert b.channels.to(NAME) is None
    assert "Run" not in b.channels.failure(NAME, False) != ""


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
    channel = a.channels._named[NAME]
    b.channels._named[NAME].connected.send(encode(Piece(1), [bytes(5 << 20)]))
    until(lambda: bool(channel.lost), a, b)
    assert "a message of" in channel.lost


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


def test_pieces_that_nobody_waits_for_any_more_leave_room(ways: Ways, sides: tuple[Side, Side]) -> None:
    """Their ops failed on the receiver, or were cancelled there, before they asked for anything."""
    met(ways, sides)
    a, b = sides
    for number in range(1, 41):
        until(lambda: has_come(lambda: a.channels.to(NAME)), a, b)
        sent(a, number, bytes(1 << 20))
        b.channels.pass_over(NAME, number)
    sent(a, 41, b"last")
    until(lambda: b.channels._named[NAME].is_there(41), a, b)
    assert bytes(b.channels.taken(NAME, 41)) == b"last"


def test_small_pieces_beyond_those_that_are_held_are_read_as_soon_as_there_is_room(
    ways: Ways, sides: tuple[Side, Side]
) -> None:
    met(ways, sides)
    a, b = sides
    for number in range(1, 9):
        sent(a, number, b"x" * 100)
    until(lambda: b.channels._named[NAME].is_full, a, b)
    for number in range(1, 9):
        assert has_come(partial(b.channels.taken, NAME, number)) or number > MOST_UNASKED
        until(partial(b.channels._named[NAME].is_there, number + 1) if number < 8 else lambda: True, a, b)


def test_a_full_channel_whose_peer_is_gone_keeps_nobody_awake(sides: tuple[Side, Side]) -> None:
    ways = Ways("socket")
    try:
        met(ways, sides)
        a, b = sides
        for number in range(1, 6):
            sent(a, number, b"x")
        until(lambda: b.channels._named[NAME].is_full, a, b)
        a.channels.close()
        b.step()
        b.channels.push()
        assert b.channels.doze()
        assert b.poll.poll(0.05) == []
    finally:
        ways.close()


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


def test_half_a_message_is_no_news(ways: Ways, sides: tuple[Side, Side]) -> None:
    """Else who waits for the rest of it would not sleep."""
    met(ways, sides)
    a, b = sides
    there = b.channels._named[NAME]
    message = encode(Piece(1), [bytes(1 << 20)])
    stream = a.channels._named[NAME].connected._stream
    part = head(message, [None, None]) + bytes(message[0]) + bytes(1000)
    assert stream.send(part) == len(part)
    until(lambda: there.connected.has_read_ahead, b)
    until(lambda: not there.connected.has_news(), b)
    assert not b.channels.has_news()
    assert b.channels.doze()


def test_what_was_never_sent_is_told_once_a_later_piece_is_there(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    with pytest.raises(Awaits) as lacking:
        b.channels.taken(NAME, 1)
    sent(a, 2, b"later")
    until(lacking.value.has_come, a, b)
    with pytest.raises(NotCopied, match="never sent"):
        b.channels.taken(NAME, 1)
    assert bytes(b.channels.taken(NAME, 2)) == b"later"


def test_a_full_channel_that_has_something_to_send_is_woken_for_room(sides: tuple[Side, Side]) -> None:
    ways = Ways("tls")
    try:
        met(ways, sides)
        a, b = sides
        for number in range(1, 6):
            sent(a, number, b"x")
        until(lambda: b.channels._named[NAME].is_full, a, b)
        for number in range(101, 104):
            sent(b, number, bytes(4 << 20))
        b.channels.push()
        assert b.channels._named[NAME].is_watched
        until(lambda: not b.channels._named[NAME]._unsent, a, b)
    finally:
        ways.close()


def test_a_lost_channel_goes_when_what_it_brought_is_taken(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    sent(a, 1, b"last")
    until(lambda: b.channels._named[NAME].is_there(1), a, b)
    b.channels._named[NAME].lose("a cable was pulled")
    b.channels._tidy()
    assert bytes(b.channels.taken(NAME, 1)) == b"last"
    b.channels._tidy()
    assert NAME not in b.channels._named
    with pytest.raises(NotCopied, match="a cable was pulled"):
        b.channels.taken(NAME, 2)


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
