"""Hold random programs to CuPy alone, in many processes at a time.

    python -m tests.fuzz --device cuda --seconds 100 --workers 12 --seed 1 --out FOLDER
    python -m tests.fuzz --device cuda --again FOLDER/found-1-0.json

What differs is made as small as it gets, shown, and kept in the folder, from which it is run again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import msgspec

from gpu_backend.devices import open_device
from tests.fuzz.hunting import Counts, Found, look
from tests.fuzz.workers import hunt_together

_LONGEST_LINE = 180
_MOST_SHOWN = 4


def _again(path: Path, device: str) -> Counts:
    """Hold the structure in the file to CuPy alone once more, with the passes with which it differed."""
    found, counts = msgspec.json.decode(path.read_bytes(), type=Found), Counts()
    look(found.structure, open_device(device), [tuple(found.passes)], counts)
    return counts


def main() -> int:
    """Return 1 if anything differs, or a worker is lost; else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for what was found; a new one without")
    parser.add_argument("--again", type=Path, metavar="FILE", help="hold what was found before to CuPy alone")
    given = parser.parse_args()
    out = given.out or Path(tempfile.mkdtemp(prefix="fuzz"))
    lost: list[str] = []
    if given.again is not None:
        counts = _again(given.again, given.device)
    else:
        seeds = [given.seed * 1000 + number for number in range(given.workers)]
        counts, lost = hunt_together(given.device, seeds, given.seed, given.seconds, out)
        for number, found in enumerate(counts.found):
            (out / f"found-{given.seed}-{number}.json").write_bytes(msgspec.json.encode(found))
    shown = msgspec.structs.replace(counts, found=counts.found[:_MOST_SHOWN])
    sys.stdout.writelines(f"{line[:_LONGEST_LINE]}\n" for line in [*counts.summary(), *shown.differences(), *lost])
    return 1 if counts.found or lost else 0


if __name__ == "__main__":
    sys.exit(main())
