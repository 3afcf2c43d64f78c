"""What passes by channels between executors: what waits for what, and wakes whom."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from gpu_backend.executor import channels as module
from gpu_backend.executor.channel import MOST_UNASKED, Channel
from gpu_backend.executor.channels import Awaits, Channels
from gpu_backend.transport.framing import head
from gpu_backend.wire.channels import Piece
from gpu_backend.wire.codec import encode
from gpu_backend.wire.errors import NotCopied
from tests.unit.executor.channel_sides import NAME, Side, has_come, met, sent, sides, until, ways
from tests.unit.transport.ways import Ways

__all__ = ["sides", "ways"]


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


def test_a_message_larger_than_a_piece_cuts_it_off(ways: Ways, sides: tuple[Side, Side]) -> None:
    met(ways, sides)
    a, b = sides
    channel = a.channels._named[NAME]
    b.channels._named[NAME].connected.send(encode(Piece(1), [bytes(5 << 20)]))
    until(lambda: bool(channel.lost), a, b)
    assert "a message of" in channel.lost


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


def fill(a: Side, b: Side) -> None:
    """Send more than is read unasked."""
    for number in range(1, 6):
        sent(a, number, b"x")
    until(lambda: b.channels._named[NAME].is_full, a, b)


def test_a_full_channel_whose_peer_is_gone_keeps_nobody_awake(sides: tuple[Side, Side]) -> None:
    ways = Ways("socket")
    try:
        met(ways, sides)
        a, b = sides
        fill(a, b)
        a.channels.close()
        b.step()
        b.channels.push()
        assert b.channels.doze()
        assert b.poll.poll(0.05) == []
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
        fill(a, b)
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


def test_who_ends_waits_until_the_other_has_what_it_was_sent(
    ways: Ways, sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEAVE_SECONDS", 90.0)
    a, b = sides
    met(ways, sides)
    content, count = bytes(1 << 20), 0
    while count < MOST_UNASKED + 2 and has_come(lambda: a.channels.to(NAME)):
        count += 1
        sent(a, count, content)
    channel = b.channels._named[NAME]
    with in_a_thread(a.channels.close):
        for number in range(1, count + 1):
            until(partial(channel.is_there, number), b)
            assert bytes(b.channels.taken(NAME, number)) == content
        until(lambda: bool(channel.lost), b)
    assert channel.lost == "its executor has ended"
    assert count >= MOST_UNASKED


@contextmanager
def in_a_thread(done: Callable[[], object]) -> Iterator[None]:
    """Do something in a thread that has ended when the block has, or that keeps nobody where the block failed."""
    thread = threading.Thread(target=done, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(5)
    assert not thread.is_alive()


def test_who_ends_hears_that_the_other_hangs_up_whatever_nobody_has_taken(
    ways: Ways, sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it waits as long as it may for somebody who has gone."""
    monkeypatch.setattr(module, "_LEAVE_SECONDS", 90.0)
    a, b = sides
    met(ways, sides)
    for number in range(1, MOST_UNASKED + 3):
        sent(b, number, bytes(1000))
    until(lambda: a.channels._named[NAME].is_full, a, b)
    channel = b.channels._named[NAME]
    with in_a_thread(a.channels.close):
        until(lambda: bool(channel.lost), b)
    assert a.channels._named[NAME].lost


class Gone:
    """A connection that only ends."""

    def close(self) -> None: ...


def brought_by(count: int, length: int) -> Channels:
    """Return so many channels that are lost, and have brought a piece of so many bytes each."""
    channels = Channels()
    for number in range(count):
        channel = Channel(Gone(), f"{number}")  # type: ignore[arg-type]
        channel.is_met = True
        channel._note(Piece(1), [bytes(length)])
        channel.lose("its executor has ended")
        channels._named[channel.name] = channel
    return channels


def test_what_ranks_sent_before_they_ended_is_kept_however_many_they_are() -> None:
    channels = brought_by(15, 1000)
    channels._tidy()
    assert [len(channels.taken(f"{number}", 1)) for number in range(15)] == [1000] * 15
    channels._tidy()
    assert not channels._named


def test_what_lost_channels_have_brought_is_kept_up_to_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_LOST_BYTES", 2500)
    channels = brought_by(4, 1000)
    channels._tidy()
    assert list(channels._named) == ["2", "3"]
    with pytest.raises(NotCopied, match="its executor has ended"):
        channels.taken("1", 1)
