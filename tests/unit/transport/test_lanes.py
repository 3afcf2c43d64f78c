"""Lanes: what is put into one side stands whole at the other, and who sends anything else loses them all."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from time import monotonic

import pytest

from gpu_backend.transport.lanes import TAKEN, Lanes, request, requested
from gpu_backend.transport.pieces import HEADER, PIECE_BYTES, FrameInPieces

COUNT = 2
LIE = os.urandom(1000)


class Wire:
    """One end of a stream that is not encrypted."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._connected = connected
        self.fileno, self.send, self.recv_into = connected.fileno, connected.send, connected.recv_into
        self.close = connected.close

    def shut(self) -> None:
        """Have nobody wait at it."""
        try:
            self._connected.shutdown(socket.SHUT_RDWR)
        except OSError:  # the other end is closed
            return


class Sides:
    """Two sides, of which the near one sends; ``lanes`` of them are open."""

    def __init__(self) -> None:
        self.far = Lanes(COUNT)
        self._wires: list[Wire] = []
        self.near = Lanes(COUNT, lambda is_sending: self._wires.pop())
        self.bare: list[socket.socket] = []

    def open(self) -> None:
        for is_sending in (True, False) * COUNT:
            near, far = socket.socketpair()
            self._wires.insert(0, Wire(near))
            self.far.add(Wire(far), not is_sending)
        self.near.want()

    def open_bare(self) -> socket.socket:
        """Return the other end of a lane by which the far side receives whatever is written."""
        near, far = socket.socketpair()
        self.bare.append(near)
        near.settimeout(90.0)
        self.far.add(Wire(far), False)
        assert near.recv(1) == TAKEN
        return near

    def close(self) -> None:
        self.near.close()
        self.far.close()
        for one in self.bare:
            one.close()


@pytest.fixture
def sides() -> Iterator[Sides]:
    made, before = Sides(), threading.active_count()
    yield made
    made.close()
    until = monotonic() + 90
    while threading.active_count() > before:
        assert monotonic() < until, "a lane's thread has not ended"


def wait_until(lanes: Lanes, is_so: Callable[[], bool]) -> None:
    """Wait until something ``is_so``, as told by the bell of ``lanes``."""
    until = monotonic() + 90
    while not is_so():
        assert monotonic() < until
        select.select([lanes], [], [], 0.05)
        lanes.clear()


def arrived(sides: Sides, frame: FrameInPieces) -> bytes:
    wait_until(sides.far, lambda: frame.is_whole)
    return bytes(frame.content)


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 23 * PIECE_BYTES - 1])
def test_frames_arrive_whole_whoever_is_first(sides: Sides, size: int) -> None:
    contents = [os.urandom(size) for _ in range(3)]
    announced = [sides.far.expect(size)]
    sides.open()
    for content in contents:
        sides.near.put(content)
    announced += [sides.far.expect(size) for _ in contents[1:]]
    assert [arrived(sides, frame) for frame in announced] == contents
    wait_until(sides.near, lambda: not sides.near.is_busy)
    assert not sides.far.is_busy
    assert sides.near.lost == sides.far.lost == ""


def test_what_waits_is_what_was_given_once_it_is_owned(sides: Sides) -> None:
    given = bytearray(b"\1" * (64 * PIECE_BYTES))
    sides.near.put(memoryview(given))
    assert sides.near.is_sending
    assert sides.near.is_full
    sides.near.own()
    given[:] = bytes(len(given))
    sides.open()
    assert arrived(sides, sides.far.expect(len(given))).count(1) == len(given)
    wait_until(sides.near, lambda: not sides.near.is_sending)


@pytest.mark.parametrize("header", [(0, 1), (0, 2 * PIECE_BYTES), (0, (1 << 64) - PIECE_BYTES), (1, 0)])
def test_a_piece_of_no_frame_loses_the_lanes_and_is_not_kept(sides: Sides, header: tuple[int, int]) -> None:
    frame = sides.far.expect(2 * PIECE_BYTES)
    assert sides.far.expect(0).is_whole
    liar = sides.open_bare()
    liar.sendall(HEADER.pack(*header) + LIE)
    wait_until(sides.far, lambda: bool(sides.far.lost))
    assert LIE not in bytes(frame.content)
    assert not sides.far.is_busy
    assert not sides.far.is_torn


def test_a_piece_that_comes_twice_loses_the_lanes(sides: Sides) -> None:
    frame = sides.far.expect(2 * PIECE_BYTES)
    first, second = sides.open_bare(), sides.open_bare()
    first.sendall(HEADER.pack(0, 0) + b"half of it" * 99)
    wait_until(sides.far, lambda: b"half of it" in bytes(frame.content))
    second.sendall(HEADER.pack(0, 0) + LIE)
    wait_until(sides.far, lambda: bool(sides.far.lost))
    assert "came before" in sides.far.lost
    assert LIE not in bytes(frame.content)


def test_nothing_is_read_of_a_frame_that_was_not_announced(sides: Sides) -> None:
    early = sides.open_bare()
    early.sendall(HEADER.pack(0, 0))
    early.setblocking(False)
    sent = 0
    try:
        while True:
            sent += early.send(bytes(PIECE_BYTES))
    except BlockingIOError:
        assert sent < 16 * PIECE_BYTES  # as much as the system holds
    early.settimeout(90.0)
    frame = sides.far.expect(PIECE_BYTES)
    early.sendall(bytes(max(0, PIECE_BYTES - sent)))
    assert arrived(sides, frame) == bytes(PIECE_BYTES)


def test_there_are_no_more_than_may_be(sides: Sides) -> None:
    sides.open()
    near, far = socket.socketpair()
    with near:
        sides.far.add(Wire(far), False)
        near.settimeout(90.0)
        assert near.recv(1) == b""


@pytest.mark.parametrize("kept", [0, 1, HEADER.size - 1, HEADER.size, HEADER.size + 1, HEADER.size + 999])
def test_a_lane_that_is_cut_at_any_byte_is_lost_with_what_it_carried(sides: Sides, kept: int) -> None:
    frame = sides.far.expect(1000)
    lane = sides.open_bare()
    lane.sendall((HEADER.pack(0, 0) + b"\1" * 1000)[:kept])
    lane.close()
    wait_until(sides.far, lambda: bool(sides.far.lost))
    assert "closed" in sides.far.lost
    assert not frame.is_whole


def test_who_sends_by_a_lane_that_is_cut_knows_that_something_is_torn(sides: Sides) -> None:
    sides.open()
    wait_until(sides.near, lambda: sides.near.can_send)
    sides.near.put(bytes(200 * PIECE_BYTES))  # never announced, so never read
    sides.far.close()
    wait_until(sides.near, lambda: bool(sides.near.lost))
    assert sides.near.is_torn
    assert not sides.near.can_send


def test_lanes_that_cannot_be_had_are_gone_without() -> None:
    asked = threading.Semaphore(0)

    def refuse(is_sending: bool) -> Wire:
        asked.release()
        raise ConnectionRefusedError

    lanes = Lanes(COUNT, refuse)
    lanes.want()
    lanes.want()
    for _ in range(2 * COUNT):
        assert asked.acquire(timeout=90)
    assert not asked.acquire(blocking=False)
    assert not lanes.can_send
    assert not lanes.lost
    lanes.close()
    lanes.close()


@pytest.mark.parametrize("is_sending", [False, True])
def test_who_asks_for_a_lane_sends_by_it_where_who_is_asked_receives(is_sending: bool) -> None:
    name = os.urandom(32)
    assert requested(request(name, is_sending)) == (name, not is_sending)
