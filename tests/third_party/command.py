"""The command line: fetch suites of other libraries, run them on one side or both, keep what came of it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.cupy_suite import comparison, outcomes, runner
from tests.cupy_suite.outcomes import Outcome
from tests.cupy_suite.plan import Side
from tests.cupy_suite.runner import Job
from tests.cupy_suite.sources import DEFAULT_CACHE, CannotFetch
from tests.cupy_suite.suites import BARE, Suite
from tests.third_party import catalogue, differences, packages, page, record
from tests.third_party.catalogue import Entry

#: Where suites are kept between runs; git ignores it.
CACHE = DEFAULT_CACHE / "third-party"
#: A suite's own settings name plugins that are not here. Warnings are its own affair, except on its own command line.
_PYTEST = ("-c", "/dev/null", "--import-mode=importlib", "-p", "no:doctest", "-p", "_hypothesis_pytestplugin")


def main(words: Sequence[str] | None = None) -> int:
    """Do what ``words`` say; return the exit status."""
    given = _parser().parse_args(words)
    try:
        status: int = given.act(given)
    except (CannotFetch, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.third_party", description=__doc__)
    parser.add_argument("--cache", type=Path, default=CACHE, help="where suites are kept")
    commands = parser.add_subparsers(required=True)
    commands.add_parser("list", help="name the suites").set_defaults(act=_list)

    fetch = commands.add_parser("fetch", help="get suites")
    fetch.add_argument("names", nargs="*", help="NAME or NAME==VERSION; all by default")
    fetch.set_defaults(act=_fetch)

    run = commands.add_parser("run", help="run suites through a pool, or on native CuPy")
    run.add_argument("names", nargs="*", help="NAME or NAME==VERSION; all by default")
    run.add_argument("--at", type=Path, help="tests of one library that are in this folder, instead of those of pip")
    run.add_argument("--programs", action="store_true", help="what is --at there are programs, not tests")
    run.add_argument("--side", choices=("native", "proxy", "beside"), default="proxy")
    run.add_argument("--out", type=Path, required=True, help="folder of outcomes; what is there is gone on with")
    run.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="the pool's device")
    run.add_argument("--workers", type=int, default=1)
    run.add_argument("--fraction", type=float, default=1.0, help="subsample of the tests, always the same")
    run.add_argument("--test-seconds", type=float, default=120.0, help="longest time of one test")
    run.set_defaults(act=_run)

    note = commands.add_parser("record", help="keep what came of runs, in the repository")
    note.add_argument("names", nargs="*", help="suites; all of which there are outcomes by default")
    note.add_argument("--out", type=Path, required=True, help="the folder of outcomes")
    note.add_argument("--device", required=True, help="what it was run on, such as 'CPU device'")
    note.add_argument("--made", default="", help="when, and of which commit")
    note.add_argument("--before", type=Path, help="outcomes of an earlier run, to compare what it cost")
    note.add_argument("--earlier", default="", help="what that run was made of, such as a commit")
    note.set_defaults(act=_record)

    commands.add_parser("table", help="write the page of the documentation").set_defaults(act=_table)
    return parser


def _list(given: argparse.Namespace) -> int:
    for entry in catalogue.read().values():
        _say(f"{entry.name}=={entry.version}: {entry.field}")
    return 0


def _fetch(given: argparse.Namespace) -> int:
    for entry in catalogue.named(given.names):
        suite, files = suite_of(entry, given.cache)
        _say(f"{entry.name}=={entry.version}: {len(files)} files in {suite.root}")
    return 0


def suite_of(entry: Entry, cache: Path, at: Path | None = None) -> tuple[Suite, tuple[str, ...]]:
    """Return the suite and its files: those at the folder ``at``, or else those that pip gets.

    Raises
    ------
    CannotFetch
        If pip cannot get the library or its tests.
    ValueError
        If there are no tests of that name.
    """
    modules = packages.modules(entry, cache)
    root, folder = (at, ".") if at else (packages.tests(entry, cache), entry.folder)
    options = BARE if entry.kind == "programs" else (*_PYTEST, *entry.options)
    suite = Suite(root.resolve(), options, entry.kind, entry.environment, (modules.resolve(),))
    if not entry.files:
        return suite, suite.expand([folder])
    some = (path for pattern in entry.files for path in sorted((root / folder).glob(pattern)))
    found = tuple(path.relative_to(root).as_posix() for path in some)
    if not found:
        raise ValueError(f"{entry.name} {entry.version} has no {', '.join(entry.files)} in {root / folder}.")
    return suite, found


def _run(given: argparse.Namespace) -> int:
    if given.at and len(given.names) != 1:
        raise ValueError("Tests in a folder are of one library: name it, as in run NAME==VERSION --at FOLDER.")
    for entry in _entries(given):
        suite, files = suite_of(entry, given.cache, given.at)
        sides: tuple[Side, ...] = ("native", "proxy") if given.side == "beside" else (given.side,)
        for side in sides:
            out = (given.out / f"{entry.name}.{side}.jsonl").resolve()
            like = given.out / f"{entry.name}.native.jsonl" if given.side == "beside" and side == "proxy" else None
            job = Job(
                side=side, testing=None, suite=suite, files=files, out=out,
                device=given.device, workers=given.workers, fraction=given.fraction,
                like=like.resolve() if like else None, test_seconds=given.test_seconds,
            )  # fmt: skip
            _say(f"{entry.name}=={entry.version}, {side}: {_counts(runner.run(job))}")
    return 0


def _entries(given: argparse.Namespace) -> list[Entry]:
    if not given.at:
        return catalogue.named(given.names)
    name, _, version = given.names[0].partition("==")
    known = catalogue.read().get(name)
    entry = known or Entry(name, version, "", "", kind="programs" if given.programs else "tests")
    if not version and not known:
        raise ValueError(f"Which version of {name}? Name it, as in {name}==1.0.")
    return [entry]


def _record(given: argparse.Namespace) -> int:
    for entry in catalogue.named(given.names):
        run = given.out / f"{entry.name}.proxy.jsonl"
        if not run.exists():
            continue
        native, here = outcomes.read(given.out / f"{entry.name}.native.jsonl"), outcomes.read(run)
        here |= comparison.uncollected(native, here)
        before = outcomes.read(given.before / run.name) if given.before else {}
        cost = record.cost(here.values(), before, given.earlier)
        made = record.make(entry, here.values(), native, given.device, given.made, cost)
        record.write(made)
        unknown = [test for test in made.failed if not differences.of(made.name, test, made.failed[test])]
        _say(f"{entry.name}: {made.passed} passed, {len(made.failed)} failed, {len(unknown)} of them not explained")
        for test in unknown:
            _say(f"- {test}: {made.failed[test]}")
    return 0


def _table(given: argparse.Namespace) -> int:
    page.PAGE.write_text(page.text())
    return 0


def _counts(found: dict[str, Outcome]) -> str:
    counts = Counter(outcome.outcome for outcome in found.values() if outcome.is_of_a_test)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "no tests"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
