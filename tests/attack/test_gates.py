"""An executor that ignores its gate, lies on its page or spoils what it shares harms nobody else, and not for long."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gpu_backend.engine.detached import ProcessId
from gpu_backend.executor.config import OWN
from gpu_backend.node import launcher
from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from tests.integration.notebook_pool import cpu_pool, wait_until
from tests.integration.test_sharing import HOG, Device

pytestmark = pytest.mark.timeout(600)

BREAKER = (sys.executable, str(Path(__file__).with_name("gate_breaker.py")))
#: An executor that is idle, until its notebook is told to ask for more; it says what it is told then.
IDLER = """
import sys, cupy as cp
x = cp.ones(10)
print(float(x.sum()), flush=True)
sys.stdin.readline()
try:
    print(float(x.sum()), flush=True)
except Exception as error:
    print(type(error).__name__, str(error).replace(chr(10), ' '), flush=True)
"""


class Scene(Device):
    """A hog, and an idle session whose executor can be turned against it."""

    def idler(self) -> tuple[str, subprocess.Popen[str]]:
        """Start an idle notebook; return its session."""
        before = set(self.executors())
        command = [sys.executable, "-c", f"import kernelproxy; kernelproxy.activate()\n{IDLER}"]
        notebook = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.notebooks.append(notebook)
        assert notebook.stdout is not None
        assert notebook.stdout.readline() == "10.0\n"
        (session,) = set(self.executors()) - before
        return session, notebook

    def attack(self, session: str, how: str) -> ProcessId:
        """Turn an executor; return its process, which is at it."""
        directory = self.executors()[session]
        process = launcher.process_in(directory)
        assert process is not None
        order = directory / OWN / ".attack"
        order.write_text(how)
        order.rename(order.with_name("attack"))
        wait_until(lambda: not (directory / OWN / "attack").exists())
        return process


@contextmanager
def scene_of(root: Path, settings: PoolSettings) -> Iterator[Scene]:
    """Have a pool, and all that was started on it ended."""
    with cpu_pool(root, settings) as pool:
        made = Scene(pool)
        try:
            yield made
        finally:
            made.clear()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    settings = PoolSettings(devices="cpu", executor_command=BREAKER)
    with scene_of(tmp_path_factory.mktemp("g"), settings) as made:
        yield made


@pytest.fixture
def scene(shared: Scene) -> Iterator[Scene]:
    yield shared
    shared.clear()


@pytest.mark.parametrize("how", ["burn", "garbage", "fork"])
def test_who_runs_behind_a_shut_gate_is_ended_and_its_notebook_is_told(scene: Scene, how: str) -> None:
    """Within a second of its time on the processor, as `tests/unit/arbiter/test_service_looks.py` has it."""
    scene.start(HOG)
    (hog,) = scene.wait_for(1)
    session, notebook = scene.idler()
    scene.wait_for_progress(hog)
    process = scene.attack(session, how)
    wait_until(lambda: not process.is_running)
    out, _ = notebook.communicate("\n", timeout=120)
    why = "What it reported of itself cannot be" if how == "garbage" else "kept the device busy while its gate was shut"
    assert why in out
    log = (scene.directory / "log").read_text()
    assert f"ends {session}/" in log
    assert why in log
    wait_until(lambda: not members_of_session(process))  # what it started is ended too
    scene.wait_for_progress(hog, 200)
    assert commands.status(scene.pool).sessions  # the pool is well


def members_of_session(leader: ProcessId) -> list[str]:
    """Return the processes that are left of what an executor led."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader.pid and fields[0] not in "ZX":
                found.append(stat.parent.name)
    return found


def test_who_says_that_an_op_runs_for_ever_is_charged_for_it_and_ended_when_that_lasts(tmp_path: Path) -> None:
    """What may be overrun is more than the machine keeps the hog from the processor in the middle of an op."""
    settings = PoolSettings(devices="cpu", executor_command=BREAKER, overrun_seconds=10.0)
    with scene_of(tmp_path, settings) as scene:
        scene.start(HOG)
        (hog,) = scene.wait_for(1)
        session, notebook = scene.idler()
        scene.wait_for_progress(hog)
        process = scene.attack(session, "forge")
        wait_until(lambda: not process.is_running)
        out, _ = notebook.communicate("\n", timeout=120)
        assert "beyond its turn" in out
        wait_until(lambda: scene.booked(session) > 8.5)  # all but what may be unexplained
        scene.wait_for_progress(hog, 200)


def test_of_the_hours_that_one_claims_none_is_booked_on_anybody(scene: Scene) -> None:
    """What is booked instead, to the second: `tests/unit/arbiter/test_service_looks.py`."""
    scene.start(HOG)
    (hog,) = scene.wait_for(1)
    session, _ = scene.idler()
    scene.attack(session, "boast")
    wait_until(lambda: scene.report(session).used_ns >= 2 * 3600e9)
    wait_until(lambda: scene.booked(session) > 1.0)
    scene.wait_for_progress(hog, 500)
    assert scene.booked(session) < 3600  # a test has minutes
    assert scene.booked(hog) < 3600


def test_who_spoils_the_right_of_way_stops_nobody(scene: Scene) -> None:
    """It costs others a tenth: `tests/unit/arbiter/test_right_of_way.py`."""
    scene.start(HOG)
    (hog,) = scene.wait_for(1)
    session, notebook = scene.idler()
    scene.wait_for_progress(hog)
    process = scene.attack(session, "spoil")
    scene.wait_for_progress(hog, 5_000)
    assert process.is_running
    notebook.communicate("\n", timeout=120)


UPLOADER = """
import numpy as np, cupy as cp
data = np.ones(32 << 20)
while True:
    x = cp.asarray(data)
    float((x[:100] * 2).sum())
"""
BURSTS = """
import cupy as cp
x = cp.ones(10)
while True:
    for _ in range(10_000):
        x = x * 1.0
    float(x[0])
"""
PING_PONG = """
import cupy as cp
x = cp.ones(10)
while True:
    float(x.sum())  # of floats: the device's own to know
"""
LONG_OPS = """
import cupy as cp
x = cp.ones((3_000, 3_000))
while True:
    float((x @ x)[0, 0])
"""


def test_who_obeys_is_never_taken_for_one_who_does_not(scene: Scene) -> None:
    """Uploads, bursts of messages, loops that wait for each result, and ops of seconds, all at once."""
    programs = (HOG, UPLOADER, BURSTS, PING_PONG, LONG_OPS)
    for program in programs:
        scene.start(program)
    everybody = scene.wait_for(len(programs))
    before = {session: scene.report(session).used_ns for session in everybody}
    wait_until(lambda: all(scene.report(each).used_ns > before[each] for each in everybody), 120)
    wait_until(lambda: sum(scene.report(each).used_ns - before[each] for each in everybody) > 10e9, 240)
    assert list(scene.executors()) == everybody
    used = {session: scene.report(session).used_ns / 1e9 for session in everybody}
    wait_until(lambda: all(scene.booked(session) >= used[session] for session in everybody))
    assert all(notebook.poll() is None for notebook in scene.notebooks)
