"""What ``workbench doctor`` looks at on the machine that has a pool's gateway: whether somebody keeps it running."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import commands
from gpu_backend.pool.own_root import default_root
from gpu_backend.pool.state import PoolState, at
from workbench.finding import Finding, State


def findings(state: PoolState | None = None) -> Iterator[Finding]:
    """Check that the pool on this machine, if one is up, is supervised; else there is nothing to say."""
    state = state or at(default_root())
    if read_identity(state.process_file("gateway")) is not None and not commands.is_supervised(state):
        found = f"{commands.UNSUPERVISED}: a gateway that ends is not started again."
        yield Finding("pool's supervisor", State.PROBLEM, found, commands.SUPERVISE)
