"""What a process gives up for good, seen in one that did."""

from __future__ import annotations

import subprocess
import sys

DROPPED = """
import resource
from gpu_backend.executor.sandbox import privileges
resource.setrlimit(resource.RLIMIT_NOFILE, (1_000, 1_000))
privileges.drop()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_it_may_have_half_the_descriptors_of_the_pools_own_processes() -> None:
    done = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(500, 500)"
