"""An op of the CPU device that ends when the test says so, however slow the machine or whoever watches is."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu_backend.executor.config import OWN
from gpu_backend.node import launcher
from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import sessions, wait_until

#: A file in the executor's own folder, in which it runs: each ends one op.
_WORD = "go"
#: Makes the kernel ``slow``, and ``out``, which is what it takes.
HELD = (
    "import cupy as cp\n"
    'slow = cp.RawKernel(\'extern "C" int unlink(const char*); extern "C" int usleep(unsigned); '
    f'extern "C" __global__ void slow(double* out) {{ while (unlink("{_WORD}")) usleep(1000); out[0] = 1e65; }}\', '
    "'slow')\n"
    "out = cp.zeros(2)\n"
)


def let_go(pool: PoolState) -> None:
    """Have the op end that is held, or the next that would be; ``pool`` has one session."""
    word = _directory(pool) / OWN / _WORD
    word.touch()
    wait_until(lambda: not word.exists())


@contextmanager
def halted(pool: PoolState) -> Iterator[None]:
    """Keep the executor of the one session of ``pool`` from doing anything, wherever it just is."""
    executor = launcher.process_in(_directory(pool))
    assert executor is not None
    os.kill(executor.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(executor.pid, signal.SIGCONT)


def _directory(pool: PoolState) -> Path:
    (session,) = [one.session for one in sessions(pool)]
    orders = {directory: launcher.assignment_in(directory) for directory in launcher.directories(str(pool.runtime))}
    (found,) = [directory for directory, order in orders.items() if order is not None and order.session == session]
    return found
