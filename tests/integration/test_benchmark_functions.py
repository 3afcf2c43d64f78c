"""The benchmark of functions runs, and its rows agree with each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "functions.py"


def test_a_call_is_measured_warm_and_cold_beside_a_session_that_is_held() -> None:
    command = [sys.executable, str(BENCHMARK), "--device", "cpu", "--turns", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.startswith("cpu; ms")
    held, kept, warm, warm_freed, mapped, cold, cold_freed = (float(row[52:].split()[1]) for row in rows)
    assert 0 < held < kept < warm <= warm_freed, "what is there costs less"
    assert kept < cold <= cold_freed
    assert mapped < cold, "the calls of a map share sessions"
