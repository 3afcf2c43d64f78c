"""Memory that notebooks share: there before they come, known to the device as it can be, and given to one of them."""

from __future__ import annotations

import mmap
import socket
from collections.abc import Iterator

import pytest

from gpu_backend.executor.rooms import Rooms
from gpu_backend.transport import joining
from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.joining import Room
from gpu_backend.transport.shared_frames import BLOCK_BYTES, BLOCKS


class Driver:
    """Knows memory by its addresses, as long as it is mapped."""

    def __init__(self) -> None:
        self.known: list[int] = []
        self.takes_any = True

    def pin(self, memory: Bytes) -> Known | None:
        if not self.takes_any:
            return None
        address = memory.ctypes.data
        assert address % mmap.PAGESIZE == 0
        assert len(memory) == BLOCK_BYTES
        assert address not in self.known
        memory[:: mmap.PAGESIZE] = 0  # as a driver does, which pins its pages
        self.known.append(address)
        return Known(self, memory)


class Known:
    def __init__(self, driver: Driver, memory: Bytes) -> None:
        self._driver, self._address = driver, memory.ctypes.data

    def release(self) -> None:
        self._driver.known.remove(self._address)


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def rooms(driver: Driver) -> Iterator[Rooms]:
    made = Rooms(driver.pin)
    yield made
    while made.prepare():
        pass


def given(room: Room | None) -> Room:
    """Return ``room`` as it is after it was offered."""
    assert room is not None
    near, far = socket.socketpair()
    joining.offer(near, room)
    near.close()
    far.close()
    return room


def test_all_blocks_are_known_before_anybody_comes(rooms: Rooms, driver: Driver) -> None:
    steps = 0
    while rooms.prepare():
        steps += 1
        assert len(driver.known) == steps
    assert len(set(driver.known)) == 2 * BLOCKS
    room = given(rooms.take())
    lent = room.frames.lend(BLOCK_BYTES)
    assert lent is not None
    assert lent.ctypes.data in driver.known
    assert not rooms.prepare()


def test_what_was_not_ready_when_a_notebook_came_becomes_so(rooms: Rooms, driver: Driver) -> None:
    rooms.prepare()
    given(rooms.take())
    while rooms.prepare():
        pass
    assert len(driver.known) == 2 * BLOCKS


def test_each_connection_has_memory_of_its_own_and_the_newest_is_known(rooms: Rooms, driver: Driver) -> None:
    first = given(rooms.take())
    while rooms.prepare():
        pass
    lent = first.frames.lend(5)
    assert lent is not None
    second = given(rooms.take())
    assert not driver.known  # before it could be unmapped
    lent[:] = 1
    while rooms.prepare():
        pass
    assert len(driver.known) == 2 * BLOCKS
    assert lent.ctypes.data not in driver.known
    assert second.memory is not first.memory


def test_a_device_that_wants_to_know_none_is_asked_once(rooms: Rooms, driver: Driver) -> None:
    driver.takes_any = False
    assert not rooms.prepare()
    driver.takes_any = True
    assert not rooms.prepare()
    assert not driver.known


def test_without_memory_to_share_there_is_no_room(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "make", lambda: (_ for _ in ()).throw(OSError("none left")))
    rooms = Rooms(driver.pin)
    assert not rooms.prepare()
    assert rooms.take() is None
