"""Benchmarks as their documentation says to run them, without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.integration.notebook_pool import environment

_ROOT = Path(__file__).parents[2]


def run_benchmark(root: Path, *arguments: str) -> str:
    """Run Python with these ``arguments``, on the CPU device and with all files in ``root``; return what it prints."""
    with environment(root):
        command = [sys.executable, *arguments, "--device", "cpu"]
        done = subprocess.run(command, cwd=_ROOT, env=os.environ, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout
