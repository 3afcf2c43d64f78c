"""The CPU device on a machine whose memory runs out: arrays are refused before the system ends the process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gpu_backend.devices.cpu.device import CpuDevice
from gpu_backend.devices.cpu.memory import LEDGER, Ledger, OutOfMemoryError
from gpu_backend.devices.cpu.room import Room

MIB = 1 << 20


class PlayedMachine:
    """A machine of 64 MiB, of which a part is used by others, and one by the arrays in a ledger of its own."""

    def __init__(self) -> None:
        self.others = 0
        self.touched = 0  #: of the memory that arrays were promised
        self.ledger = Ledger(Room(self._bytes, lambda: self.touched))

    def _bytes(self) -> tuple[int, int]:
        return 64 * MIB - self.others - self.touched, 64 * MIB

    def ones(self, nbytes: int) -> np.ndarray:
        """Return an array that is held and written to."""
        made = self.zeros(nbytes)
        self.touched += nbytes
        return made

    def zeros(self, nbytes: int) -> np.ndarray:
        """Return an array that is held, and whose memory nobody touched yet."""
        self.ledger.require(nbytes)
        made = np.zeros(nbytes, np.int8)
        self.ledger.hold(made)
        return made


def grow(kept: list[np.ndarray], make: Callable[[int], np.ndarray], nbytes: int) -> None:
    """Keep one array after the other, four times as much as the machine has at most."""
    for _ in range(256 * MIB // nbytes):
        kept.append(make(nbytes))


@pytest.mark.parametrize("nbytes", [4 * MIB, 4096], ids=["large", "small"])
def test_a_list_that_grows_ends_in_an_error_and_not_in_the_end_of_the_process(nbytes: int) -> None:
    played, kept = PlayedMachine(), list[np.ndarray]()
    with pytest.raises(OutOfMemoryError, match=rf"Out of memory allocating {nbytes:,} bytes \(allocated so far"):
        grow(kept, played.ones, nbytes)
    assert 32 * MIB <= len(kept) * nbytes < 64 * MIB
    kept.clear()
    played.touched = 0
    assert played.ones(nbytes).size


def test_what_was_promised_and_is_not_used_yet_counts() -> None:
    played, kept = PlayedMachine(), list[np.ndarray]()
    with pytest.raises(OutOfMemoryError):
        grow(kept, played.zeros, 4 * MIB)
    assert 32 * MIB <= len(kept) * 4 * MIB < 64 * MIB


def test_memory_that_others_took_meanwhile_is_seen() -> None:
    played = PlayedMachine()
    first = played.ones(MIB)
    played.others = 48 * MIB
    with pytest.raises(OutOfMemoryError):
        played.ones(16 * MIB)
    assert first.size


def test_the_device_refuses_a_large_result_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    device = CpuDevice()
    column, row = device.resolve("cupy.ones")((4096, 1)), device.resolve("cupy.ones")((1, 4096))
    monkeypatch.setattr(LEDGER, "room", Room(lambda: (0, 64 * MIB), lambda: 0))
    monkeypatch.setattr(LEDGER, "hold", lambda _: pytest.fail("It was made."))
    with pytest.raises(OutOfMemoryError, match="134,217,728 bytes"):
        device.resolve("cupy.add")(column, row)
