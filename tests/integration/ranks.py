"""Programs that are ranks of a process group: each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_backend.pool import commands
from gpu_backend.pool.state import PoolState
from gpu_backend.transport.asking import ask
from gpu_backend.wire.control import CloseSession
from tests.integration.notebook_pool import sessions, wait_until

ROOT = Path(__file__).parents[2]
#: Whatever else its owner has on it.
_PATH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
RUN = (sys.executable, "-m", "workbench", "run", "-c")
#: What each rank's program begins with: its rank, how many there are, and where a group meets.
_HEAD = """
import json, os, sys, warnings
import numpy as np
import cupy as cp
from cupyx.distributed import NCCLBackend, init_process_group
from cupyx.scipy import sparse

rank, size = int(os.environ["RANK"]), int(os.environ["SIZE"])
"""


class Ranks:
    """A program on each of some ranks, one process each."""

    def __init__(self, program: str, size: int, ranks: Sequence[int] | None = None, **more: str) -> None:
        self._running = [
            subprocess.Popen(
                [*RUN, _HEAD + textwrap.dedent(program)], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": _PATH, "RANK": str(rank), "SIZE": str(size), **more},
            )
            for rank in (range(size) if ranks is None else ranks)
        ]  # fmt: skip

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *of: object) -> None:
        for one in self._running:
            one.kill()
            one.communicate()

    def said(self) -> list[str]:
        """Wait until all have ended well; return what each has printed."""
        told = self._ended()
        assert [errors for _, errors in told] == [""] * len(told)
        return [out for out, _ in told]

    def found(self) -> list[Any]:
        """Likewise, of programs that print one line of JSON."""
        return [json.loads(out) for out in self.said()]

    def errors(self) -> list[str]:
        """Wait until all have ended; return the last line of what each said on standard error."""
        return [(errors.rstrip().splitlines() or [""])[-1] for _, errors in self._ended()]

    def _ended(self) -> list[tuple[str, str]]:
        for one in self._running:  # before any is waited for: those that read may be waited for by others
            if one.stdin is not None:
                one.stdin.close()
                one.stdin = None
        return [one.communicate(timeout=200) for one in self._running]

    def line(self, of: int) -> str:
        """Return the next line that one prints."""
        stdout = self._running[of].stdout
        assert stdout is not None
        return stdout.readline()

    def signal(self, which: int, number: signal.Signals) -> None:
        self._running[which].send_signal(number)


def ranks(program: str, size: int, **more: Any) -> list[Any]:
    with Ranks(program, size, **more) as running:
        return running.found()


def end_all(pool: PoolState) -> None:
    """End all sessions of a pool, as those of ranks that were killed go on for a while; return when they are gone."""
    for one in sessions(pool):
        ask(commands.operator_door(pool), CloseSession(0, one.session))
    wait_until(lambda: sessions(pool) == ())
