"""The command line of the harness."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.cupy_suite import comparison, outcomes, page, record, runner, selection, sources, suites
from tests.cupy_suite.outcomes import Outcome
from tests.cupy_suite.runner import Job

_FILES = "files or folders of CuPy's tests, clean:FOLDER, partly; or multi_gpu, array_api_tests, examples, user_guide"
#: Of the time for both sides, the part of native CuPy, which compiles the kernels for both.
_NATIVE_PART = 0.5
#: What is left of the time is used for another turn of both sides if it is more than they take to begin.
_SECONDS_FOR_ANOTHER_TURN = 90.0


def main(words: Sequence[str] | None = None) -> int:
    """Do what ``words`` say; return the exit status."""
    given = _parser().parse_args(words)
    try:
        status: int = given.act(given)
    except (sources.CannotFetch, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cupy_suite", description=__doc__)
    parser.add_argument("--cache", type=Path, default=sources.DEFAULT_CACHE, help="where CuPy's tests are kept")
    commands = parser.add_subparsers(required=True)
    commands.add_parser("fetch", help="get the tests").set_defaults(act=_fetch)

    run = commands.add_parser("run", help="run tests on one side")
    run.add_argument("--side", choices=("native", "proxy"), default="proxy")
    run.add_argument("--out", type=Path, required=True, help="file of outcomes; one that is there is gone on with")
    run.add_argument("--like", type=Path, help="only tests that this file of outcomes has")
    run.add_argument("--testing", choices=("cupy", "ours"), default="cupy", help="whose cupy.testing the proxy has")
    _add_limits(run)
    run.set_defaults(act=_run)

    beside = commands.add_parser("beside", help="run tests natively, then the same through a pool, and compare")
    beside.add_argument("--out", type=Path, required=True, help="folder for native.jsonl, proxy.jsonl and table.txt")
    beside.add_argument("--native-part", type=float, default=_NATIVE_PART, help="of the seconds, for native CuPy")
    _add_limits(beside)
    beside.set_defaults(act=_beside)

    compare = commands.add_parser("compare", help="compare runs with the record or a run of native CuPy")
    compare.add_argument("runs", type=Path, nargs="+", help="files of outcomes")
    compare.add_argument(
        "--native", type=Path, help="file of outcomes, or record (.json.gz), of native CuPy; default: what is kept"
    )
    compare.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    compare.add_argument("--list", action="store_true", help="name every test that differs")
    compare.set_defaults(act=_compare)

    note = commands.add_parser("record", help="put runs into a record that can be kept in the repository")
    _add_what_to_note(note)
    note.set_defaults(act=_record)

    page_of_it = commands.add_parser("table", help="write the page of the documentation from the records")
    page_of_it.add_argument("--out", type=Path, default=page.PAGE)
    page_of_it.set_defaults(act=_table)
    return parser


def _add_what_to_note(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", type=Path)
    parser.add_argument("runs", type=Path, nargs="+", help="files of outcomes of one side")
    parser.add_argument("--fraction", type=float, default=1.0, help="the subsample that was to be run")
    parser.add_argument("--like", type=Path, help="the native run beside which these were made")
    parser.add_argument("--device", default="", help="what it was run on")
    parser.add_argument("--made", default="", help="when, and of which commit")
    parser.add_argument("--anew", action="store_true", help="forget what the record holds of other files")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", help=_FILES)
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="the pool's device")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--fraction", type=float, default=1.0, help="subsample of the tests, always the same")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after so long")
    parser.add_argument("--test-seconds", type=float, default=120.0, help="longest time of one test")


def _fetch(given: argparse.Namespace) -> int:
    found = sources.get(given.cache)
    _say(f"{found.root}: {len(selection.clean_files(found.tests))} clean files")
    for checkout in (suites.ARRAY_API_TESTS, suites.CUPY):
        _say(f"{checkout.get(given.cache)}: {checkout.commit[:12]} of {checkout.url}")
    return 0


def _job(given: argparse.Namespace, side: str, out: Path, seconds: float, like: Path | None = None) -> Job:
    suite = suites.of(given.files, given.cache)
    ours = getattr(given, "testing", "cupy") == "ours"
    return Job(
        side="native" if side == "native" else "proxy",
        testing=None if ours else sources.get(given.cache).testing.resolve(),
        suite=suite,
        files=suite.expand(given.files or ["clean"]),
        out=out.resolve(),
        device=given.device,
        workers=given.workers,
        fraction=given.fraction,
        like=like.resolve() if like else None,
        deadline=time.time() + seconds if seconds else 0.0,
        test_seconds=given.test_seconds,
    )


def _run(given: argparse.Namespace) -> int:
    _say(_counts(runner.run(_job(given, given.side, given.out, given.seconds, given.like))))
    return 0


def _beside(given: argparse.Namespace) -> int:
    began = time.monotonic()
    native, proxy = given.out / "native.jsonl", given.out / "proxy.jsonl"
    left = given.seconds
    while True:
        there = runner.run(_job(given, "native", native, left * given.native_part))
        _say(f"native after {time.monotonic() - began:.0f} s: {_counts(there)}")
        left = max(given.seconds - (time.monotonic() - began), 1.0) if given.seconds else 0.0
        here = runner.run(_job(given, "proxy", proxy, left, like=native))
        _say(f"proxy after {time.monotonic() - began:.0f} s: {_counts(here)}")
        left = given.seconds - (time.monotonic() - began)
        if not outcomes.stopped(there.values()) or left < _SECONDS_FOR_ANOTHER_TURN:
            break
    text = _described(there, here, "cuda", listed=True)
    (given.out / "table.txt").write_text(text + "\n")
    _say(text)
    return 0


def _compare(given: argparse.Namespace) -> int:
    runs = _joined(given.runs)
    if given.native and given.native.suffix != ".gz":
        there = outcomes.read(given.native)
    else:
        kept = record.read(given.native) if given.native else record.kept("native")
        there = {test: Outcome(test, found) for test in runs if (found := kept.outcome(test))}
    not_run = sum(outcome.is_of_a_test and test not in there for test, outcome in runs.items())
    if not_run:
        _say(f"{not_run:,} tests were not run natively and are not counted.\n")
    _say(_described(there, runs, given.device, given.list))
    return 0


def _described(native: dict[str, Outcome], runs: dict[str, Outcome], device: str, listed: bool) -> str:
    runs = runs | comparison.uncollected(native, runs)
    found = comparison.compare(lambda test: native[test].outcome if test in native else "", runs.values())
    lines = [comparison.table(found)]
    for why, differing in sorted(found.why(comparison.known_differences(device)).items()):
        lines.append(f"\n{len(differing)} differ: {why or 'not explained'}")
        lines += [f"- {one.outcome} {one.id}: {one.why}" for one in differing] if listed else []
    return "\n".join(lines)


def _record(given: argparse.Namespace) -> int:
    runs, fraction = _joined(given.runs), given.fraction
    if given.like:  # what the other side did not get to was not run on this one
        beside = outcomes.read(given.like)
        fraction = outcomes.complete_fraction(beside.values(), fraction)
        runs |= comparison.uncollected(beside, runs)
        runs = {test: outcome for test, outcome in runs.items() if test in beside or not outcome.is_of_a_test}
    partly = selection.partly_files(sources.get(given.cache).tests)
    found = record.make(list(runs.values()), fraction, given.device, given.made, partly)
    if given.record.exists() and not given.anew:
        found = record.joined(record.read(given.record), found)
    record.write(given.record, found)
    passed = sum(map(found.passing, found.passed))
    _say(f"{passed} passed, {len(found.others)} did not; {given.record.stat().st_size} bytes")
    return 0


def _table(given: argparse.Namespace) -> int:
    given.out.write_text(page.text())
    return 0


def _joined(runs: Iterable[Path]) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for path in runs:
        found.update(outcomes.read(path))
    return found


def _counts(found: dict[str, Outcome]) -> str:
    counts = Counter(outcome.outcome for outcome in found.values() if outcome.outcome != outcomes.ABOUT)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "no tests"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
