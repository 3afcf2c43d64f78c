"""The harness for suites of other libraries: its parts, one suite that is played, and one that is fetched."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from tests.cupy_suite import outcomes, sdist
from tests.cupy_suite.outcomes import Outcome
from tests.cupy_suite.sources import CannotFetch
from tests.third_party import catalogue, command, differences, packages, page, record
from tests.third_party.catalogue import Entry
from tests.third_party.differences import Difference

_LIBRARY = Entry("some-library", "1.2", "tests of tests", "sdist:tests")


def test_suites_are_named_with_or_without_a_version() -> None:
    (as_listed,) = catalogue.named(["einops"])
    (other,) = catalogue.named(["einops==0.8.0"])
    assert (other.version, other.tests) == ("0.8.0", as_listed.tests)
    assert len(catalogue.named([])) == len(catalogue.read()) >= 10
    assert len({entry.field for entry in catalogue.read().values()}) >= 10
    with pytest.raises(ValueError, match=r"no suite 'einop'.*There are: pylops"):
        catalogue.named(["einop"])


def test_a_source_distribution_is_unpacked_without_its_backend(tmp_path: Path) -> None:
    """One that is there already is not fetched."""
    (tmp_path / "some_library-1.2" / "tests").mkdir(parents=True)
    (tmp_path / "some_library-1.2" / "tests" / "test_a.py").write_text("def test_a(): pass\n")
    with tarfile.open(tmp_path / "some_library-1.2.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "some_library-1.2", "some_library-1.2")
    there = sdist.get("some-library", "1.2", tmp_path)
    assert (there / "tests" / "test_a.py").is_file()
    assert packages.tests(_LIBRARY, tmp_path) == there
    with pytest.raises(CannotFetch, match=r"some-library 1\.2 has no folder elsewhere"):
        packages.tests(Entry("some-library", "1.2", "", "sdist:elsewhere"), tmp_path)


def test_a_record_tells_what_native_cupy_passes() -> None:
    here = [Outcome("a", "passed"), Outcome("b", "failed", 0.1, "ValueError: no"), Outcome("c", "failed")]
    here += [Outcome("d", "skipped"), Outcome("::about", outcomes.ABOUT, 0.0, "python 3")]
    alone = record.make(_LIBRARY, here, {}, "CPU device", "today")
    assert (alone.passed, alone.skipped, set(alone.failed)) == (1, 1, {"b", "c"})
    assert alone.about == "CPU device, python 3, today"
    native = {one.id: Outcome(one.id, "failed" if one.id == "c" else "passed") for one in here}
    beside = record.make(_LIBRARY, here, native, "CPU device", "")
    assert (beside.passed, beside.failed) == (1, {"b": "ValueError: no", "d": ""})


def test_what_a_suite_cost_is_that_of_what_passed_in_both_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    here = [Outcome("a", "passed", ops=10, round_trips=2), Outcome("b", "passed", ops=7, round_trips=1)]
    before = {"a": Outcome("a", "passed", ops=12, round_trips=8), "b": Outcome("b", "failed")}
    assert record.cost(here, {}, "") == record.Cost(17, 3)
    compared = record.cost(here, before, "commit 1a2b3c4")
    assert compared == record.Cost(10, 2, "commit 1a2b3c4", 12, 8)
    kept = record.make(_LIBRARY, here, {}, "CPU device", "today", compared)
    monkeypatch.setattr(record, "read_all", lambda: [kept])
    assert "| some-library | 12 | 8 | 10 | 2 | 75 % |" in page.text()
    assert "passed earlier (commit 1a2b3c4)" in page.text()


def test_what_native_cupy_fails_too_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (Difference("native", "CuPy has no such function", tests="^b$"), Difference("defect", "", said="^Type"))
    monkeypatch.setattr(differences, "known", lambda: kinds)
    failed = {"b": "AttributeError", "c": "TypeError: no", "d": "ValueError"}
    kept = record.Record("some-library", "1.2", "", False, 7, 0, failed)
    assert [getattr(differences.of("some-library", *one), "kind", "") for one in failed.items()] == [
        "native",
        "defect",
        "",
    ]
    assert page.counted(kept) == 9


def test_each_failure_of_the_records_has_a_reason() -> None:
    assert record.read_all()
    for kept in record.read_all():
        assert {test: said for test, said in kept.failed.items() if not differences.of(kept.name, test, said)} == {}
    assert all(one.reason and (one.tests or one.said) for one in differences.known())


def test_the_page_is_made_from_the_records() -> None:
    assert page.PAGE.read_text() == page.text()


@pytest.mark.timeout(180)
def test_tests_in_a_folder_are_run_through_a_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library is not fetched: a module of that name lies where pip would have put it."""
    modules = tmp_path / "cache" / "modules"
    modules.mkdir(parents=True)
    (modules / "some_library.py").write_text("def total(x): return x.sum()\n")
    monkeypatch.setattr(packages, "modules", lambda entry, cache: modules)
    tests = tmp_path / "suite"
    (tests / "tests").mkdir(parents=True)
    (tests / "tests" / "__init__.py").touch()  # as many suites have it: it must not hide the harness's own
    (tests / "test_some.py").write_text(
        "import cupy\nimport some_library\n"
        "def test_good(): assert int(some_library.total(cupy.arange(4))) == 6\n"
        "def test_bad(): some_library.total(3)\n"
    )
    words = ["--cache", str(tmp_path / "cache"), "run", "some-library==1.2", "--at", str(tests), "--device", "cpu"]
    assert command.main([*words, "--out", str(tmp_path)]) == 0
    assert "some-library==1.2, proxy: 1 failed, 1 passed" in capsys.readouterr().out
    found = outcomes.read(tmp_path / "some-library.proxy.jsonl")
    assert found["test_some.py::test_bad"].why.startswith("AttributeError")
    good = found["test_some.py::test_good"]
    assert (good.ops, good.round_trips) == (3, 1), "made, summed and read; and read"
    assert command.main([*words[:3], "--at", str(tests), "--out", str(tmp_path)]) == 2
    assert "are of one library" in capsys.readouterr().err


@pytest.mark.cupy_suite
@pytest.mark.timeout(600)
def test_a_suite_that_is_fetched_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        command.suite_of(catalogue.read()["einops"], command.CACHE)
    except CannotFetch as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    words = ["run", "einops", "--device", "cpu", "--workers", "2", "--out", str(tmp_path)]
    assert command.main(words) == 0
    found = [one for one in outcomes.read(tmp_path / "einops.proxy.jsonl").values() if one.is_of_a_test]
    assert {one.id: one.why for one in found if one.outcome not in ("passed", "skipped")} == {}
    assert sum(one.outcome == "passed" for one in found) >= 50
