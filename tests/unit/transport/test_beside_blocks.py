"""A message of one frame and another in a block: it passes the ring whole, as `framing` has it, whoever speaks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gpu_backend.transport.framing import head, place_of
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.ring import RingStream
from gpu_backend.transport.shared_frames import BLOCK_BYTES, BLOCKS

from .ways import Ways, received

SIZE = 100_000
Sides = tuple[MessageSocket, MessageSocket]


@pytest.fixture
def sides() -> Iterator[Sides]:
    ways = Ways("local")
    yield ways.pair()
    ways.close()


def filled(side: MessageSocket, value: int) -> memoryview:
    """Return a frame that lies in a block of ``side``."""
    lent = side.lend(SIZE)
    assert lent is not None
    lent[:] = value
    return lent.data


def ring(side: MessageSocket) -> RingStream:
    assert side._ring is not None
    return side._ring


@pytest.mark.parametrize("is_back", [False, True])
def test_it_is_taken_whole_and_seen_where_it_lies(sides: Sides, is_back: bool) -> None:
    near, far = sides[::-1] if is_back else sides
    frame = filled(near, 5)
    assert near.send([b"head", frame])
    message = far.take_whole()
    assert message is not None
    assert message[0] == b"head"
    assert len(message[1]) == SIZE
    np.frombuffer(frame, np.uint8)[7] = 6
    assert message[1][7] == 6


def test_what_is_large_and_lies_elsewhere_is_put_into_a_block(sides: Sides) -> None:
    near, far = sides
    placed = near.place([b"head", bytes(SIZE)])
    assert placed is not None
    assert near.send(placed)
    message = far.take_whole()
    assert message is not None
    assert bytes(message[1]) == bytes(SIZE)


@pytest.mark.parametrize(
    "frames", [[b"", bytes(SIZE)], [b"head", b"small"], [b"head", bytes(SIZE), bytes(SIZE)], [bytes(SIZE), b"", b"x"]]
)
def test_all_others_are_left_to_who_reads_frame_by_frame(sides: Sides, frames: list[bytes]) -> None:
    near, far = sides
    assert near.send(frames)
    assert far.take_whole() is None
    assert list(map(bytes, received(far, near))) == frames


def test_one_that_finds_no_room_in_the_ring_goes_on_when_there_is(sides: Sides) -> None:
    near, far = sides
    words, frame = [b"a" * 400_000] * 3, filled(near, 5)
    for one in words:
        assert near.send([one])  # the last in part
    assert not near.send([b"head", frame])  # nothing of it
    assert [bytes(one) for _ in words for one in received(far, near)] == words
    assert near.send([b"head", frame])
    assert list(map(bytes, received(far, near))) == [b"head", bytes(frame)]


def test_a_block_of_which_the_peer_was_not_told_is_free_again(sides: Sides) -> None:
    near, _ = sides
    shared = near._reader.shared
    assert shared is not None
    while near._put_whole(b"a" * 50_000):
        pass
    frame = filled(near, 5)
    assert not near._put_beside_block(b"h" * 200_000, frame)
    del frame
    lent = [shared.lend(SIZE) for _ in range(BLOCKS)]
    assert all(one is not None for one in lent)


def test_either_way_of_reading_understands_either_way_of_writing(sides: Sides) -> None:
    near, far = sides
    frame, stream = filled(near, 5), ring(near)
    shared = near._reader.shared
    assert shared is not None
    block = shared.put(frame)
    assert block is not None
    stream.send(head([b"head", frame], [None, block]) + b"head")
    by_ring = far.take_whole()
    assert by_ring is not None
    assert list(map(bytes, by_ring)) == [b"head", bytes(frame)]
    assert near.send([b"head", frame])
    frame_by_frame = far.receive()
    assert frame_by_frame is not None
    assert list(map(bytes, frame_by_frame)) == [b"head", bytes(frame)]


@pytest.mark.parametrize(
    ("block", "length"), [(0, SIZE), (BLOCKS, SIZE), (1 << 20, SIZE), (1, 0), (1, BLOCK_BYTES + 1), (1, (1 << 40) - 1)]
)
def test_who_speaks_of_a_block_that_was_not_given_is_cut_off(sides: Sides, block: int, length: int) -> None:
    near, far = sides
    shared = near._reader.shared
    assert shared is not None
    shared._memory[shared._outgoing + 1] = 1  # the one that was
    assert ring(near).put_whole(b"head", place_of(block, length) or 1)
    with pytest.raises(ConnectionLost):
        far.take_whole()


def test_who_speaks_of_blocks_where_no_memory_is_shared_is_cut_off(sides: Sides) -> None:
    near, far = sides
    far._reader.shared = None
    assert ring(near).put_whole(b"head", place_of(0, SIZE))
    with pytest.raises(ConnectionLost, match="never shared"):
        far.take_whole()
