"""A pool for one benchmark, and the processes that are measured in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, perf_counter, sleep
from types import TracebackType
from typing import Any

from jupyter_client.manager import KernelManager

import workbench
from gpu_backend.node import launcher
from gpu_backend.node import settings as node_settings
from gpu_backend.pool import commands, state
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.wire.views import PoolView

_SIDE = Path(__file__).parent / "remoting_side.py"
_SECONDS = 900
_KERNEL_STARTS = 4
_TURNS = 5


class OwnPool:
    """A pool in a directory of its own, ended with the benchmark.

    Attributes
    ----------
    device_kind
        "cuda" or "cpu": what it turned out to offer.
    environment
        For processes that shall use it.
    config
        The settings file of its clients.
    state
        Where its files are.

    Parameters
    ----------
    settings
        Settings of the pool other than the device and its one warm executor.
    """

    def __init__(self, device: str, **settings: Any) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="gw-"))
        self.state = state.at(self._root / "pool")
        self._settings = PoolSettings(**{"devices": device, "warm_executors_per_device": 1, **settings})

    def __enter__(self) -> OwnPool:
        self.config = config = commands.embedded(self.state, self._settings)
        self.device_kind = commands.status(self.state).devices[0].kind
        if self.device_kind == "cuda":
            self._wait_for_usual_kernels()
        kernels = self._root / "jupyter" / "kernels"
        kernels.mkdir(parents=True)
        (kernels / "remote-gpu").symlink_to(Path(workbench.__file__).parent / "kernelspec")
        self.environment = {
            **os.environ,
            "GPU_WORKBENCH_CONFIG": str(config),
            "JUPYTER_PATH": str(kernels.parent),
            "IPYTHONDIR": str(self._root / "ipython"),
            # A read that the notebook answers itself says nothing of what waiting costs. By its name: checkouts that
            # know no such setting are measured too.
            "GPU_WORKBENCH_HOST_MIRROR": "off",
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        commands.down(self.state)
        shutil.rmtree(self._root, ignore_errors=True)

    def _wait_for_usual_kernels(self) -> None:
        """Wait until what the pool compiles beforehand is there, which its first start on a machine takes a while for.

        An older checkout compiles nothing: for that, half a minute is waited in vain.
        """
        folder = Path(node_settings.read(self.state.node).cache_dir) / "prepared"
        until = monotonic() + 30
        while monotonic() < until and not any(folder.glob("*.ready")):
            sleep(0.05)

    def view(self) -> PoolView:
        """Return the pool as its operator sees it."""
        return commands.status(self.state)

    @property
    def is_warm(self) -> bool:
        """Whether an executor is ready to take a session; one that has had its own leaves its directory for a while."""
        found = [one for one in launcher.directories(str(self.state.runtime)) if launcher.is_ready(one)]
        return any(launcher.assignment_in(one) is None and launcher.process_in(one) is not None for one in found)

    def wait_for_warm(self) -> None:
        """Wait until no session is held and an executor is ready to take the next."""
        until = monotonic() + 60
        while monotonic() < until:
            if not self.view().sessions and self.is_warm:
                return
            sleep(0.05)
        raise RuntimeError("No executor became ready within 60 s.")


def measure_in_turns(device: str, environment: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what native CuPy and CuPy through the pool do at their best, of several processes of each in turns.

    A process keeps to one core for most of its life, and a core of a shared host can be half as fast as the next.
    """
    turns = [(_measure("native", device, environment), _measure("remote", device, environment)) for _ in range(_TURNS)]
    native, remote = zip(*turns, strict=True)
    return _best(native), _best(remote)


def _best(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    best = dict(runs[0])
    for name in best:
        if name.endswith(("_s", "_us")):
            best[name] = min(run[name] for run in runs)
        elif name.endswith("_gbs"):
            best[name] = max(run[name] for run in runs)
    return best


def _measure(which: str, device: str, environment: dict[str, str]) -> dict[str, Any]:
    """Run one side in a process of its own and return what it measured."""
    command = [sys.executable, str(_SIDE), which, device]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=_SECONDS, check=True)
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def kernel_seconds(pool: OwnPool) -> dict[str, float]:
    """Start the kernel with an executor kept warm; return how long it took to be ready, and to its first result.

    The best of several starts: the first one on a machine also compiles and reads what Jupyter imports.
    """
    starts = [_one_kernel(pool) for _ in range(_KERNEL_STARTS)]
    return min(starts, key=lambda one: one["first_result_s"])


def _one_kernel(pool: OwnPool) -> dict[str, float]:
    pool.wait_for_warm()
    os.environ.update(pool.environment)
    manager = KernelManager(kernel_name="remote-gpu")
    started = perf_counter()
    manager.start_kernel(extra_arguments=["--log-level=ERROR"])
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        ready = perf_counter()
        reply = client.execute_interactive("import cupy; float(cupy.ones(3).sum())", timeout=60, output_hook=_unseen)
        first = perf_counter()
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"the cell failed: {reply['content']}")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=False)
    return {"ready_s": ready - started, "first_result_s": first - started}


def _unseen(message: dict[str, Any]) -> None:
    """Leave the cell's output unshown: the number is not what is measured."""
