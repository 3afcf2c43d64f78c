"""The benchmark of the walls runs: it begins as an executor does, with walls and without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.executor import sandbox

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "walls.py"


@pytest.mark.skipif(not sandbox.level(), reason="this system cannot shut a process in")
def test_both_ways_are_measured() -> None:
    command = [sys.executable, str(BENCHMARK), "--device", "cpu", "--turns", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert sandbox.level() in head
    assert [row.split()[0] for row in rows] == ["walls", "device", "process"]
    took = {row.split()[0]: float(row.split()[4]) for row in rows}
    assert took["process"] > took["walls"] > 0, "it was shut in"
