"""The benchmark of copies from device to device runs as its documentation says, and says what passed the notebook."""

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


def test_what_is_copied_from_device_to_device_does_not_pass_the_notebook(tmp_path: Path) -> None:
    with environment(tmp_path):
        command = [sys.executable, "benchmarks/peers.py", "--device", "cpu"]
        done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert re.search(r"1,024 KiB  remote +[\d.]+ µs", done.stdout), done.stdout
    passed = re.search(r"^([\d,]+) bytes of arrays passed", done.stdout, re.MULTILINE)
    assert passed is not None, done.stdout
    assert int(passed[1].replace(",", "")) < 1_000
