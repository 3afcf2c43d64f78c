"""Attacks by way of lanes: who may open one, and what a peer that knows the secret can do to the other with them."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator
from time import monotonic

import pytest

from gpu_backend.transport import laned_messages, reaching
from gpu_backend.transport.framing import MAX_FRAME_BYTES, MAX_MESSAGE_BYTES
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.pieces import HEADER, PIECE_BYTES
from gpu_backend.transport.reaching import Expected, ProofFailed
from tests.unit.transport.ways import LANES, Ways, lanes_of, received

_BY_LANES = 1 << 62
LARGE = os.urandom(3 * PIECE_BYTES + 1)


@pytest.fixture
def ways() -> Iterator[Ways]:
    made = Ways("lanes")
    yield made
    made.close()


def name_of(ways: Ways) -> bytes:
    """Return by what the connection is known that has lanes."""
    (door,) = ways.entrance._doors.values()
    (name,) = door._lanes  # type: ignore[attr-defined]
    return bytes(name)


def outcome(ways: Ways, name: bytes, expected: Expected | None = None) -> object:
    """Return what comes of asking for a lane of the connection ``name``."""
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(reaching._reach_lane(ways.endpoint, expected or ways.expected, name, True))
        except (ProofFailed, ConnectionLost) as error:
            found.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive():
        assert not ways.entrance.admitted()
    return found[0]


def check(near: MessageSocket, far: MessageSocket) -> None:
    """Check that messages still pass both ways, large ones too."""
    for sender, receiver in ((near, far), (far, near)):
        assert sender.send([b"head", LARGE])
        assert received(receiver, sender) == [b"head", LARGE]


# --- who may open one -------------------------------------------------------------------------------------------------


def test_a_lane_takes_the_secret(ways: Ways) -> None:
    near, far = ways.pair()
    stranger = Expected(os.urandom(32), ways.expected.certificate)
    assert isinstance(outcome(ways, name_of(ways), stranger), ProofFailed)
    check(near, far)


@pytest.mark.parametrize("make_name", [lambda name: bytes(32), lambda name: os.urandom(32), lambda name: name[::-1]])
def test_a_lane_of_a_connection_that_is_not_there_is_turned_away(
    ways: Ways, make_name: Callable[[bytes], bytes]
) -> None:
    near, far = ways.pair()
    assert isinstance(outcome(ways, make_name(name_of(ways))), ConnectionLost)
    assert ways.entrance.is_empty
    check(near, far)


def test_a_lane_of_another_sessions_connection_is_turned_away(ways: Ways) -> None:
    ways.pair()
    other = Ways("lanes", secret=os.urandom(32))
    try:
        near, far = other.pair()
        assert isinstance(outcome(other, name_of(ways)), ConnectionLost)
        assert isinstance(outcome(other, name_of(other), ways.expected), ProofFailed)
        check(near, far)
    finally:
        other.close()


def test_there_are_no_more_lanes_than_may_be(ways: Ways) -> None:
    near, far = ways.pair()
    assert isinstance(outcome(ways, name_of(ways)), ConnectionLost)
    assert [len(streams) for streams in lanes_of(far)._streams.values()] == [LANES, LANES]
    check(near, far)


def test_a_connection_that_has_ended_takes_no_lane(ways: Ways) -> None:
    _, far = ways.pair()
    name = name_of(ways)
    far.close()
    assert isinstance(outcome(ways, name), ConnectionLost)


# --- what is said on the connection -----------------------------------------------------------------------------------


def announce(near: MessageSocket, *lengths: int) -> None:
    """Say that a message of frames of these ``lengths`` comes."""
    near._stream.send(struct.pack(f"<I{len(lengths)}Q", len(lengths), *lengths))


@pytest.mark.parametrize(
    "lengths",
    [
        (_BY_LANES | MAX_FRAME_BYTES + 1,),
        (_BY_LANES | _BY_LANES - 1,),
        (_BY_LANES | MAX_FRAME_BYTES,) * (MAX_MESSAGE_BYTES // MAX_FRAME_BYTES) + (1,),
    ],
)
def test_what_is_too_large_is_not_made_room_for(ways: Ways, lengths: tuple[int, ...]) -> None:
    near, far = ways.pair()
    announce(near, *lengths)
    with pytest.raises(ConnectionLost, match=r"a (frame|message) of"):
        received(far, near)


def test_where_there_are_no_lanes_nothing_comes_by_them() -> None:
    ways = Ways("tls")
    try:
        near, far = ways.pair()
        announce(near, _BY_LANES | PIECE_BYTES)
        with pytest.raises(ConnectionLost, match="none of"):
            received(far, near)
    finally:
        ways.close()


@pytest.mark.parametrize("behind", [[b"small"], [b"head", bytes(PIECE_BYTES)]])
def test_behind_a_frame_that_never_comes_only_so_much_is_read(ways: Ways, behind: list[bytes]) -> None:
    near, far = ways.pair()
    announce(near, _BY_LANES | MAX_FRAME_BYTES // 4)
    until, refused = monotonic() + 90, 0
    while refused < 1_000:
        assert monotonic() < until
        refused = 0 if near.send(behind) else refused + 1
        assert far.receive() is None
    assert far._laned is not None
    assert len(far._laned._waiting) <= laned_messages._MOST_WAITING
    assert far._laned._waiting_bytes <= laned_messages._MOST_WAITING_BYTES + PIECE_BYTES + 4
    assert not far.has_read_ahead
    assert not far.has_news(), "who waits would not sleep"
    near.close()
    with pytest.raises(ConnectionLost):
        received(far, far)


# --- what is said on a lane -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lie",
    [
        HEADER.pack(0, 1),
        HEADER.pack(0, 4 * PIECE_BYTES),
        HEADER.pack(0, (1 << 64) - 1),
        HEADER.pack(0, 0) + bytes(PIECE_BYTES) + HEADER.pack(0, 0),
    ],
)
def test_a_lie_on_a_lane_ends_the_connection_and_no_other(ways: Ways, lie: bytes) -> None:
    near, far = ways.pair()
    lane = next(iter(lanes_of(near)._streams[True]))
    announce(near, 6, _BY_LANES | 2 * PIECE_BYTES)
    near._stream.send(b"header")
    send_whole(lane, lie)
    with pytest.raises(ConnectionLost, match="lanes"):
        received(far, far)
    far.close()
    check(*ways.pair())


def test_a_lane_that_speaks_of_what_is_never_announced_ends_with_its_connection(ways: Ways) -> None:
    near, far = ways.pair()
    send_whole(next(iter(lanes_of(near)._streams[True])), b"\xff" * 500)
    assert near.send([b"head", b"small"])
    assert received(far, near) == [b"head", b"small"]
    near.close()
    with pytest.raises(ConnectionLost):
        received(far, far)
    far.close()
    assert lanes_of(far)._is_over


def send_whole(stream: reaching.Stream, data: bytes) -> None:
    until = monotonic() + 90
    while data:
        assert monotonic() < until
        try:
            data = data[stream.send(data) :]
        except BlockingIOError:
            continue
