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
    told = {row[:52].strip(): [float(one) for one in row[52:].split()] for row in rows[:3] + rows[4:6]}
    freed = [[float(one) for one in row[52:].split()] for row in (rows[3], rows[6])]
    # Which of them is quicker hangs on who else wants the processors; a call is over before its place is free.
    assert all(0 < least <= median <= most for median, least, most in [*told.values(), *freed])
    for call, place in zip(("call, an executor is ready", "call, no executor is ready"), freed, strict=True):
        assert all(one <= other for one, other in zip(told[call], place, strict=True))
    assert {"sum in a session that is held", "call in a session that is kept"} < told.keys()
    assert any(name.startswith("map of 64 calls in up to 4 sessions") for name in told)
