"""Runs tests in several workers; a worker that dies or hangs is replaced and goes on behind the test it died in."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.cupy_suite import outcomes, plan, selection
from tests.cupy_suite.outcomes import Outcome
from tests.cupy_suite.plan import Plan, Side
from tests.cupy_suite.suites import Suite

if TYPE_CHECKING:
    from gpu_backend.pool.state import PoolState

_REPOSITORY = Path(__file__).parents[2]
#: Collecting all of CuPy's tests takes a slow machine a minute.
_COLLECT_SECONDS = 300.0
#: A worker whose alarm did not end a test is killed so much later.
_GRACE_SECONDS = 20.0
#: A worker that is in the middle of a test when the time is up may go on so long: its test is not done otherwise.
_LATE_SECONDS = 5.0
#: After so many deaths a worker is given up: something is wrong with more than one test.
_DEATHS = 60
#: The tests' arrays are small: threads of NumPy's libraries would only fight for the cores.
_FEW_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
#: pytest's statuses of a run that went through: all passed, some failed, none was left.
_THROUGH = (0, 1, 5)


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be run, and how."""

    side: Side
    #: ``cupy.testing`` of CuPy's source distribution; None for the one that the proxy has itself.
    testing: Path | None
    suite: Suite
    files: tuple[str, ...]
    out: Path
    device: Literal["auto", "cuda", "cpu"] = "auto"
    workers: int = 1
    fraction: float = 1.0
    like: Path | None = None
    deadline: float = 0.0
    test_seconds: float = 120.0


def run(job: Job) -> dict[str, Outcome]:
    """Run ``job`` and return the outcomes, which are in ``job.out`` as well. One that was cut short is gone on with."""
    job.out.parent.mkdir(parents=True, exist_ok=True)
    with _environment(job) as environment, tempfile.TemporaryDirectory() as folder:
        workers = [_Worker(_share(job, shard), job.suite, Path(folder), environment) for shard in range(job.workers)]
        try:
            running = workers
            while running := [worker for worker in running if not worker.is_through()]:
                time.sleep(0.2)
        finally:
            for worker in workers:
                worker.end()
    return _gather(job)


def _share(job: Job, shard: int) -> Plan:
    out = job.out.with_suffix(f".{shard}.part")
    if not out.exists() and job.out.exists():
        before = outcomes.read(job.out).values()
        outcomes.write(out, [outcome for outcome in before if outcome.is_of_a_test])
    return Plan(
        side=job.side, testing=job.testing, kind=job.suite.kind, files=job.files, shard=shard, shards=job.workers,
        fraction=job.fraction, like=job.like, out=out, deadline=job.deadline, test_seconds=job.test_seconds,
    )  # fmt: skip


def _gather(job: Job) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    texts = []
    for shard in range(job.workers):
        share = _share(job, shard)
        found.update(outcomes.read(share.out))
        if share.failures.exists():
            texts.append(share.failures.read_text())
        for path in (share.out, share.failures, share.now):
            path.unlink(missing_ok=True)
    found["::about"] = Outcome("::about", outcomes.ABOUT, 0.0, _versions())
    with job.out.with_suffix(".failures.txt").open("a" if job.out.exists() else "w") as file:
        file.writelines(texts)
    outcomes.write(job.out, found.values())
    return found


