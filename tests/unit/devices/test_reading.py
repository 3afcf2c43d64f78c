"""Small contents are read by a kernel, or it is said that a copy has to bring them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.devices.noting_driver import READS, Driver, table

_ROOM = 4096


class Scene:
    """A launcher that reads, what it reads from, and where that is put."""

    def __init__(self) -> None:
        self.driver = Driver()
        self.contents = np.arange(_ROOM, dtype=np.uint8)
        self.stage = np.zeros(_ROOM + 8, np.uint8)
        at = self.stage.ctypes.data
        self.reader = self.driver.launcher.reader(READS, at, at + _ROOM)

    def read(self, first: int, size: int) -> bytes | None:
        """Return what was read; None if it was said that it is not there."""
        self.stage[:_ROOM] = 0
        return self.reader(self.contents.ctypes.data + first, size)

    @property
    def reads(self) -> list[tuple[int, ...]]:
        """How the kernel was launched."""
        return [how for function, how, _ in self.driver.launched if function == READS]


@pytest.fixture
def scene() -> Scene:
    """Return a scene in which nothing was read."""
    return Scene()


@pytest.mark.parametrize("size", [1, 8, 24, 256, 257, 4096])
def test_contents_are_read_by_one_block(scene: Scene, size: int) -> None:
    first = _ROOM - size
    for number in range(40):  # a kernel that comes often is launched as a graph
        scene.contents[:] = np.arange(_ROOM) + number
        assert scene.read(first, size) == scene.contents[first:].tobytes()
    threads = 32 if size <= 256 else 128
    assert scene.reads == [(1, 1, 1, threads, 1, 1, 0)] * 40
    assert scene.driver.graphs.launched_alone > 0


def test_what_was_launched_before_is_with_the_driver_first(scene: Scene) -> None:
    content, driver = bytearray(16), scene.driver
    launch = driver.kernel(content)
    driver.launcher.begin()
    for number in range(30):
        content[8:16] = number.to_bytes(8, "little")
        launch()
    assert scene.read(0, 8) is not None
    assert [function for function, _, _ in driver.launched] == [1] * 30 + [READS]


def test_a_number_that_is_there_already_is_not_taken_for_this_reads() -> None:
    scene = Scene()
    assert scene.read(0, 8) is not None
    scene.driver.reads_nothing = True
    assert scene.read(0, 8) is None


def test_who_reads_anew_does_not_take_the_last_number_for_its_own(scene: Scene) -> None:
    assert scene.read(0, 8) is not None
    at = scene.stage.ctypes.data
    scene.driver.reads_nothing = True
    assert scene.driver.launcher.reader(READS, at, at + _ROOM)(scene.contents.ctypes.data, 8) is None


def test_others_who_want_the_device_are_passed_by_a_copy(scene: Scene) -> None:
    scene.driver.launcher.may_leave = False
    assert scene.read(0, 8) is None
    assert not scene.reads
    scene.driver.launcher.may_leave = True
    assert scene.read(0, 8) is not None


def test_what_the_driver_refuses_a_copy_tells_of(scene: Scene) -> None:
    scene.driver.refuses = READS
    assert scene.read(0, 8) is None
    scene.driver.refuses = 0
    assert scene.read(0, 8) == bytes(range(8))


def test_behind_what_was_refused_nothing_is_read(scene: Scene) -> None:
    driver = scene.driver
    launch = driver.launcher.tables(((5, 200),), 100, 256, 2, 4096)
    with driver.held():
        driver.refuses = 5
        launch(table([1]), 1, 1)
    assert scene.read(0, 8) is None
    assert not scene.reads


def test_what_has_no_room_is_left_to_a_copy(scene: Scene) -> None:
    assert scene.read(0, _ROOM + 1) is None
    assert not scene.reads


def test_it_takes_an_address_and_a_size(scene: Scene) -> None:
    for given in ((), (1,), (1, 2, 3), ("1", 2), (-1, 2)):
        with pytest.raises((TypeError, OverflowError)):
            scene.reader(*given)  # type: ignore[arg-type]


def test_it_holds_its_launcher() -> None:
    scene = Scene()
    reader, scene.driver.launcher = scene.reader, None  # type: ignore[assignment]
    assert reader(scene.contents.ctypes.data, 8) == bytes(range(8))
