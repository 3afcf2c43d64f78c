"""A malformed entry gets one sentence per mistake, with the nearest valid name."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalog import carriers, rules
from catalog.check import check_files, main
from catalog.entry import System
from catalog.loader import entries
from catalog.paths import ENTRIES
from catalog.validation import MalformedEntry, validate

GOOD = tomllib.loads((ENTRIES / "tgs.toml").read_text())

Change = Callable[[dict[str, Any]], object]


def problems(change: Change) -> list[str]:
    """Return what the checks say of the TGS entry after ``change``."""
    data = copy.deepcopy(GOOD)
    change(data)
    try:
        return rules.problems_of(validate(data, "tgs.toml"))
    except MalformedEntry as refused:
        return refused.problems


def test_the_unchanged_entry_is_good() -> None:
    assert problems(lambda data: None) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.update(yaer=d.pop("year")), "unknown field 'yaer'; did you mean 'year'?"),
        (lambda d: d.pop("year"), "the field 'year' is missing"),
        (lambda d: d.update(year="2023"), "year: input should be a valid integer, not '2023'"),
        (lambda d: d.update(id="TGS 2"), "id is malformed: 'TGS 2'"),
        (lambda d: d["code"].update(availability="opn"), "availability in code may not be 'opn'; did you mean 'open'?"),
        (
            lambda d: d["claims"][0].update(confidence="hihg"),
            "confidence in claims.0 may not be 'hihg'; did you mean 'high'?",
        ),
        (
            lambda d: d["claims"][0].update(vlaue=3),
            "unknown field 'vlaue' in claims.0; did you mean 'value'?",
        ),
        (
            lambda d: d["claims"][0]["conditions"].update(hardwear="x"),
            "unknown field 'hardwear' in claims.0.conditions; did you mean 'hardware'?",
        ),
        (lambda d: d["links"][0].update(url="usenix.org"), "url in links.0 is malformed: 'usenix.org'"),
        (lambda d: d["publications"][0].update(doi="doi:10.1/x"), "doi in publications.0 is malformed: 'doi:10.1/x'"),
    ],
)
def test_a_wrong_shape(change: Change, sentence: str) -> None:
    assert sentence in problems(change)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d["problem"].update(sources=[]), "problem names no source"),
        (
            lambda d: d["mechanism"][1].update(sources=["cod"]),
            "mechanism 2 names the source 'cod', which is not declared; did you mean 'code'?",
        ),
        (lambda d: d["claims"][0].update(sources=[]), "the claim 'opportunistic-throughput' names no source"),
        (lambda d: d["sources"].append({**d["sources"][0], "id": "more"}), "nothing refers to the source 'more'"),
        (lambda d: d["sources"].append(d["sources"][0]), "the source 'abstract' is declared 2 times"),
        (lambda d: d["sources"][0].pop("url"), "the source 'abstract' has neither url nor doi"),
        (
            lambda d: next(s for s in d["sources"] if s["id"] == "reading-list").pop("url"),
            "classification.category rests on nothing that has an address, so its confidence can be 'low' at most",
        ),
        (
            lambda d: d["classification"]["sharing"].update(terms=["tempral"]),
            "'tempral' is no term of the dimension 'sharing'; did you mean 'temporal'?",
        ),
        (
            lambda d: d["classification"]["sharing"].update(terms=[]),
            "classification.sharing has no term; use 'not-stated' if nothing says",
        ),
        (
            lambda d: d["claims"][0].update(unit="times"),
            "the claim 'opportunistic-throughput' has the unknown unit 'times'",
        ),
        (
            lambda d: d["claims"][0].update(measure="troughput"),
            "the claim 'opportunistic-throughput' has the unknown measure 'troughput'; did you mean 'throughput'?",
        ),
        (
            lambda d: d["claims"][0].update(form="amount"),
            "the claim 'opportunistic-throughput' is so many times something, so its form cannot be 'amount'",
        ),
        (
            lambda d: d["claims"][0].update(form="times-less"),
            "the claim 'opportunistic-throughput' is of 'throughput' and 'times-less', so 'lower' is better,",
        ),
        (
            lambda d: d["claims"][0].update(unit="s"),
            "the claim 'opportunistic-throughput' stands in s, so its form can only be 'amount'",
        ),
        (
            lambda d: d["pool"].pop("extent"),
            "pool.extent says how much the carriers carry, so it is there exactly if they are",
        ),
        (
            lambda d: d["claims"][0].update(expression="a lot"),
            "the claim 'opportunistic-throughput' needs either a value or an expression",
        ),
        (
            lambda d: d["claims"][0].pop("unit"),
            "the claim 'opportunistic-throughput' needs a unit exactly if it has a value",
        ),
        (
            lambda d: d["claims"][0].update(bound="between"),
            "the claim 'opportunistic-throughput' needs value_to exactly if its bound is 'between' or 'from-to'",
        ),
        (
            lambda d: d["claims"][0].pop("conditions"),
            "the claim 'opportunistic-throughput' is a result without conditions",
        ),
        (
            lambda d: d["claims"][0].update(confidence="unverified"),
            "the claim 'opportunistic-throughput' is unverified and must say in its note where it was seen",
        ),
        (lambda d: d["claims"].append(d["claims"][0]), "the claim 'opportunistic-throughput' is there twice"),
        (
            lambda d: d["publications"][0].update(month="April"),
            "the publication 'wu2023tgs' has the unknown month 'April'",
        ),
        (
            lambda d: d["publications"][0].pop("container"),
            "the publication 'wu2023tgs' needs its container (proceedings or journal)",
        ),
        (
            lambda d: d["publications"][0].pop("url"),
            "the publication 'wu2023tgs' needs a doi, an arxiv number or a url",
        ),
        (
            lambda d: d["pool"].update(headline="oportunistic-throughput"),
            "pool.headline names the unknown claim 'oportunistic-throughput'; did you mean 'opportunistic-throughput'?",
        ),
        (
            lambda d: d["pool"].update(carriers=["feature:op-remotin"]),
            "pool.carriers names the unknown feature 'op-remotin'; did you mean 'op-remoting'?",
        ),
        (
            lambda d: d["pool"].update(carriers=["policy:tsg"]),
            "pool.carriers names the unknown policy 'tsg'; did you mean 'tgs'?",
        ),
        (
            lambda d: d["pool"].update(faithful=[], differs=[]),
            "pool names carriers but neither what is faithful nor what differs",
        ),
        (
            lambda d: d.update(tables=[{"title": "T", "columns": ["a", "b"], "rows": [["1"]], "sources": ["code"],
                                        "confidence": "high"}]),
            "the table 'T' has rows that are not 2 cells long",
        ),
    ],
)  # fmt: skip
def test_a_wrong_content(change: Change, sentence: str) -> None:
    assert any(found.startswith(sentence) for found in problems(change)), problems(change)


def pair(**changes: Any) -> list[System]:
    """Return TGS and AntMan, TGS with other relations."""
    data = {**copy.deepcopy(GOOD), **changes}
    return [validate(data, "tgs.toml"), entries()["antman"]]


@pytest.mark.parametrize(
    ("relations", "sentence"),
    [
        ([("see-also", "antmn")], "has an unknown target; did you mean 'antman'?"),
        ([("see-also", "tgs")], "points at itself"),
        ([("see-also", "antman"), ("see-also", "antman")], "is there twice"),
    ],
)
def test_a_wrong_relation(relations: list[tuple[str, str]], sentence: str) -> None:
    stated = [{"kind": kind, "target": target, "sources": ["code"]} for kind, target in relations]
    assert any(found.endswith(sentence) for found in rules.problems_between(pair(relations=stated)))


def test_a_directed_relation_cannot_be_stated_from_both_ends() -> None:
    one, other = pair()
    antman = tomllib.loads((ENTRIES / "antman.toml").read_text())
    antman["relations"] = [{"kind": "compares-with", "target": "tgs", "sources": [antman["sources"][0]["id"]]}]
    found = rules.problems_between([one, validate(antman, "antman.toml")])
    assert any("is stated in both directions" in sentence for sentence in found)
    assert other.id == "antman"


def test_names_and_keys_are_used_once() -> None:
    found = rules.problems_between([entries()["tgs"], validate({**GOOD, "id": "tgs-two"}, "tgs-two.toml")])
    assert "the BibTeX key 'wu2023tgs' is used 2 times" in found
    assert "the name 'tgs' belongs to 2 systems" in found


def test_a_policy_in_the_code_must_be_in_an_entry_and_the_other_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = list(entries().values())
    monkeypatch.setattr(carriers, "policies", lambda: ("lottery", "tgs"))
    found = rules.problems_between(everything)
    assert "the policy 'lottery' is in the code but no entry names it in pool.carriers" in found
    assert ("carriers.toml: the policy 'tgs' is in the code; take it out of 'planned'" in found) == (
        "tgs" in carriers.planned_policies()
    )
    monkeypatch.setattr(carriers, "policies", lambda: ())
    monkeypatch.setattr(carriers, "planned_policies", lambda: ("stride",))
    assert "carriers.toml: the planned policy 'stride' is named by no entry" in rules.problems_between(everything)
    assert any("the unknown policy 'tgs'" in sentence for sentence in rules.problems_of(entries()["tgs"]))


def test_a_feature_is_in_the_code_or_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """What provides a feature may move: without this its systems would fall back to planned, and nobody would see."""
    there, moved = "catalog.carriers:available", "catalog.elsewhere:available"
    known = carriers.features()
    changed = {
        "gpu-lease": carriers.Feature("gpu-lease", "t", (there, moved)),
        "mps-mode": carriers.Feature("mps-mode", "t", (there,), is_planned=True),
        "stream-mode": carriers.Feature("stream-mode", "t", (moved,), is_planned=True),
    }
    monkeypatch.setattr(carriers, "features", lambda: {**known, **changed})
    assert [each for each in rules.problems_between(list(entries().values())) if "feature" in each] == [
        "carriers.toml: the feature 'mps-mode' is in the code; take 'planned' out",
        f"carriers.toml: the code has no {moved}, which is to provide the feature 'gpu-lease'",
    ]


def test_an_available_carrier_needs_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carriers, "available", lambda name: True)
    assert "every carrier is available in the code, so pool.cell must show it" in problems(
        lambda d: d["pool"].update(cell="")
    )


def test_texts_leave_figures_to_the_verdicts() -> None:
    """A text that names a recorded file stays behind when a newer record comes."""
    said = "pool or verdicts name a file of benchmarks/results; say the reason, the verdict shows the newest figure"
    assert said in problems(lambda d: d["pool"].update(how="5 % in benchmarks/results/sharing-cuda-1"))
    assert said in problems(lambda d: d["verdicts"][0].update(reason="see benchmarks/results/a.json"))


def test_orphan_terms_are_found() -> None:
    found = rules.orphan_terms([entries()["tgs"]])
    assert "interception.pcie" in found
    assert "interception.cuda-driver-api" not in found
    assert "units.images/s" in found


def test_the_command_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tsg.toml"
    path.write_text((ENTRIES / "tgs.toml").read_text().replace("year = 2023", "yaer = 2023", 1))
    assert main([str(path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "tsg.toml: unknown field 'yaer'; did you mean 'year'?" in said
    path.write_text("id = ")
    assert check_files([path])[0].startswith("tsg.toml: not valid TOML:")
    path.write_text((ENTRIES / "tgs.toml").read_text())
    assert check_files([path], alone=True) == ["tsg.toml: the id is 'tgs' but the file is named 'tsg'"]


def test_the_command_is_content_with_a_good_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(ENTRIES / "tgs.toml")]) == 0
    assert capsys.readouterr().out == "1 entries, no problem found\n"