def _versions() -> str:
    names = [f"python {platform.python_version()}"]
    for name in ("numpy", "scipy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            names.append(f"{name} {importlib.metadata.version(name)}")
    return ", ".join(names)


@dataclass
class _Worker:
    plan: Plan
    suite: Suite
    folder: Path
    environment: dict[str, str]
    deaths: int = 0
    process: subprocess.Popen[bytes] = field(init=False)
    _last: tuple[str, float] = ("", 0.0)

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        given = self.folder / f"{self.plan.shard}.json"
        plan.save(self.plan, given)
        self.plan.now.unlink(missing_ok=True)
        self._last = ("", time.monotonic())
        command = [
            *(
                sys.executable,
                "-P",
                "-m",
                "tests.cupy_suite.worker",
                "-p",
                "no:cacheprovider",
            ),  # not a suite's own `tests`
            *("--rootdir", str(self.suite.root), *self.suite.options, "--continue-on-collection-errors"),
            *("-q", "--tb=short", "--no-summary"),  # a summary of thousands of failures takes minutes
            *self.plan.files,
        ]
        with (self.folder / f"{self.plan.shard}.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env={**self.environment, plan.PLAN_VARIABLE: str(given)},
                cwd=self.suite.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def is_through(self) -> bool:
        """Tell whether the worker has done its share. One that died or hangs is started again."""
        status = self.process.poll()
        late = bool(self.plan.deadline) and time.time() > self.plan.deadline + _LATE_SECONDS
        if status is None:
            if not self._hangs() and not late:
                return False
            self.process.kill()
            status = self.process.wait()
            if late:
                self._note_that_it_was_stopped()
        if status in _THROUGH or late:
            return True
        self.deaths += 1
        test = self._test()
        if not test or self.deaths > _DEATHS:
            sys.stderr.write(f"A worker ended with {status}:\n{self._log_end()}\n")
            return True
        outcomes.append(self.plan.out, Outcome(test, outcomes.CRASHED, 0.0, f"its process ended with {status}"))
        self._start()
        return False

    def end(self) -> None:
        """End the worker, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _note_that_it_was_stopped(self) -> None:
        begun = selection.begun(test) if (test := self._test()) else 0.0
        outcomes.append(self.plan.out, Outcome(f"::{self.plan.shard}", outcomes.STOPPED, begun))

    def _test(self) -> str:
        with contextlib.suppress(OSError):
            return self.plan.now.read_text()
        return ""

    def _hangs(self) -> bool:
        test = self._test()
        if test != self._last[0]:
            self._last = (test, time.monotonic())
        # The alarm rings anew for the set-up and for the test, and a tear-down has none.
        limit = 2 * self.plan.test_seconds + _GRACE_SECONDS if test else _COLLECT_SECONDS
        return time.monotonic() - self._last[1] > limit

    def _log_end(self) -> str:
        return (self.folder / f"{self.plan.shard}.log").read_text(errors="replace")[-1500:]


@contextlib.contextmanager
def _environment(job: Job) -> Iterator[dict[str, str]]:
    """Yield the environment of workers: on the proxy's side with a pool that has room for all of them."""
    given = filter(None, [os.environ.get("PYTHONPATH")])
    path = os.pathsep.join([str(_REPOSITORY), *map(str, job.suite.modules), *given])
    own = {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    limit = {"CUPY_TEST_GPU_LIMIT": str(job.suite.devices)}
    environment = {**_FEW_THREADS, **limit, **os.environ, **job.suite.environment, **own}
    # Both sides compile the same kernels: what native CuPy has compiled is lent to the pool.
    cache = {"CUPY_CACHE_DIR": os.environ.get("CUPY_CACHE_DIR") or str(Path.home() / ".cupy" / "kernel_cache")}
    environment.update(cache)
    environment["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(tempfile.gettempdir(), "cupy-suite-hypothesis"))
    if job.side == "native":
        yield environment
        return
    from gpu_backend.pool import commands, state
    from gpu_backend.pool.settings import PoolSettings

    # pytest's own directories have paths that are too long for sockets
    root = Path(tempfile.mkdtemp(prefix="gws"))
    pool = state.at(root / "pool")
    room = job.workers + 4  # a worker that leaves a broken session opens another before the first is gone
    # All workers are one user: there is nobody to be fair to, and nobody to be reached by whoever has several GPUs.
    settings = PoolSettings(
        devices=job.device, policy="driver", sessions_per_device=room, max_sessions_per_user=0,
        cpu_devices=job.suite.devices, several_gpus="at-your-own-risk" if job.suite.devices > 1 else "refused",
    )  # fmt: skip
    environment["GPU_WORKBENCH_DEVICES"] = str(job.suite.devices)
    with _environ({**_FEW_THREADS, **cache}):
        try:
            config = commands.embedded(pool, settings)
            _lend_kernels(pool, Path(cache["CUPY_CACHE_DIR"]))
            yield {**environment, "GPU_WORKBENCH_CONFIG": str(config), "XDG_STATE_HOME": str(root)}
        finally:
            commands.down(pool)
            shutil.rmtree(root, ignore_errors=True)


def _lend_kernels(pool: PoolState, compiled: Path) -> None:
    """Have what native CuPy has compiled in the cache of the pool's one user, from where executors are given it."""
    from gpu_backend.node import settings
    from gpu_backend.node.kernel_cache import UserCache
    from gpu_backend.pool import people

    for person in people.people(pool):
        folder = UserCache(Path(settings.read(pool.node).cache_dir), person.name).folder / "cupy"
        for path in compiled.glob("*.*") if compiled.is_dir() else ():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (folder / path.name).exists():
                shutil.copy2(path, folder / path.name)


@contextlib.contextmanager
def _environ(defaults: dict[str, str]) -> Iterator[None]:
    """Have variables in this process's environment, which the pool's processes inherit, unless they are set."""
    mine = [name for name in defaults if name not in os.environ]
    os.environ.update({name: defaults[name] for name in mine})
    try:
        yield
    finally:
        for name in mine:
            del os.environ[name]
