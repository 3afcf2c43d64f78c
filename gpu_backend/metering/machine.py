"""The memory of this machine: what there is, what can still be had, and what of it this process holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
_PAGE = os.sysconf("SC_PAGE_SIZE")

#: A control group's files in either version of the interface: its bound, what it holds, and what of that are files read
#: once, which the system drops before it refuses memory.
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def machine_bytes() -> tuple[int, int]:
    """Return (free, total) memory of this machine, in bytes; within the bounds of the control groups we are in.

    What the system would give back when asked, such as the files it keeps in memory, is free.
    """
    known = _fields(_MEMINFO)
    total = known.get("MemTotal", os.sysconf("SC_PHYS_PAGES") * _PAGE >> 10) << 10
    free = known.get("MemAvailable", os.sysconf("SC_AVPHYS_PAGES") * _PAGE >> 10) << 10
    for left, bound in _bounds():
        free, total = min(free, left), min(total, bound)
    return free, total


def resident_bytes() -> int:
    """Return how much of the machine's memory this process holds now; 0 if the system does not tell."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except OSError:
        return 0


def _bounds() -> Iterator[tuple[int, int]]:
    """Yield what each control group around this process still has, and its bound."""
    try:
        lines = _GROUP.read_text().splitlines()
    except OSError:
        lines = ["0::/"]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _bounds_at(_GROUPS, path, *_VERSION_2)
        elif "memory" in controllers.split(","):
            yield from _bounds_at(_GROUPS / "memory", path, *_VERSION_1)


def _bounds_at(top: Path, path: str, bound: str, held: str, files: str) -> Iterator[tuple[int, int]]:
    inner = top / path.lstrip("/")
    for group in (inner, *inner.parents):
        try:
            most = (group / bound).read_text().strip()
            if most.isdigit():  # else "max"
                kept = int((group / held).read_text()) - _fields(group / "memory.stat").get(files, 0)
                yield max(0, int(most) - kept), int(most)
        except (OSError, ValueError):
            pass  # not every group has such files, and from inside a container not every one is seen
        if group == top:
            return


def _fields(file: Path) -> dict[str, int]:
    """Return the numbers of a file with a name and a number in each line; nothing of one that cannot be read."""
    try:
        lines = [line.split() for line in file.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0].rstrip(":"): int(line[1]) for line in lines if len(line) > 1 and line[1].isdigit()}
