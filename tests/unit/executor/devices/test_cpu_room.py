"""The CPU device on a machine whose memory runs out: arrays are refused before the system ends the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.devices.cpu import machine
from gpu_backend.devices.cpu.device import CpuDevice
from gpu_backend.devices.cpu.memory import LEDGER, OutOfMemoryError
from gpu_backend.devices.cpu.room import Room

MIB = 1 << 20


class PlayedMachine:
    """A machine of 64 MiB, of which a part is used by others, and one by this process."""

    def __init__(self) -> None:
        self.total = 64 * MIB
        self.others = 0
        self.touched = 0  #: of the memory that arrays were promised

    def bytes(self) -> tuple[int, int]:
        return self.total - self.others - self.touched, self.total

    def touch(self, nbytes: int) -> None:
        self.touched += nbytes

    def room(self) -> Room:
        return Room(self.bytes, lambda: self.touched)


def grow(kept: list[np.ndarray], make: Callable[[], np.ndarray], touch: Callable[[int], None] = lambda _: None) -> None:
    """Keep one array after the other, four times as much as the machine has at most; ``touch`` hears of each."""
    for _ in range(256 * MIB // make().nbytes):
        kept.append(make())
        touch(kept[-1].nbytes)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedMachine]:
    LEDGER.free_all_blocks()
    own = PlayedMachine()
    own.total += LEDGER.used_bytes * 2  # what other tests left
    monkeypatch.setattr(LEDGER, "room", own.room())
    yield own
    LEDGER.free_all_blocks()


@pytest.mark.parametrize("size", [MIB // 2, 512], ids=["large", "small"])
def test_a_list_that_grows_ends_in_an_error_and_not_in_the_end_of_the_process(played: PlayedMachine, size: int) -> None:
    ones = CpuDevice().resolve("cupy.ones")
    kept: list[np.ndarray] = []
    with pytest.raises(OutOfMemoryError, match=rf"Out of memory allocating {8 * size:,} bytes \(allocated so far"):
        grow(kept, lambda: ones(size), played.touch)
    assert 32 * MIB <= len(kept) * 8 * size < 64 * MIB
    kept.clear()
    played.touched = 0
    assert ones(size).size


def test_what_was_promised_and_is_not_used_yet_counts(played: PlayedMachine) -> None:
    zeros = CpuDevice().resolve("cupy.zeros")
    kept: list[np.ndarray] = []
    with pytest.raises(OutOfMemoryError):
        grow(kept, lambda: zeros(MIB // 2))
    assert 32 * MIB <= len(kept) * 4 * MIB < 64 * MIB


def test_memory_that_others_took_meanwhile_is_seen(played: PlayedMachine) -> None:
    ones = CpuDevice().resolve("cupy.ones")
    first = ones(MIB // 8)
    played.touched += MIB
    played.others = 48 * MIB
    with pytest.raises(OutOfMemoryError):
        ones(16 * MIB // 8)
    assert first.size


def test_a_large_result_is_refused_before_it_is_made(played: PlayedMachine) -> None:
    device = CpuDevice()
    column, row = device.resolve("cupy.ones")((4096, 1)), device.resolve("cupy.ones")((1, 4096))
    with pytest.raises(OutOfMemoryError, match="134,217,728 bytes"):
        device.resolve("cupy.add")(column, row)


@pytest.mark.parametrize(
    ("line", "where", "bound", "held", "files"),
    [
        ("0::/outer/inner", "", *machine._VERSION_2),
        ("4:memory:/outer/inner", "memory", *machine._VERSION_1),
    ],
)
def test_the_groups_around_a_process_bound_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, where: str, bound: str, held: str, files: str
) -> None:
    (tmp_path / "group").write_text(f"3:cpu:/\n{line}\n")
    (tmp_path / "meminfo").write_text(f"MemTotal: {64 << 10} kB\nMemAvailable: {60 << 10} kB\n")
    outer = tmp_path / where / "outer"
    for folder, most, used in ((outer, 32 * MIB, 20 * MIB), (outer / "inner", 48 * MIB, 4 * MIB)):
        folder.mkdir(parents=True)
        (folder / bound).write_text(f"{most}\n")
        (folder / held).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"anon 1\n{files} {2 * MIB}\n")
    monkeypatch.setattr(machine, "_GROUP", tmp_path / "group")
    monkeypatch.setattr(machine, "_GROUPS", tmp_path)
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "meminfo")
    assert machine.machine_bytes() == (14 * MIB, 32 * MIB)
