"""The benchmark of whole programs runs as its documentation says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.notebook_pool import environment

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(240)


def test_it_runs_programs_of_a_kind_and_counts_their_trips(tmp_path: Path) -> None:
    with environment(tmp_path):
        command = [sys.executable, "-m", "benchmarks.programs", "--device", "cpu", "--rounds", "1", "uploads", "chance"]
        done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "weighted_product" in done.stdout
    assert "random_walks" in done.stdout
    assert "8 programs" in done.stdout


def test_it_runs_them_from_afar(tmp_path: Path) -> None:
    """The near side is compared with itself, and a wait over the far link takes what the link does at least."""
    with environment(tmp_path):
        options = ["--device", "cpu", "--rounds", "1", "--far", "20", "weighted_product"]
        command = [sys.executable, "-m", "benchmarks.programs", *options]
        done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "weighted_product" in done.stdout
    found = re.search(r"20 ms: \S+ times as long as .* an empty wait (\S+) ms", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) >= 20
