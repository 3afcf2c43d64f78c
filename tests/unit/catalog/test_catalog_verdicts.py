"""Verdicts follow from records; who measured whom, the five questions and the scale follow from the entries."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import catalog
from catalog import fronts, rules, verdict
from catalog.amounts import within
from catalog.choice import QUESTIONS, Choice
from catalog.entry import System
from catalog.errors import CatalogError
from catalog.evidence import Judgement
from catalog.figures import FIGURES
from catalog.loader import entries
from catalog.measured import measured
from catalog.phases import figures_of
from catalog.render import text
from catalog.show import system_document
from catalog.taxonomy import taxonomy
from catalog.verdict import OUTCOMES, verdicts_of

RUN: dict[str, Any] = {
    "benchmark": "sharing",
    "date": "2026-11-22T04:42:15+00:00",
    "commit": "abc1234",
    "machine": {"gpu": "NVIDIA H200"},
    "is_quick": False,
    "figures": {
        "tgs: promise": {"production_alone": 200.0, "production_beside": 190.0, "part": {"one": 0.5, "two": 0.05}},
        "antman: promise": {"production_alone": 200.0, "production_beside": 200.0, "part": {"one": 0.5, "two": 0.5}},
        "fair_share: shares": {"worst_window_error": {"one": 0.004, "two": 0.015}},
    },
}


def put(folder: Path, name: str, **changes: Any) -> None:
    (folder / f"sharing-{name}.json").write_text(json.dumps({**RUN, **changes}))


def judged(monkeypatch: pytest.MonkeyPatch, folder: Path, *judgements: Judgement) -> list[str]:
    monkeypatch.setattr(verdict, "measured", lambda: measured(folder))
    system: System = dataclasses.replace(entries()["tgs"], verdicts=list(judgements))
    return [each.outcome for each in verdicts_of(system)]


def test_a_run_becomes_figures_that_name_system_hardware_and_commit() -> None:
    found = {(each["system"], each["figure"]): each for each in figures_of(RUN)}
    kept = found["tgs", "production-kept"]
    assert (kept["value"], kept["unit"]) == (95.0, "%")
    assert (kept["hardware"], kept["commit"], kept["recorded"]) == ("NVIDIA H200", "abc1234", "2026-11-22")
    assert found["tgs", "harvest-to-antman"]["value"] == 0.1
    fairness = found["csur2017-survey", "fairness"]
    assert (fairness["value"], fairness["policy"]) == (1.5, "fair_share"), "a question that another policy answers"
    assert ("gemini", "request") not in found, "a phase that the run lacks gives nothing"
    assert list(figures_of({**RUN, "is_quick": True})) == []
    assert list(figures_of({**RUN, "benchmark": "remoting"})) == []
    assert list(figures_of([])) == []


def test_the_verdict_is_the_newest_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeps = Judgement(promise="p", figure="production-kept", holds_if=">=95%", reason="r")
    against = Judgement(promise="p", figure="production-kept", holds_if=">=99%", otherwise="contradicted", reason="r")
    nothing = Judgement(promise="p", reason="no MPS")
    put(tmp_path, "1")
    assert judged(monkeypatch, tmp_path, keeps, against, nothing) == ["reproduced", "contradicted", "not-runnable"]
    slowed = {"production_alone": 200.0, "production_beside": 100.0, "part": {"one": 0.5, "two": 0.05}}
    put(tmp_path, "2", date="2026-11-23T00:00:00+00:00", figures={**RUN["figures"], "tgs: promise": slowed})
    measured.cache_clear()
    assert judged(monkeypatch, tmp_path, keeps, nothing) == ["weaker", "not-runnable"]


def test_without_a_record_there_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeps = Judgement(promise="p", figure="production-kept", holds_if=">=95%", reason="r")
    assert judged(monkeypatch, tmp_path, keeps) == []


def test_verdicts_show_what_they_rest_on() -> None:
    rows = catalog.verdicts().records()
    assert {row["verdict"] for row in rows} <= set(OUTCOMES)
    assert {row["system"] for row in rows if row["measured"]} <= {system for system, _ in FIGURES}
    for row in rows:
        if row["measured"]:
            assert row["measured"]["hardware"]
            assert row["measured"]["commit"]
            assert row["measured"]["file"].startswith("benchmarks/results/")
        assert row["reason"]
    tgs = catalog.get("tgs")
    newest = next(each for each in verdicts_of(tgs) if each.records).records[-1]
    assert newest.sentence() in text.render(system_document(tgs), 100_000)
    assert "What was found here" in str(catalog.trial("tgs"))


@pytest.mark.parametrize(
    ("judgement", "sentence"),
    [
        (
            {"claim": "tolerence"},
            "verdicts 1 names the unknown or unverified claim 'tolerence'; did you mean 'tolerance'?",
        ),
        ({}, "verdicts 1 judges either a claim or a promise in words"),
        ({"promise": "p", "figure": "harvest"}, "verdicts 1 needs holds_if exactly if it names a figure"),
        (
            {"promise": "p", "figure": "harvst", "holds_if": ">1%"},
            "verdicts 1 names the figure 'harvst', which nothing records; did you mean 'harvest'?",
        ),
        (
            {"promise": "p", "figure": "harvest", "holds_if": ">=1ms"},
            "verdicts 1: '>=1ms' is no limit on a number in '%'; write for example >=95%",
        ),
    ],
)
def test_a_wrong_judgement_gets_a_sentence(judgement: dict[str, str], sentence: str) -> None:
    system = dataclasses.replace(entries()["tgs"], verdicts=[Judgement(reason="r", **judgement)])
    assert sentence in rules.problems_of(system)


def test_every_figure_is_judged_and_says_so_in_a_unit_of_the_taxonomy() -> None:
    judged = {(system.id, each.figure) for system in entries().values() for each in system.verdicts if each.figure}
    beside = {("rcuda", "overhead-far"), ("lupine", "chain-overhead"), ("dgsf", "start")}  # shown only
    assert judged == set(FIGURES) - beside
    assert {figure.unit for figure in FIGURES.values()} <= set(taxonomy().units)


def test_a_verdict_rests_on_the_median_of_its_runs_and_shows_their_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {"system": "tgs", "figure": "harvest", "quantity": "q", "unit": "%", "recorded": "2026-11-23"}
    record = {"catalogue": [{**about, "value": 5.0, "runs": [4.0, 5.0, 30.0]}], "is_quick": False}
    (tmp_path / "systems-tgs-1.json").write_text(json.dumps(record))
    (tmp_path / "systems-tgs-2.json").write_text(json.dumps({**record, "is_quick": True}))
    small = Judgement(promise="p", figure="harvest", holds_if="<10%", reason="r")
    assert judged(monkeypatch, tmp_path, small) == ["reproduced"]
    (found,) = verdicts_of(dataclasses.replace(entries()["tgs"], verdicts=[small]))
    assert "median of 3 runs, 4 to 30" in found.found
    assert found.found.count("4 to 30") == 1
    assert len(found.records) == 1, "a quick run is no record"


def test_older_records_stand_beside_the_newest_and_are_no_spread_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest is known by its time and not by the name of its file or by the day."""
    about = {"system": "tgs", "figure": "harvest", "quantity": "q", "unit": "%", "recorded": "2026-11-23"}
    for name, hour, value in (("z", 1, 40.0), ("y", 2, 60.0), ("a", 3, 5.0)):
        record = {"catalogue": {**about, "value": value, "runs": [value - 1, value, value + 1]}}
        (tmp_path / f"{name}.json").write_text(json.dumps({**record, "date": f"2026-11-23T0{hour}:00:00+00:00"}))
    small = Judgement(promise="p", figure="harvest", holds_if="<10%", reason="r")
    assert judged(monkeypatch, tmp_path, small) == ["reproduced"]
    (found,) = verdicts_of(dataclasses.replace(entries()["tgs"], verdicts=[small]))
    assert found.found.startswith("q: 5 % (median of 3 runs, 4 to 6; ")
    assert found.found.endswith("; 40 to 60 % in 2 older records")


