"""A notebook whose devices are of two machines: each has an executor of its own, and the program is the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.pool import commands
from gpu_backend.pool.state import PoolState
from tests.faults.machines import Machine, machine
from tests.integration.notebook_pool import cpu_pool, open_to_machines, sessions, wait_until
from tests.integration.running_kernel import notebook
from tests.integration.test_several_devices import PROGRAM, PROGRAMS_RESULT, run

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with cpu_pool(tmp_path_factory.mktemp("head"), open_to_machines()) as own:
        yield own


@pytest.fixture(scope="module")
def other(pool: PoolState) -> Iterator[Machine]:
    with machine(pool) as one:
        one.join()
        wait_until(lambda: len({device.node for device in commands.status(pool).devices}) == 2)
        yield one


def test_a_program_with_devices_of_two_machines(pool: PoolState, other: Machine) -> None:
    done = run("--devices", "2", "-c", PROGRAM)
    assert done.stderr == ""
    assert json.loads(done.stdout) == PROGRAMS_RESULT
    wait_until(lambda: sessions(pool) == ())


_ALLOCATORS = """
import json
import cupy as cp

pool, default = cp.cuda.MemoryPool(), cp.get_default_memory_pool()
found = []

def take(number):
    with cp.cuda.Device(number):
        before = pool.used_bytes()
        made = cp.zeros(1 << 16, "u1")
        found.append([pool.used_bytes() - before, made.device.id, cp.cuda.get_allocator().__self__ is pool])
        return made

with cp.cuda.Device(1), cp.cuda.using_allocator(pool.malloc):
    held = [take(number) for number in (0, 1)]
held.append(take(1))
cp.cuda.set_allocator(pool.malloc)
held += [take(number) for number in (0, 1)]
print(json.dumps(found))
"""


def test_what_arrays_come_from_is_said_to_all(pool: PoolState, other: Machine) -> None:
    done = run("--devices", "2", "-c", _ALLOCATORS)
    assert done.stderr == ""
    size = 1 << 16
    assert json.loads(done.stdout) == [
        [size, 0, True], [size, 1, True], [0, 1, False], [size, 0, True], [size, 1, True],
    ]  # fmt: skip


_LOST = """
import os, signal
import numpy as np
import cupy as cp
from kernelproxy.client import current
from tests.executor_of import pid_of

scaled = cp.ElementwiseKernel("T x", "T y", "y = 2 * x", "scaled")
kept = scaled(cp.arange(4.0))
with cp.cuda.Device(1):
    lost = scaled(cp.arange(4.0))
    os.kill(pid_of(current().session.ticket), signal.SIGKILL)
    try:
        print(lost.get())
    except Exception as error:
        print(type(error).__name__)
    print(scaled(cp.arange(4.0)).tolist())
print(kept.tolist())
"""


def test_a_lost_executor_takes_its_devices_arrays_and_no_more(pool: PoolState, other: Machine) -> None:
    done = run("--devices", "2", "-c", _LOST, PYTHONPATH=str(ROOT))
    assert done.stdout.splitlines()[1:] == ["[0.0, 2.0, 4.0, 6.0]"] * 2, done.stderr
    assert done.stdout.splitlines()[0] == "SessionLost"
    wait_until(lambda: sessions(pool) == ())


def test_more_than_all_machines_have_are_refused_and_none_is_kept(pool: PoolState, other: Machine) -> None:
    done = run("-c", "import cupy as cp; cp.zeros(1)", GPU_WORKBENCH_DEVICES="3")
    said = done.stderr.splitlines()[-1]
    assert "3 devices of one node were asked for; no node of this pool has more than 1 that can serve." in said
    assert "Nor can 3 devices be had of a session each: " in said
    wait_until(lambda: sessions(pool) == ())


def test_a_kernel_has_both_again_after_a_restart(
    pool: PoolState, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_WORKBENCH_DEVICES", "2")
    cell = "import cupy as cp\nwith cp.cuda.Device(1):\n    x = cp.arange(10.0)\n    print(float(x.sum()), x.device.id)"
    with notebook() as running:
        assert running.run(cell) == "45.0 1\n"
        taken = {one.node: one.session for one in sessions(pool)}
        assert len(taken) == 2
        running.restart()
        assert running.run("x").startswith("NameError")
        assert running.run(cell) == "45.0 1\n"
        wait_until(lambda: len(sessions(pool)) == 2)
        assert {one.node for one in sessions(pool)} == set(taken)
        assert "1, the current one of 2 that have a session each" in running.run("cp.cuda.Device(1).use()\n%gpu status")
        assert "UsageError" in running.run("%gpu devices 3")
        assert "Add --drop-arrays to leave it" in running.run("%gpu devices 1")  # though the first has none
        assert "notebook-" not in running.run("%gpu class")  # which is how its sessions keep apart
        assert "float" in running.run("%gpu devices 1 --drop-arrays\nprint(type(float(cp.ones(3).sum())))")
        wait_until(lambda: len(sessions(pool)) == 1)
        assert "belongs to device 1 of a session that was left" in running.run("x.get()")
        assert running.run("%gpu devices 2 --drop-arrays\nprint(cp.cuda.runtime.getDeviceCount())").endswith("2\n")
    wait_until(lambda: sessions(pool) == ())
