"""The sizes of the house: how many files a folder has, how long they and their functions are, what types leave open.

``python -m tests.unit.house.sizes [COMMIT]`` prints them of this tree, beside those of a commit.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from .tree import PACKAGES, ROOT, functions, lines_without_docstring, parameters, says_any

#: What a column is of.
PARTS = {"kernelproxy": ("kernelproxy",), "gpu_backend": ("gpu_backend",), "all": PACKAGES}


class Longest(NamedTuple):
    """The middle of some lengths, and the greatest, with its name."""

    middle: int
    most: int
    name: str

    def __str__(self) -> str:
        return f"{self.middle}, {self.most} ({self.name})"


def main(commits: list[str]) -> None:
    """Print the table."""
    trees = [sizes(ROOT)]
    for commit in commits:
        with TemporaryDirectory() as folder:
            packed = subprocess.run(["git", "archive", commit, *PACKAGES], cwd=ROOT, capture_output=True, check=True)
            with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
                archive.extractall(folder, filter="data")
            trees.insert(0, sizes(Path(folder)))
    heads = [f"{part}, {when[:7]}" for part in PARTS for when in [*reversed(commits), "now"]]
    print(f"| | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")  # noqa: T201 (printing is what it is for)
    for name in trees[0]["all"]:
        cells = [str(tree[part][name]) for part in PARTS for tree in trees]
        print(f"| {name} | {' | '.join(cells)} |")  # noqa: T201


def sizes(root: Path) -> dict[str, dict[str, object]]:
    """Return the rows of the table for the tree in ``root``, by part."""
    return {part: _of([path for package in packages for path in sorted((root / package).rglob("*.py"))], root)
            for part, packages in PARTS.items()}  # fmt: skip


def _of(paths: list[Path], root: Path) -> dict[str, object]:
    short = {path: path.relative_to(root).as_posix() for path in paths}
    named = [(path, function) for path in paths for function in functions(path)]
    taken = [one for _, function in named for one in parameters(function)]
    left_open = sum(says_any(one.annotation) for one in taken)
    folders = Counter(Path(name).parent.as_posix() for name in short.values())
    return {
        "files, folders": f"{len(paths)}, {len(folders)}",
        "files of a folder: middle, most": _longest((number, name) for name, number in folders.items()),
        "lines of a file: middle, most": _longest((len(path.read_text().splitlines()), short[path]) for path in paths),
        "lines of a function: middle, most": _longest(
            (lines_without_docstring(one), f"{Path(short[path]).stem}.{one.name}") for path, one in named
        ),
        "parameters that say Any": f"{left_open} of {len(taken)} ({100 * left_open / len(taken):.0f} %)",
        "`type: ignore`": sum(len(re.findall(r"#\s*type: ignore", path.read_text())) for path in paths),
    }


def _longest(named: Iterable[tuple[int, str]]) -> Longest:
    lengths = sorted(named)
    return Longest(round(median(number for number, _ in lengths)), *lengths[-1])


if __name__ == "__main__":
    main(sys.argv[1:])
