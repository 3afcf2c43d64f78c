"""The simulation of a site runs at a small size, says that it is one, and follows from its seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import site
from gpu_backend.gateway.placing import RULES

SMALL = ["--users", "40", "--devices", "3", "--places", "8", "--seconds", "40", "--sample", "1", "--jobs", "1"]


def recorded(out: Path) -> dict[str, Any]:
    assert site.main([*SMALL, "--out", str(out)]) == 0
    (path,) = out.iterdir()
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_every_rule_is_compared_and_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = recorded(tmp_path / "first")
    assert "A simulation of 40 s" in capsys.readouterr().out
    assert first["is_simulation"] is True
    assert [run["placement"] for run in first["runs"]] == [*RULES, "spread"]
    assert [run["shares"] for run in first["runs"]] == ["of the pool"] * len(RULES) + ["of each device"]
    for run in first["runs"]:
        assert run["share_error"]["count"] > 0
        assert run["queue_seconds"]["count"] + run["unplaced"] > 40
        assert 0 < run["used_of_all"] <= run["used_of_wanted"] <= 1 + 1e-9
    assert recorded(tmp_path / "again")["runs"] == first["runs"]
