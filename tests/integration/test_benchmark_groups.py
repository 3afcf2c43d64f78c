"""The benchmark of process groups runs as its documentation says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.benchmark_run import run_benchmark

pytestmark = pytest.mark.timeout(240)


def test_two_ranks_are_measured(tmp_path: Path) -> None:
    told = run_benchmark(tmp_path, "benchmarks/groups.py")
    assert re.search(r"1,024 KiB +[\d.]+ µs +[\d.]+ GB/s", told), told
