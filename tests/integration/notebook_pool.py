"""A pool on the CPU device, and a Jupyter that finds our kernel and nothing of the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import workbench
from gpu_backend.node import launcher
from gpu_backend.pool import commands, state
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.transport.asking import ask
from gpu_backend.wire.views import SessionView
from tests.spare_ports import spare_ports

KERNELSPEC = Path(workbench.__file__).parent / "kernelspec"


@contextmanager
def environment(root: Path) -> Iterator[pytest.MonkeyPatch]:
    """Keep everything that Jupyter, IPython and we write below ``root``."""
    kernels = root / "jupyter" / "kernels"
    kernels.mkdir(parents=True)
    (kernels / "remote-gpu").symlink_to(KERNELSPEC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root))
        patch.setenv("JUPYTER_PATH", str(kernels.parent))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(root / "runtime"))
        patch.setenv("JUPYTER_CONFIG_DIR", str(root / "jupyter-config"))
        patch.setenv("JUPYTER_DATA_DIR", str(root / "jupyter-data"))
        patch.setenv("IPYTHONDIR", str(root / "ipython"))
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        patch.setenv("XDG_CONFIG_HOME", str(root / "config"))
        patch.setenv("XDG_STATE_HOME", str(root / "state"))
        patch.delenv("GPU_WORKBENCH_CONFIG", raising=False)
        patch.delenv("GPU_WORKBENCH_TICKET", raising=False)
        be_patient(patch)
        yield patch


def open_to_machines(**more: Any) -> PoolSettings:
    """Return settings of a pool that other machines can join, of CPU devices unless ``more`` says otherwise."""
    ports = spare_ports(2)
    here = {"listen_host": "127.0.0.1", "listen_port": ports[0], "nodes_host": "127.0.0.1", "nodes_port": ports[1]}
    return PoolSettings(**{"devices": "cpu", **here, **more})


@contextmanager
def cpu_pool(root: Path, settings: PoolSettings | None = None) -> Iterator[state.PoolState]:
    """Have a pool, with this process's settings pointing to it."""
    own = state.at(root / "pool")
    with environment(root) as patch:
        try:
            config = commands.embedded(own, settings or PoolSettings(devices="cpu"))
            patch.setenv("GPU_WORKBENCH_CONFIG", str(config))
            yield own
        finally:
            commands.down(own)


@contextmanager
def warm_pool(root: Path, settings: PoolSettings | None = None) -> Iterator[state.PoolState]:
    """Have a `cpu_pool` in which an executor is ready: no notebook says that it waits for one."""
    with cpu_pool(root, settings) as own:
        wait_until(lambda: warm(own))
        yield own


def warm(pool: state.PoolState) -> int:
    """Return how many executors listen and serve nobody: so many sessions are had at once."""
    ready = [one for one in launcher.directories(str(pool.runtime)) if launcher.is_ready(one)]
    return sum(launcher.assignment_in(one) is None and launcher.process_in(one) is not None for one in ready)


def be_patient(patch: pytest.MonkeyPatch) -> None:
    """Have this process wait longer than people do for an answer of a pool, unless it says how long."""
    patch.setattr(ask, "__defaults__", (ANSWER_SECONDS,))


def sessions(pool: state.PoolState) -> tuple[SessionView, ...]:
    return commands.status(pool).sessions


#: How long a state is waited for, seconds: long enough on a machine that others keep busy, and less than it takes until
#: a pool does anything by itself, as when an executor was orphaned or a lease has run out.
STATE_SECONDS = 90.0

#: How long an answer is waited for, seconds: longer than a machine keeps a gateway from the processor. What was lost
#: with a gateway that died is given up in time for another question.
ANSWER_SECONDS = 20.0


def wait_until(condition: Callable[[], object], seconds: float = STATE_SECONDS) -> None:
    """Wait for a state; fail if it does not come."""
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, "it never happened"
        sleep(0.01)
