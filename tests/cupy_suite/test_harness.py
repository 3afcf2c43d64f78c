"""The harness itself, without any of CuPy's tests."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cupy_suite import comparison, outcomes, page, record, runner, selection, suites
from tests.cupy_suite.outcomes import Outcome

MATH, FFT = "cupy_tests/math_tests/test_a.py::test_{}", "cupyx_tests/scipy_tests/fft_tests/test_b.py::test_{}"


def some(pattern: str, **kinds: int) -> list[Outcome]:
    return [Outcome(pattern.format(f"{kind}_{n}"), kind) for kind, count in kinds.items() for n in range(count)]


def test_a_directory_is_named_as_its_package() -> None:
    assert selection.directory(MATH) == "math"
    assert selection.directory(FFT) == "cupyx.scipy.fft"
    assert selection.directory("cupyx_tests/test_rsqrt.py::test_rsqrt") == "cupyx"
    assert selection.directory("cupy_tests/test_ndim.py::test_ndim") == "cupy"


def test_a_subsample_is_always_the_same_and_of_its_size() -> None:
    places = [selection.place(f"test_{number}") for number in range(4_000)]
    assert 0.23 < sum(place < 0.25 for place in places) / len(places) < 0.27
    assert selection.place("test_7") == places[7]
    shares = [selection.shard(f"test_{number}", 4) for number in range(4_000) if places[number] < 0.25]
    assert min(shares.count(worker) for worker in range(4)) > 200


def test_clean_files_never_mention_what_only_native_cupy_has(tmp_path: Path) -> None:
    folder = tmp_path / "cupy_tests" / "math_tests"
    folder.mkdir(parents=True)
    (folder / "test_clean.py").write_text("import cupy\nfrom cupy.testing import _condition\ncupy.cuda.Device()\n")
    (folder / "test_private.py").write_text("from cupy import _core\n")
    (folder / "test_pointer.py").write_text("x.data.ptr\n")
    assert selection.clean_files(tmp_path) == ["cupy_tests/math_tests/test_clean.py"]
    assert len(selection.expand(tmp_path, ["cupy_tests"])) == 3
    tainted = selection.expand(tmp_path, ["partly"])
    assert tainted == selection.expand(tmp_path, ["partly:cupy_tests/math_tests"])
    assert len(tainted) == 2
    with pytest.raises(ValueError, match="stands for no tests"):
        selection.expand(tmp_path, ["cupy_tests/nothing"])


def test_outcomes_survive_a_line_that_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for outcome in some(MATH, passed=2):
        outcomes.append(path, outcome)
    with path.open("ab") as file:
        file.write(b'{"id":"cut')
    assert list(outcomes.read(path)) == [MATH.format("passed_0"), MATH.format("passed_1")]


def test_a_comparison_counts_what_passes_natively() -> None:
    native = {MATH.format("x"): "passed", MATH.format("y"): "passed", MATH.format("z"): "failed", FFT: "skipped"}
    here = [Outcome(test, "failed" if test.endswith("y") else "passed") for test in native]
    found = comparison.compare(lambda test: native.get(test, ""), here)
    assert (found.rows["math"].expected, found.rows["math"].passed, found.rows["math"].more) == (2, 1, 1)
    assert found.rows["cupyx.scipy.fft"].more == 1
    assert [one.id for one in found.differing] == [MATH.format("y")]
    assert "| math | 2 | 1 | 50.00 | 1 |" in comparison.table(found)


def test_tests_of_a_file_that_cannot_be_collected_count_as_errors() -> None:
    file = MATH.partition("::")[0]
    native = {one.id: one for one in [*some(MATH, passed=3, failed=1), *some(FFT, passed=1)]}
    here = {file: Outcome(file, "error", 0.0, "ImportError"), FFT.format("passed_0"): native[FFT.format("passed_0")]}
    missed = comparison.uncollected(native, here)
    assert {one.why for one in missed.values()} == {"ImportError"}
    found = comparison.compare(lambda test: native[test].outcome if test in native else "", (here | missed).values())
    assert (found.rows["math"].expected, found.rows["math"].passed) == (3, 0)
    assert found.rows["cupyx.scipy.fft"].passed == 1


def test_a_worker_that_is_late_says_how_far_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = [f"test_a.py::test_{number}" for number in range(2_000)]
    begun = [selection.begun(test) for test in sorted(tests, key=selection.begun)]
    assert begun == sorted(begun)
    assert all(selection.begun(test) <= selection.place(test) < selection.begun(test) + 0.025 for test in tests)
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_slow.py").write_text("import signal\ndef test_slow():\n    signal.pause()\n")
    job = runner.Job(
        side="native", testing=folder, suite=suites.Suite(folder, ("-c", "/dev/null")), files=("test_slow.py",),
        out=tmp_path / "out.jsonl", deadline=time.time() + 3600,
    )  # fmt: skip
    with runner._environment(job) as environment:
        worker = runner._Worker(runner._share(job, 0), job.suite, tmp_path, environment)
        while not worker._test():
            assert not worker.is_through()
        monkeypatch.setattr(runner, "_LATE_SECONDS", -3600.0)
        assert worker.is_through()
    assert outcomes.stopped(outcomes.read(worker.plan.out).values())
    assert outcomes.read(worker.plan.out)["::0"].seconds == selection.begun("test_slow.py::test_slow")


def test_records_compare_as_the_runs_they_were_made_of() -> None:
    """Workers of neither run stop at the same test, and either may have done more."""
    tests = [MATH.format(number) for number in range(600)] + [FFT.format(number) for number in range(300)]
    kinds = ("passed",) * 7 + ("failed", "skipped", "xfailed")

    def half(salt: str, done: tuple[float, float]) -> list[Outcome]:
        begun = [test for test in tests if selection.place(test) < done[selection.shard(test, 2)]]
        run = [Outcome(test, kinds[selection.shard(test + salt, len(kinds))]) for test in begun]
        return [*run, *(Outcome(f"::{n}", outcomes.STOPPED, part) for n, part in enumerate(done) if part < 1)]

    for there, here in (((0.3, 0.6), (0.5, 1.0)), ((0.5, 1.0), (0.3, 0.6)), ((1.0, 1.0), (0.2, 0.7))):
        native, run = half("there", there), half("here", here)
        kept = [record.make(native, 1.0, "H200", "today"), record.make(run, 1.0, "CPU")]
        assert [kept[0].outcome(one.id) for one in native if one.is_of_a_test] == [
            one.outcome for one in native if one.is_of_a_test
        ]
        by_test = {one.id: one.outcome for one in native if one.is_of_a_test}
        exact = comparison.compare(lambda test, by_test=by_test: by_test.get(test, ""), run)
        found = comparison.compare_records(*kept)
        assert found.rows == exact.rows
        assert {one.id for one in found.differing} == {one.id for one in exact.differing}
        only = comparison.not_run_natively(*kept)
        told = [one for one in run if one.is_of_a_test and one.id not in by_test]
        assert only.expected == sum(one.outcome not in outcomes.NOT_EXPECTED for one in told)
        assert only.passed == sum(one.outcome == "passed" for one in told)
        assert record.made(kept[0], "") == "today"


def test_a_record_answers_as_the_run_it_was_made_of(tmp_path: Path) -> None:
    run = some(MATH, passed=40, failed=3, skipped=2) + some(FFT, passed=10, crashed=1)
    kept = record.make([*run, Outcome("::about", outcomes.ABOUT, 0.0, "numpy 2.4")], 1.0, "CPU device")
    record.write(tmp_path / "kept.json.gz", kept)
    again = record.read(tmp_path / "kept.json.gz")
    assert [again.outcome(one.id) for one in run] == [one.outcome for one in run]
    assert again.about["versions"].endswith(", numpy 2.4")
    assert again.outcome("cupy_tests/io_tests/test_c.py::test_other") == ""
    found = comparison.compare_records(again, again)
    assert (found.rows["math"].expected, found.rows["math"].passed) == (40, 40)


def test_a_run_that_was_stopped_is_a_smaller_subsample() -> None:
    run = some(MATH, passed=400)
    kept = record.make([*run, Outcome("::0", outcomes.STOPPED, 0.5), Outcome("::1", outcomes.STOPPED, 0.25)], 1.0, "")
    assert set(kept.fractions.values()) == {0.25}
    assert 60 < sum(kept.passed.values()) < 140
    assert sum(map(kept.passing, kept.passed)) == 400
    newer = record.make(some(MATH, failed=1), 1.0, "")
    assert record.joined(kept, newer).outcome(MATH.format("failed_0")) == "failed"


def test_a_known_difference_is_told_with_its_reason() -> None:
    found = comparison.compare(lambda test: "passed", some(MATH, failed=2))
    known = [comparison.Known("failed_1$", "no GPU has it")]
    assert {why: len(tests) for why, tests in found.why(known).items()} == {"no GPU has it": 1, "": 1}
    assert all(one.why for device in ("cpu", "cuda") for one in comparison.known_differences(device))


def test_the_page_is_made_from_the_records() -> None:
    assert page.PAGE.read_text() == page.text()
