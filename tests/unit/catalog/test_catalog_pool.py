"""From a system to this pool: carriers read off the code, our own figures read off the benchmarks' records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import catalog
from catalog import carriers, publish
from catalog.carried import STATUSES, carrier_title, status
from catalog.measured import Measured, measured
from catalog.tryout import Trial


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A tree with two policies, the seam beside them, and a module that defines things."""
    policies = tmp_path / "gpu_backend" / "arbiter" / "policies"
    policies.mkdir(parents=True)
    for name in ("__init__", "base", "_shares", "tgs", "fair_share"):
        (policies / f"{name}.py").write_text("")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("VERSION: int = 1\n")
    (tmp_path / "package" / "module.py").write_text(
        "class One(\n    object,\n):\n    field: int\n\n    async def method(self) -> None: ...\n\n\n"
        "class Two:\n    other: int\n\n\ndef function() -> None: ...\n"
    )
    return tmp_path


def test_policies_are_the_modules_beside_the_seam(code: Path) -> None:
    assert carriers.policies(code) == ("fair_share", "tgs")
    assert carriers.available("policy:tgs", code)
    assert not carriers.available("policy:base", code)
    assert not carriers.available("policy:gemini", code)
    assert carriers.policies(code / "nowhere") == ()


@pytest.mark.parametrize(
    ("dotted", "there"),
    [
        ("package", True),
        ("package:VERSION", True),
        ("package.module", True),
        ("package.module:One", True),
        ("package.module:One.field", True),
        ("package.module:One.method", True),
        ("package.module:Two.other", True),
        ("package.module:function", True),
        ("package.module:One.other", False),
        ("package.module:field", False),
        ("package.module:Three", False),
        ("package.missing", False),
        ("missing", False),
    ],
)
def test_a_feature_is_there_when_what_provides_it_is(code: Path, dotted: str, there: bool) -> None:
    assert carriers._is_there(dotted, code) == there


def test_a_feature_needs_everything_that_provides_it(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feature = carriers.Feature("x", "an x", ("package", "package.module:One"))
    lacking = carriers.Feature("y", "a y", ("package", "package.missing"))
    monkeypatch.setattr(carriers, "features", lambda: {"x": feature, "y": lacking})
    assert carriers.available("feature:x", code)
    assert not carriers.available("feature:y", code)
    assert not carriers.available("feature:z", code)
    assert carrier_title("feature:x") == "an x"
    assert carrier_title("policy:tgs") == "policy tgs"


def test_the_status_follows_the_carriers(monkeypatch: pytest.MonkeyPatch) -> None:
    rcuda = catalog.get("rcuda")
    there: set[str] = set()
    monkeypatch.setattr(carriers, "available", there.__contains__)
    assert status(rcuda) == "planned"
    assert "how, once there" in str(Trial(rcuda)), "what is only planned must not read as a fact"
    assert "how, once there" in str(rcuda)
    there.add(rcuda.pool.carriers[0])
    assert status(rcuda) == "idea"
    assert "how, once all is there" in str(rcuda)
    there.update(rcuda.pool.carriers)
    assert status(rcuda) == "idea"
    assert "A cell to run" in str(Trial(rcuda))
    assert "how, once" not in str(Trial(rcuda))
    slicing = catalog.get("nvidia-time-slicing")
    there.remove(slicing.pool.carriers[0])
    assert status(slicing) == "part", "whole, but for what is not there yet"
    there.update(slicing.pool.carriers)
    assert status(slicing) == "whole"
    assert {status(system) for system in catalog.systems()} <= set(STATUSES)
    assert all(status(system) == "not carried" for system in catalog.systems() if not system.pool.carriers)


def test_our_figures_are_found_wherever_a_benchmark_recorded_them(tmp_path: Path) -> None:
    one = {"system": "tgs", "quantity": "production throughput", "value": 0.98, "unit": "x", "policy": "tgs"}
    other = {"system": "reef", "quantity": "start delay", "value": 1.5, "unit": "ms", "recorded": "2026-11-21"}
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.json").write_text(json.dumps({"runs": [{"catalogue": one}], "other": 1}))
    (tmp_path / "deep" / "b.json").write_text(json.dumps([{"catalogue": [other, {**other, "value": 2}]}]))
    (tmp_path / "c.json").write_text(json.dumps({"nothing": "here"}))
    found = measured(tmp_path)
    assert [each.value for each in found["reef"]] == [1.5, 2.0]
    assert found["tgs"][0].sentence() == ("production throughput: 0.98x (policy tgs; benchmarks/results/a.json)")
    assert "1.5 ms (2026-11-21; benchmarks/results/deep/b.json)" in found["reef"][0].sentence()
    assert measured(tmp_path / "missing") == {}


def test_a_trial_shows_their_claim_beside_our_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = catalog.trial("tgs")
    assert "up to 15x" in str(trial)
    figure = Measured(system="tgs", quantity="production throughput", value=0.98, unit="x")
    monkeypatch.setattr("catalog.tryout.measured", dict)
    assert "nothing recorded yet" in str(trial)
    monkeypatch.setattr("catalog.tryout.measured", lambda: {"tgs": (figure,)})
    assert "production throughput: 0.98x" in str(trial)


def test_recorded_figures_name_systems_and_claims_that_exist() -> None:
    for name, figures in measured().items():
        claims = {claim.id for claim in catalog.get(name).claims}
        assert all(not figure.claim or figure.claim in claims for figure in figures)


def test_what_is_published_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert publish.main(["--check"]) == 0, capsys.readouterr().out


def test_an_outdated_page_is_noticed(tmp_path: Path) -> None:
    for name, text in publish.published().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("`sharing`", "`sharin`").replace('"Slug"', '"Slg"'))
    assert publish.outdated(tmp_path) == ["docs/reference/catalogue.md"]


def test_a_trial_shows_the_newest_of_each_figure_and_how_to_measure_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day, harvest in (("2026-11-21", 5.0), ("2026-11-23", 7.0), ("2026-11-22", 6.0)):
        about = {"system": "tgs", "quantity": "q", "unit": "%", "recorded": day}
        records = [{**about, "figure": "harvest", "value": harvest}, {**about, "figure": "kept", "value": 90 + harvest}]
        (tmp_path / f"systems-tgs-{day}.json").write_text(json.dumps({"catalogue": records}))
    monkeypatch.setattr("catalog.tryout.measured", lambda: measured(tmp_path))
    trial = Trial(catalog.get("tgs"))
    assert [each.value for each in trial.measured] == [7.0, 97.0]
    assert "python benchmarks/systems.py --only tgs" in str(trial)
    assert "benchmarks/systems.py" not in str(Trial(catalog.get("lithos")))
