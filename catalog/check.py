"""Says in one sentence each what is wrong with an entry.

``python -m catalog.check`` checks all entries, ``python -m catalog.check FILE…`` some. Two passes:
:mod:`catalog.validation` compares the shape, then :mod:`catalog.rules` compares what only makes sense together (sources
that are referred to, terms of the taxonomy, targets of relations).
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from catalog import rules
from catalog.entry import System
from catalog.paths import ENTRIES
from catalog.validation import MalformedEntry, validate

__all__ = ["check_files", "main"]


def check_files(paths: Iterable[Path], *, alone: bool = False) -> list[str]:
    """Check entries and return every problem as ``file: sentence``; an empty list means none.

    Parameters
    ----------
    paths
        TOML files.
    alone
        Leave out what concerns several entries at once: relations to systems that are not among ``paths``,
        BibTeX keys used twice, terms that nobody uses.
    """
    problems: list[str] = []
    systems: list[System] = []
    for path in paths:
        try:
            system = validate(tomllib.loads(path.read_text(encoding="utf-8")), path.name)
        except tomllib.TOMLDecodeError as refused:
            problems.append(f"{path.name}: not valid TOML: {refused}")
            continue
        except MalformedEntry as refused:
            problems.extend(f"{path.name}: {problem}" for problem in refused.problems)
            continue
        systems.append(system)
        if system.id != path.stem:
            problems.append(f"{path.name}: the id is {system.id!r} but the file is named {path.stem!r}")
        problems.extend(f"{path.name}: {problem}" for problem in rules.problems_of(system))
    if not alone:
        problems.extend(rules.problems_between(systems))
    return problems


def main(arguments: list[str] | None = None) -> int:
    """Check the named files, or all entries, and print one line per problem; 1 if there is any."""
    names = sys.argv[1:] if arguments is None else arguments
    paths = [Path(name) for name in names] or sorted(ENTRIES.glob("*.toml"))
    problems = check_files(paths, alone=bool(names))
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    if not problems:
        sys.stdout.write(f"{len(paths)} entries, no problem found\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
