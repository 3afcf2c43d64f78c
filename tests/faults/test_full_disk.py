"""A pool whose disk is full: refusals in one sentence, nothing given halfway, nothing lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.apart import APART, needs_mounts


@needs_mounts
def test_a_pool_on_a_full_disk_gives_nothing_halfway(tmp_path: Path) -> None:
    command = [*APART, sys.executable, str(Path(__file__).with_name("full_disk.py")), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
