"""The benchmark of whole programs runs as its documentation says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.benchmark_run import run_benchmark

pytestmark = pytest.mark.timeout(240)


def test_it_runs_programs_of_a_kind_and_counts_their_trips(tmp_path: Path) -> None:
    told = run_benchmark(tmp_path, "-m", "benchmarks.programs", "--rounds", "1", "uploads", "chance")
    assert "weighted_product" in told
    assert "random_walks" in told
    assert "8 programs" in told


def test_it_runs_them_from_afar(tmp_path: Path) -> None:
    """The near side is compared with itself, and a wait over the far link takes what the link does at least."""
    told = run_benchmark(tmp_path, "-m", "benchmarks.programs", "--rounds", "1", "--far", "20", "weighted_product")
    assert "weighted_product" in told
    found = re.search(r"20 ms: \S+ times as long as .* an empty wait (\S+) ms", told)
    assert found is not None, told
    assert float(found[1]) >= 20
