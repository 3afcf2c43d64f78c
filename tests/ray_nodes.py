"""Nodes of Ray for tests: on loopback, with a token, ended as whole sessions of processes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import sleep

import pytest

from gpu_backend.engine.detached import ProcessId, end, spawn
from gpu_backend.engine.process_sessions import end_session
from gpu_backend.engine.ray_cluster import RayCluster, make_token
from tests.spare_ports import spare_port

_HAS_RAY = importlib.util.find_spec("ray") is not None
NEEDS_RAY = pytest.mark.skipif(not _HAS_RAY, reason="Ray is not installed here (the extra `ray`)")


#: What Ray says once a node is up.
_UP = "will now block forever"
#: Ray gives a node half a minute to start, which on a busy machine may not do: a supervisor would start it again.
_TRIES = 10


@dataclass(frozen=True)
class RayHead:
    """A running head."""

    cluster: RayCluster
    directory: Path


@contextmanager
def head_of_ray(node: str) -> Iterator[RayHead]:
    """Have a cluster of one node."""
    directory = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # short: the paths of sockets are limited
    cluster = RayCluster(f"127.0.0.1:{spare_port()}", directory / "token")
    make_token(cluster.token_file)
    store = directory / "gcs"
    store.mkdir()
    environment = cluster.head_environment(store)
    try:
        with running(cluster.head_command(node, directory / "t"), environment, directory / "head.log"):
            yield RayHead(cluster, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[Callable[[], None]]:
    """Have a node of Ray for a while; what is given kills it at once, as the loss of a machine does."""
    for _ in range(_TRIES):
        process = spawn(command, log, log.parent, environment=environment)
        session = ProcessId(os.getsid(process.pid), process.start_time)
        try:
            while process.is_running and _UP not in log.read_text():
                sleep(0.05)
            if process.is_running:
                yield partial(_kill, process, session)
                return
        finally:
            _kill(process, session)
    pytest.fail(f"Ray did not start: {log.read_text()[-2000:]}")


def _kill(process: ProcessId, session: ProcessId) -> None:
    """Kill a node with all that it has started, but agents, which have sessions of their own."""
    end(process, 0.0)
    end_session(session)
