"""A program that is killed while it writes."""

from __future__ import annotations

import subprocess
import sys


def last_said(program: str, *words: str, kill_at: int) -> int:
    """Run ``program``, which prints 1, 2, 3, ... as it goes; kill it at a number, and return the last that it printed.

    It may have done one thing more than it says: it may have died before it could say so.
    """
    writer = subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    with writer.stdout as lines:
        for line in lines:
            if int(line) == kill_at:
                writer.kill()
                break
        last = max([kill_at, *(int(rest) for rest in lines if rest.endswith("\n"))])
    writer.wait()
    return last
