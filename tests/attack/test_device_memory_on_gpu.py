"""A GPU's memory is one for all its tenants: nobody maps another's by a forged handle, or finds what another left."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from subprocess import PIPE

import numpy as np
import pytest

from gpu_backend.wire.values import Ref
from tests.attack.conftest import WAYS, Tenants
from tests.attack.hostile import hostile_session
from tests.integration.notebook_pool import wait_until

pytestmark = pytest.mark.parametrize("tenants", WAYS[2:], indirect=True)
#: Around each number of a genuine handle so many others are tried.
_NEAR = 24
_LENDER = """
import sys, cupy
lent = cupy.full(1 << 21, 77, "u1")
print(cupy.cuda.runtime.ipcGetMemHandle(lent.data.ptr).hex(), flush=True)
sys.stdin.read()
"""


def forgeries(genuine: bytes, own: int, victim: int) -> Iterator[bytes]:
    """Yield what a handle of process ``victim`` may look like to somebody who has one of process ``own``."""
    words = list(struct.unpack("16I", genuine))
    moved = [victim if word == own else word for word in words]
    yield struct.pack("16I", *moved)
    for place in range(16):
        for step in range(-_NEAR, _NEAR + 1):
            tried = list(moved)
            tried[place] = (tried[place] + step) % (1 << 32)
            yield struct.pack("16I", *tried)
            if place + 1 < 16:
                tried[place + 1] = (tried[place + 1] + step) % (1 << 32)
                yield struct.pack("16I", *tried)


@pytest.fixture
def lender() -> Iterator[tuple[str, int]]:
    """A process outside of all walls that lends memory of its own: the handle of it, and its number."""
    with subprocess.Popen([sys.executable, "-c", _LENDER], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
        process.stdin.close()


def test_no_handle_opens_the_memory_of_another(tenants: Tenants, lender: tuple[str, int]) -> None:
    """Not one that is lent in earnest by a process of the same account, and none that is made up of it."""
    genuine, lends = lender
    victim = tenants.traitor(tenants.ada_ticket).run("export_memory")
    assert victim["handle"] == ""
    tried = [one.hex() for one in forgeries(bytes.fromhex(genuine), lends, victim["pid"])]
    with tenants.intruder() as (intruder, _, _):
        told = intruder.run("open_memory", handles=[genuine, *dict.fromkeys(tried)], needle=tenants.secret.hex())
    assert told == {"opened": [], "found": 0}, f"lent by {lends}, {genuine}; the victim is {victim['pid']}"


def test_an_executor_reaches_one_gpu(tenants: Tenants) -> None:
    with tenants.intruder() as (intruder, _, _):
        told = intruder.run("reachable_devices")
    assert len(told["opened"]) == 1
    assert told["visible"].startswith(("GPU-", "MIG-"))
    assert "," not in told["visible"]


def test_no_session_finds_what_another_left_in_the_memory(tenants: Tenants) -> None:
    secret = np.frombuffer(b"left behind by the one before ..", np.uint8)
    with hostile_session(tenants.pool.ada, "cuda") as (ada, ticket):
        process = tenants.pool.executor(ticket)
        ada.make("cupy.tile", Ref(ada.upload(secret)), 1 << 24)  # 512 MB of it
        ada.ask(".synchronize")
    wait_until(lambda: not process.is_running)
    with tenants.intruder() as (intruder, _, _):
        told = intruder.run("search_fresh_memory", needle=secret.tobytes().hex())
    assert told["bytes"] > 1 << 30
    assert told["found"] == 0
