"""A second machine for a benchmark's own pool, played on the same host: another address and another state directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from gpu_backend.engine.detached import ProcessId
from gpu_backend.pool import commands, joining, machines, state
from gpu_backend.pool.state import PoolState

_HERE, _ADDRESS = "127.0.0.1", "127.0.0.2"
_JOIN_SECONDS = 60.0


def heard_by_machines() -> dict[str, object]:
    """Return the settings of a pool that other machines may join."""
    with socket() as one, socket() as other:
        for each in (one, other):
            each.bind((_HERE, 0))
        ports = one.getsockname()[1], other.getsockname()[1]
    return {"listen_host": _HERE, "listen_port": ports[0], "nodes_host": _HERE, "nodes_port": ports[1]}


@contextmanager
def second_machine(head: PoolState, devices: str) -> Iterator[None]:
    """Have a machine that offers "cuda" or "cpu" ``devices`` as a node of the pool of ``head``."""
    with TemporaryDirectory(prefix="gwb") as directory:
        own = state.at(Path(directory, "second"))
        invited = machines.invite(head, "second", 1.0)
        try:
            joining.join(
                own, invited.address, invited.token, {"executor_host": _ADDRESS, "devices": devices}, ProcessId.mine()
            )
            until = monotonic() + _JOIN_SECONDS
            while len({device.node for device in commands.status(head).devices}) < 2:
                if monotonic() > until:
                    raise RuntimeError("the second machine has not joined")
                sleep(0.1)
            yield
        finally:
            commands.end_processes(own)
            shutil.rmtree(own.runtime, ignore_errors=True)