def test_a_limit_is_compared_in_its_unit() -> None:
    assert within("<=4ms", 3999.0, "us")
    assert not within(">=0.95x", 94.9, "%")
    assert [within(">=25%, <=35%", number, "%") for number in (5, 30, 50)] == [False, True, False]
    with pytest.raises(CatalogError, match="'<=3s' is no limit on a number in '%'"):
        within(">=95%, <=3s", 1.0, "%")
    with pytest.raises(CatalogError, match="is no limit on a number in 'ms'"):
        within(">=95%", 3.0, "ms")


def test_who_measured_whom_names_both() -> None:
    rows = catalog.measurements().records()
    assert ("tally", "tgs") in {(row["by"], row["of"]) for row in rows}
    assert ("xsched", "gaiagpu") in {(row["by"], row["of"]) for row in rows}
    assert all(row["against"] or row["by"] != row["of"] for row in rows)
    assert all(row["confidence"] != "unverified" for row in rows)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_every_answer_is_judged_by_the_entries(question: Any) -> None:
    for answer, demands in question.answers.items():
        chosen = catalog.choose(**{question.name: answer})
        for each in chosen.suggestions:
            for demand in (*each.met, *each.open):
                terms = set(getattr(each.system.classification, demand.dimension).terms)
                if demand in each.met:
                    assert bool(terms & demand.terms) != demand.absent
                else:
                    assert terms <= {"not-stated", "not-applicable"}
        assert len(chosen.suggestions) + chosen.out[question.name] == sum(s.kind != "survey" for s in catalog.systems())
        assert bool(chosen.out) == bool(demands)


