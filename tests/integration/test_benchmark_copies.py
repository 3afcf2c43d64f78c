"""The benchmark of copies runs as its documentation says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.notebook_pool import environment

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(240)


def test_it_copies_by_every_way_and_beside_native(tmp_path: Path) -> None:
    with environment(tmp_path):
        command = [sys.executable, "benchmarks/copies.py", "--device", "cpu", "--most", "1"]
        done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for name in ("up 4 KiB", "up 1 MiB", "down 1 MiB"):
        (line,) = [one for one in lines if name in one]
        assert line.count("GB/s") == 3
    assert "8 MiB" not in done.stdout
    assert "the same 1 MiB again, over TLS, 10 ms away, 1 Gb/s" in done.stdout
