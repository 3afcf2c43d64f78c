"""Copies between a notebook's devices of two machines: from executor to executor, and not by way of the notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.pool import commands
from gpu_backend.pool.state import PoolState
from tests.faults.machines import Machine, machine
from tests.integration.notebook_pool import sessions, wait_until
from tests.integration.test_devices_of_two_nodes import pool
from tests.integration.test_several_devices import run

__all__ = ["pool"]

ROOT = Path(__file__).parents[2]
#: Has every process that starts with it take this host for another one: what is near is far then.
_ELSEWHERE = """
from gpu_backend.transport import local
local.here = lambda: ""
"""

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", params=["one host", "two hosts"])
def other(
    pool: PoolState, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    with machine(pool) as one, pytest.MonkeyPatch.context() as patch:
        if request.param == "two hosts":
            folder = tmp_path_factory.mktemp("elsewhere")
            (folder / "sitecustomize.py").write_text(_ELSEWHERE)
            patch.setenv("PYTHONPATH", f"{folder}:{ROOT}")
        one.join()
        patch.undo()
        wait_until(lambda: len({device.node for device in commands.status(pool).devices}) == 2)
        yield one


_COPIES = """
import json
import numpy as np
import cupy as cp
from kernelproxy.client import current

host, small = np.arange(3 << 20, dtype="f8"), np.arange(1000.0)
with cp.cuda.Device(0):
    there, little = cp.sin(cp.asarray(host)), cp.sin(cp.asarray(small))
counters = [one.pipeline.counters for one in current().members]
before = [sum((*one.sent_bytes.values(), *one.received_bytes.values())) for one in counters]
with cp.cuda.Device(1):
    here, kept = cp.asarray(there), cp.empty(1000)
    for _ in range(50):
        kept[...] = little
        little[...] = kept + 0
    back = cp.empty((2, 1000))
    back[1] = kept
    here *= 2
with cp.cuda.Device(0):
    twice = cp.array(here)
after = [sum((*one.sent_bytes.values(), *one.received_bytes.values())) for one in counters]
there = cp.asnumpy(there)
found = [bool((one.get() == two).all()) for one, two in (
    (here, 2 * there), (twice, 2 * there), (kept, np.sin(small)), (back[1], np.sin(small))
)]
print(json.dumps([found, sum(after) - sum(before), sum(one.direct_bytes for one in counters)]))
"""


def test_what_is_copied_does_not_pass_the_notebook(pool: PoolState, other: Machine) -> None:
    done = run("--devices", "2", "-c", _COPIES)
    assert done.stderr == ""
    found, passed, direct = json.loads(done.stdout)
    assert found == [True] * 4
    assert passed == 0
    assert direct == 2 * (24 << 20) + 100 * 8_000
    wait_until(lambda: sessions(pool) == ())


_REFUSED = """
import json
import cupy as cp
from gpu_backend.wire.errors import PoolRefusal
from kernelproxy.client import current
from kernelproxy.stream.session import Session

asked = []

def refuse(session, to, name):
    asked.append(to)
    raise PoolRefusal("not here")

Session.open_channel = refuse
with cp.cuda.Device(0):
    there = cp.sin(cp.arange(3e6))
with cp.cuda.Device(1):
    for _ in range(2):
        here = cp.asarray(there)
    print(json.dumps([bool((here.get() == there.get()).all()), len(asked)]))
"""


def test_where_there_is_no_channel_it_passes_the_notebook(pool: PoolState, other: Machine) -> None:
    done = run("--devices", "2", "-c", _REFUSED)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [True, 1]  # asked for once


_KILLED = """
import os, signal
import cupy as cp
from gpu_backend.wire.errors import NotCopied, SessionLost
from kernelproxy.client import current
from tests.executor_of import pid_of

with cp.cuda.Device(0):
    there = cp.sin(cp.arange(1e6))
with cp.cuda.Device(1):
    here = cp.asarray(there)
    expected = here.get()
    os.kill(pid_of(current().members[0].session.ticket), signal.SIGSTOP)
    here[...] = there
    os.kill(pid_of(current().members[0].session.ticket), signal.SIGKILL)
    try:
        here.get()
    except NotCopied as error:
        print("told", "Run the cell again." in str(error))
with cp.cuda.Device(0):
    try:
        there.get()
    except SessionLost:
        print("lost")
    there = cp.sin(cp.arange(1e6))
with cp.cuda.Device(1):
    here[...] = there
    print((here.get() == expected).all())
    print(sum(one.pipeline.counters.direct_bytes for one in current().members) >= 8_000_000)
"""


def test_who_copied_from_a_lost_executor_is_told_and_goes_on(pool: PoolState, other: Machine) -> None:
    done = run("--devices", "2", "-c", _KILLED, PYTHONPATH=str(ROOT))
    assert done.stdout.splitlines() == ["told True", "lost", "True", "True"], done.stderr
    wait_until(lambda: sessions(pool) == ())
