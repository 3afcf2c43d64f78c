"""What the control groups around this process leave it of the machine's memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_backend.metering import machine
from gpu_backend.node import inventory

MIB = 1 << 20


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
    (device,) = inventory.devices("cpu", 1)
    assert device.total_bytes == 32 * MIB
