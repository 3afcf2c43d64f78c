"""A notebook whose devices are of two machines: each has an executor of its own, and the program is the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.faults.machines import Machine, machine
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until
from tests.integration.test_several_devices import PROGRAM, PROGRAMS_RESULT, run
from tests.spare_ports import spare_ports

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    ports = spare_ports(2)
    heard = PoolSettings(
        devices="cpu", listen_host="127.0.0.1", listen_port=ports[0], nodes_host="127.0.0.1", nodes_port=ports[1]
    )
    with cpu_pool(tmp_path_factory.mktemp("head"), heard) as own:
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


def test_more_than_all_machines_have_are_refused_and_none_is_kept(pool: PoolState, other: Machine) -> None:
    done = run("-c", "import cupy as cp; cp.zeros(1)", GPU_WORKBENCH_DEVICES="3")
    said = done.stderr.splitlines()[-1]
    assert "3 devices of one node were asked for; no node of this pool has more than 1 that can serve." in said
    assert "Nor can 3 devices be had of a session each: " in said
    wait_until(lambda: sessions(pool) == ())
