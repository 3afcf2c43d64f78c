"""The benchmark of the catalogue's systems runs without a GPU, and verdicts follow from records such as it writes."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from catalog import verdict
from catalog.figures import FIGURES, names
from catalog.loader import entries
from catalog.measured import measured
from catalog.verdict import OUTCOMES, verdicts_of

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(900)


def run(out: Path, systems: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/systems.py", "--device", "cpu", "--quick", "--only", systems, *options]
    return subprocess.run([*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, timeout=800)


def _of_policies(systems: str) -> object:
    """Return a case of phases that last: notebooks compete for the device, and a busy machine may starve one."""
    return pytest.param(systems, marks=pytest.mark.soak)


@pytest.mark.parametrize(
    "systems",
    [
        "rcuda,lupine",
        pytest.param("dgsf,dxpu,fractos,orionx,bitfusion,osr2023-serverless-gpu", marks=pytest.mark.soak),
        *map(
            _of_policies,
            ("kubeshare,gemini,gaiagpu", "tgs,antman", "reef,paella", "orion,muxflow,iadeep", "csur2017-survey"),
        ),
    ],
)
def test_each_system_is_measured_and_a_verdict_follows(
    systems: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(tmp_path, systems, "--runs", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    for path in tmp_path.glob("*.json"):
        record = json.loads(path.read_text())
        assert record["is_quick"] is True, "what was not measured on a GPU says so"
        assert {"commit", "machine", "versions", "raw", "date"} <= record.keys()
        raw = record["raw"]
        for links in raw["links"] if isinstance(raw, dict) else ():
            assert links["10 ms"]["value"] >= 0.01, "what the client knows by itself is not fetched"
        path.write_text(json.dumps({**record, "is_quick": False}))
    found = measured(tmp_path)
    assert set(found) == set(systems.split(","))
    monkeypatch.setattr(verdict, "measured", lambda: found)
    for system, records in found.items():
        assert {record.figure for record in records} == set(names(system))
        for record in records:
            assert (record.quantity, record.unit) == FIGURES[system, record.figure]
            assert len(record.runs) == 2
            assert all(map(math.isfinite, record.runs))
            assert min(record.runs) <= record.value <= max(record.runs)
        judged = [each for each in verdicts_of(entries()[system]) if each.judgement.figure]
        assert {each.judgement.figure for each in judged} == {
            each.figure for each in entries()[system].verdicts if each.figure
        }
        assert {each.outcome for each in judged} <= set(OUTCOMES) - {"not-runnable"}
        unrecorded = dataclasses.replace(entries()[system], id="nobody")
        assert not [each for each in verdicts_of(unrecorded) if each.judgement.figure]


def test_what_was_not_measured_on_a_gpu_gets_into_no_result(tmp_path: Path) -> None:
    refused = run(ROOT / "benchmarks" / "results", "rcuda")
    assert refused.returncode == 2
    assert "name another folder" in refused.stderr
    unknown = run(tmp_path, "rcuda,tsg")
    assert unknown.returncode == 2
    assert "tsg" in unknown.stderr
