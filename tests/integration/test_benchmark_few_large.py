"""The benchmark of few large ops runs as its documentation says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.benchmark_run import run_benchmark

pytestmark = pytest.mark.timeout(240)


def test_each_program_is_run_on_both_sides_and_gives_the_same(tmp_path: Path) -> None:
    told = run_benchmark(tmp_path, "benchmarks/few_large.py")
    for name in ("softmax", "layer_norm", "scaled_product", "rows_by_a_table"):
        (line,) = [one for one in told.splitlines() if name in one]
        assert line.count("µs") == 1
        assert "same bits" in line
    assert "differs" not in told
    assert "geometric mean of 8, from run 13 on" in told