def test_answers_put_out_what_does_not_fit() -> None:
    strangers = catalog.choose(trusted="no", kubernetes="no", closed="yes", goal="latency")
    names = {each.system.id for each in strangers.suggestions}
    assert "nvidia-mig" in names
    assert not {"antman", "nvidia-mps", "cuda-streams", "kai-scheduler"} & names
    assert "rules out" in str(strangers)
    swapping = catalog.choose(oversubscription="yes")
    assert {each.system.id for each in swapping.suggestions if each.met} == set(catalog.search("unified memory").ids)
    assert "Do all tenants trust each other?" in str(Choice(catalog.systems(), {}))


def _recorded(system: str, kept: float, given: float) -> dict[str, Any]:
    about = {"system": system, "quantity": "q", "unit": "%", "recorded": "2026-11-23"}
    figures = [{**about, "figure": "production-kept", "value": kept}, {**about, "figure": "harvest", "value": given}]
    return {"date": "2026-11-23T00:00:00+00:00", "catalogue": figures}


@pytest.mark.parametrize(
    ("tgs", "antman", "front", "beside"),
    [
        ((98.0, 5.0), (96.0, 35.0), {"tgs", "antman"}, {"latency": "tgs", "throughput": "antman"}),
        ((95.0, 5.0), (96.0, 35.0), {"antman"}, {"latency": "antman", "throughput": "antman"}),
        ((96.0, 35.0), (96.0, 35.0), {"tgs", "antman"}, {}),
    ],
)
def test_what_was_measured_alike_is_held_against_each_other(
    tgs: tuple[float, float],
    antman: tuple[float, float],
    front: set[str],
    beside: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, figures in (("tgs", tgs), ("antman", antman)):
        (tmp_path / f"{name}.json").write_text(json.dumps(_recorded(name, *figures)))
    monkeypatch.setattr(fronts, "measured", lambda: measured(tmp_path))
    (field,) = fronts.FIELDS
    assert {point.system for point in fronts.points(field, ("tgs", "antman")) if point.is_front} == front
    assert [point.is_front for point in fronts.points(field, ("tgs",))] == ["tgs" in front], "also if asked for alone"
    for goal, best in beside.items():
        (table,) = [
            each for each in catalog.choose(goal=goal).document().blocks if "front" in getattr(each, "columns", ())
        ]
        assert table.rows[0][0] == catalog.get(best).name
    assert not fronts.points(field, ("reef",))


def test_a_measure_is_drawn_on_one_scale() -> None:
    drawn = catalog.plot("overhead")
    scene = drawn.scene()
    places = {dot.label: dot.x for dot in scene.dots if dot.label}
    assert places["0.9 %"] < places["below 4 %"] < places["7.2 %"] < places["188.9 %"]
    assert {words.text for words in scene.words if words.axis == "y"} >= {"REEF", "Tally", "rCUDA", "Guardian"}
    boxes = [dot.box for dot in scene.dots if dot.label]
    assert all(box[2] <= scene.width for box in boxes)
    assert catalog.plot("preemption").kind == "time"
    with pytest.raises(catalog.UnknownTerm, match="did you mean 'overhead'"):
        catalog.plot("overhed")


def test_what_was_found_here_stands_below_the_claim_that_it_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {"system": "rcuda", "quantity": "q", "recorded": "2026-11-23"}
    found = [
        {**about, "figure": "overhead", "unit": "%", "value": 5.0, "runs": [4.0, 5.0, 9.0]},
        {**about, "figure": "bandwidth-kept", "unit": "%", "value": 50.0},
    ]
    (tmp_path / "a.json").write_text(json.dumps({"catalogue": found}))
    monkeypatch.setattr(verdict, "measured", lambda: measured(tmp_path))
    scene = catalog.plot("overhead").scene()
    rows = [words.text for words in scene.words if words.axis == "y"]
    assert rows.count("rCUDA") == 2
    *runs, dot = [dot for dot in scene.dots if dot.group == "measured here"]
    assert dot.label == "5 % here: weaker"
    assert len(runs) == 2, "the least and the median; the greatest has the words"
    assert "median of 3 runs, 4 to 9" in dot.hint
    assert dot.hint in text.render(catalog.plot("overhead").document(), 100_000), "in a terminal too"
    claimed = next(dot for dot in scene.dots if dot.label == "below 4 %")
    assert min(run.x for run in runs) == claimed.x < dot.x
    others = catalog.plot("bandwidth").scene().dots
    assert not [dot for dot in others if dot.group == "measured here"], "a part of native is no GB/s"
