"""The benchmark of few large ops runs as its documentation says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.notebook_pool import environment

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(240)


def test_each_program_is_run_on_both_sides_and_gives_the_same(tmp_path: Path) -> None:
    with environment(tmp_path):
        command = [sys.executable, "benchmarks/few_large.py", "--device", "cpu"]
        done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    for name in ("softmax", "layer_norm", "scaled_product", "rows_by_a_table"):
        (line,) = [one for one in done.stdout.splitlines() if name in one]
        assert line.count("µs") == 1
        assert "same bits" in line
    assert "differs" not in done.stdout
    assert "geometric mean of 8, from run 13 on" in done.stdout
