"""Rings in shared memory: bytes arrive as they were sent, whatever a peer does to the memory, and whenever it ends."""

from __future__ import annotations

import mmap
import random
import socket
import struct
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.transport import ring
from gpu_backend.transport.framing import MessageReader, single
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.ring import RING_BYTES, RINGS_BYTES, RingStream, naps

from .ways import Ways, received

pytestmark = pytest.mark.skipif(not ring.has_rings(), reason="no rings on this processor")


class Ends:
    """Both ends of a connection by rings, and its memory."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, RINGS_BYTES)
        bells = socket.socketpair()
        for bell in bells:
            bell.setblocking(False)
        self.near, self.far = (RingStream(bell, self.memory, 0, not n) for n, bell in enumerate(bells))

    def close(self) -> None:
        self.near.close()
        self.far.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.close()


def taken(stream: RingStream, most: int = 1 << 30) -> bytes:
    """Return what there is to be read, in pieces of at most so much."""
    found, piece = bytearray(), memoryview(bytearray(min(most, RING_BYTES)))
    try:
        while size := stream.recv_into(piece):
            found += piece[:size]
    except BlockingIOError:
        pass
    return bytes(found)


@given(st.lists(st.tuples(st.integers(0, 700_000), st.integers(1, 700_000)), max_size=12), st.booleans())
def test_bytes_arrive_in_order_around_the_ring(steps: list[tuple[int, int]], is_back: bool) -> None:
    ends = Ends()
    sender, receiver = (ends.far, ends.near) if is_back else (ends.near, ends.far)
    chance, sent, read = random.Random(1), bytearray(), bytearray()
    for size, most in steps:
        data = memoryview(chance.randbytes(size))
        while data:
            try:
                put = sender.send(data)
            except BlockingIOError:
                read += taken(receiver, most)
                continue
            sent += data[:put]
            data = data[put:]
    read += taken(receiver)
    ends.close()
    assert read == sent


def test_a_full_ring_takes_no_more_until_something_is_read(ends: Ends) -> None:
    assert ends.near.send(bytes(RING_BYTES + 10)) == RING_BYTES
    with pytest.raises(BlockingIOError):
        ends.near.send(b"more")
    assert ends.far.recv_into(memoryview(bytearray(3))) == 3
    assert ends.near.send(b"more") == 3


def is_rung(stream: RingStream) -> bool:
    try:
        return bool(stream._bell.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def test_a_sleeper_is_rung_for_once_and_who_is_awake_never(ends: Ends) -> None:
    ends.near.send(b"one")
    assert not is_rung(ends.far)
    assert not ends.far.doze()  # there is something
    taken(ends.far)
    ends.far.wake(False)
    assert ends.far.doze()
    ends.near.send(b"two")
    ends.near.send(b"three")
    assert ends.far._bell.recv(10) == b"\0"
    ends.far.wake(True)
    assert taken(ends.far) == b"twothree"
    ends.near.send(b"four")
    assert not is_rung(ends.far)
    assert ends.far.has_news()


def test_a_bell_that_nobody_hears_keeps_nobody(ends: Ends) -> None:
    try:
        while True:
            ends.near._bell.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    for _ in range(100):
        ends.far.doze()
        assert ends.near.send(b"x") == 1
    ends.far.wake(True)
    while is_rung(ends.far):
        ends.far.wake(True)
        taken(ends.far)


def test_what_the_first_look_missed_is_seen_before_the_long_sleep() -> None:
    assert naps(0.5e-3) == (0.5e-3,)
    first, rest = naps(2.0)
    assert first <= 1e-3
    assert first + rest == 2.0


# --- ends -------------------------------------------------------------------------------------------------------------


def test_what_was_put_in_before_the_end_is_read_at_every_byte(ends: Ends) -> None:
    """Whole messages arrive, and of one that is cut nothing."""
    messages = [b"one", b"two" * 50, b"three"]
    stream = b"".join(single(message) for message in messages)
    ends_of = [sum(len(single(one)) for one in messages[:n]) for n in range(1, 4)]
    for cut in range(len(stream) + 1):
        one = Ends()
        if cut:
            one.near.send(stream[:cut])
        one.near.close()
        found = all_received(MessageReader(one.far))
        assert found == messages[: sum(end <= cut for end in ends_of)]
        one.close()


def all_received(reader: MessageReader) -> list[bytes]:
    """Return the messages until the connection is lost, each of one frame."""
    found: list[bytes] = []
    try:
        while True:
            found += [bytes(frame) for frame in reader.receive() or []]
    except ConnectionLost:
        return found


def test_the_end_of_the_peer_is_told_to_who_rings(ends: Ends) -> None:
    ends.far.doze()
    ends.far.close()
    with pytest.raises(OSError, match=r"."):
        ends.near.send(b"anybody?")


# --- lies -------------------------------------------------------------------------------------------------------------

Word = tuple[int, int]
words = st.tuples(st.integers(0, 511), st.one_of(st.integers(0, (1 << 64) - 1), st.integers(0, 2 * RING_BYTES)))
acts = st.one_of(words, st.sampled_from(["send", "receive", "doze", "wake", "bell"]), st.binary(max_size=40))


@given(st.lists(acts, max_size=40))
def test_whatever_a_peer_writes_costs_its_own_connection_at_most(story: list[Word | str | bytes]) -> None:
    """Nothing but the losses that a link knows comes of it; what is read was never longer than asked for."""
    ends = Ends()
    all_words = memoryview(ends.memory)[: mmap.PAGESIZE].cast("Q")
    piece = memoryview(bytearray(1000))
    for act in story:
        try:
            if isinstance(act, tuple):
                all_words[act[0]] = act[1]
            elif isinstance(act, bytes):
                ends.memory[mmap.PAGESIZE : mmap.PAGESIZE + len(act)] = act
                ends.far._bell.send(act)
            elif act == "send":
                assert 0 < ends.near.send(b"abc") <= 3
            elif act == "receive":
                assert 0 <= ends.near.recv_into(piece) <= 1000
            elif act == "doze":
                ends.near.doze()
            elif act == "wake":
                ends.near.wake(True)
            else:
                ends.far._bell.send(b"\0")
        except (BlockingIOError, ConnectionError):
            continue
    all_words.release()
    ends.close()


@pytest.mark.parametrize("claim", [RING_BYTES + 1, 1 << 40, (1 << 64) - 1])
@pytest.mark.parametrize("place", [ring._PUT, ring._TAKEN])
@pytest.mark.parametrize("is_maker", [True, False])
def test_a_claim_that_cannot_be_is_refused(ends: Ends, claim: int, place: int, is_maker: bool) -> None:
    mine = ends.near if is_maker else ends.far
    where = (mine._into_words if place == ring._PUT else mine._out_words) + place
    mine._words[where] = claim
    act: Callable[[], object] = (
        (lambda: mine.recv_into(memoryview(bytearray(10)))) if place == ring._PUT else (lambda: mine.send(b"x"))
    )
    with pytest.raises(ConnectionAbortedError):
        act()


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=8))
def test_rubbish_in_a_ring_is_read_as_rubbish_in_a_socket(rubbish: list[bytes]) -> None:
    ends = Ends()
    reader = MessageReader(ends.far)
    near, far = socket.socketpair()
    far.setblocking(False)
    by_socket = MessageReader(far)
    for piece in rubbish:
        ends.near.send(piece)
        near.send(piece)
        assert outcome(reader) == outcome(by_socket)
    near.close()
    far.close()
    ends.close()


def outcome(reader: MessageReader) -> object:
    try:
        return reader.receive()
    except ConnectionLost as error:
        return str(error)


def test_what_was_read_does_not_change_any_more() -> None:
    """A message is copied before it is looked at."""
    ways = Ways("local")
    near, far = ways.pair()
    assert near.send([b"head", b"body"])
    message = received(far, near)
    stream = near._stream
    assert isinstance(stream, RingStream)
    stream._out[:100] = b"x" * 100
    assert [bytes(frame) for frame in message] == [b"head", b"body"]
    ways.close()


def test_who_promises_much_in_a_ring_is_cut_off() -> None:
    ways = Ways("local")
    near, far = ways.pair()
    assert isinstance(near._stream, RingStream)
    near._stream.send(struct.pack("<IQ", 1, 1 << 40))
    with pytest.raises(ConnectionLost):
        received(far, far)
    ways.close()
