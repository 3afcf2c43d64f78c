"""What the benchmark of whole programs measures with, and what it makes of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.programs import table

SUITE = Path(table.__file__).parent / "suite"
KINDS = sorted(path for path in SUITE.glob("*.py") if path.name != "__init__.py")


def run(seconds: float, bits: str = "a", norms: tuple[float, ...] = (1.0,), **costs: int) -> dict[str, object]:
    return {"seconds": seconds, "recorded": seconds / 2, "bits": bits, "norms": list(norms), "costs": costs}


@pytest.mark.parametrize("path", KINDS, ids=lambda path: path.stem)
def test_each_kind_has_three_programs_that_take_a_size_and_say_what_they_do(path: Path) -> None:
    found = [
        each for each in ast.parse(path.read_text()).body if isinstance(each, ast.FunctionDef) and each.decorator_list
    ]
    assert len(found) >= 3
    for each in found:
        assert ast.get_docstring(each)
        assert [argument.arg for argument in each.args.args] == ["n"]


def test_the_first_call_counts_apart_and_the_best_of_the_others() -> None:
    row = table.row("x", "k", [run(9.0), run(2.0), run(1.0)], [run(8.0), run(3.0), run(4.0, ops=10, round_trips=1)])
    assert (row.native_first, row.native, row.first, row.warm) == (9.0, 1.0, 8.0, 3.0)
    assert row.ratio == 3.0
    assert row.verdict == "same bits"
    assert row.costs == {"ops": 10, "round_trips": 1}


@pytest.mark.parametrize(
    ("theirs", "ours", "verdict"),
    [
        (run(1.0), run(1.0), "same bits"),
        (run(1.0, "a", (2.0,)), run(1.0, "b", (2.0 + 1e-9,)), "close"),
        (run(1.0, "a", (2.0,)), run(1.0, "b", (2.1,)), "WRONG"),
        (run(1.0, "a", (2.0,)), run(1.0, "b", (2.0, 0.0)), "WRONG"),
    ],
)
def test_what_came_out_is_compared(theirs: dict[str, object], ours: dict[str, object], verdict: str) -> None:
    assert table.row("x", "k", [theirs, theirs], [ours, ours]).verdict == verdict


def test_what_recording_alone_takes_is_told_of_programs_that_hardly_wait() -> None:
    rows = [
        table.row(str(trips), "k", [run(1.0), run(1.0)], [run(9.0), run(0.5, round_trips=trips), run(0.8)])
        for trips in (0, 4)
    ]
    often = table.row("often", "k", [run(1.0)] * 2, [run(9.0), run(0.5, ops=20, round_trips=5)])
    assert [one.recording_ratio for one in (*rows, often)] == [0.25, 0.25, None]
    judged = table.summary([*rows, often])
    assert (judged["recording"], judged["recorded_programs"]) == (pytest.approx(0.25), 2)


def test_a_run_is_judged_by_its_geometric_mean_and_its_worst() -> None:
    rows = [table.row(str(ratio), "k", [run(1.0), run(1.0)], [run(ratio), run(ratio, ops=5)]) for ratio in (0.5, 2, 4)]
    judged = table.summary(rows)
    assert judged["warm"] == pytest.approx(4 ** (1 / 3))
    assert judged["above_1.1"] == 2
    assert [each["name"] for each in judged["worst"]] == ["4", "2", "0.5"]
    assert judged["worst"][0]["why"].startswith("latency")


def test_without_a_gpu_there_is_nothing_to_compare_with() -> None:
    judged = table.summary([table.row("x", "k", [], [run(1.0), run(1.0, ops=3, round_trips=2)])])
    assert judged["warm"] is None
    assert judged["round_trips"] == 2
    assert judged["worst"] == []
