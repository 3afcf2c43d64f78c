"""A GPU's memory is one for all its tenants: nobody maps another's by a forged handle, or finds what another left."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from subprocess import PIPE
from typing import NamedTuple

import numpy as np
import pytest

from gpu_backend.wire.values import Ref
from tests.attack.conftest import WAYS, Tenants
from tests.attack.hostile import hostile_session
from tests.integration.notebook_pool import wait_until

pytestmark = pytest.mark.parametrize("tenants", WAYS[2:], indirect=True)
#: So far around the numbers of a genuine handle others are tried: of the driver's client, and of its memory.
_CLIENTS, _OBJECTS = 24, 40
#: Where a handle names them, in words of four bytes (driver 580).
_CLIENT, _OBJECT = 12, 13
_LENT = 77
#: What the intruder's own memory holds.
_OWN = b"mine" * 8
_LENDER = f"""
import sys, cupy
lent = cupy.full(1 << 21, {_LENT}, "u1")
print(cupy.cuda.runtime.ipcGetMemHandle(lent.data.ptr).hex(), flush=True)
sys.stdin.readline()
print(bool((lent == {_LENT}).all()), flush=True)
"""


def forgeries(genuine: bytes, own: int, victim: int) -> Iterator[bytes]:
    """Yield what a handle of process ``victim`` may look like to somebody who has one of process ``own``.

    The driver numbers its clients one after the other, and each client numbers its objects alike.
    """
    words = [victim if word == own else word for word in struct.unpack("16I", genuine)]
    for client in range(words[_CLIENT] - _CLIENTS, words[_CLIENT] + _CLIENTS + 1):
        for held in range(words[_OBJECT] - _OBJECTS, words[_OBJECT] + _OBJECTS + 1):
            yield struct.pack("16I", *words[:_CLIENT], client, held, *words[_OBJECT + 1 :])


class Lender(NamedTuple):
    """A process outside of all walls that lends memory of its own."""

    process: subprocess.Popen[str]
    handle: str

    def is_intact(self) -> bool:
        """End it; tell whether its memory is as it was."""
        said, _ = self.process.communicate("\n", timeout=60)
        return said.strip() == "True"


@pytest.fixture
def lender() -> Iterator[Lender]:
    with subprocess.Popen([sys.executable, "-c", _LENDER], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        yield Lender(process, process.stdout.readline().strip())
        process.kill()


def test_no_handle_opens_the_memory_of_another(tenants: Tenants, lender: Lender) -> None:
    """Not one that is lent in earnest by a process of the same account, and none that is made up of it."""
    ada = tenants.traitor(tenants.ada_ticket)
    victim = ada.run("fill_memory", secret=tenants.secret.hex())
    assert victim["handle"] == ""
    genuine = bytes.fromhex(lender.handle)
    tried = [one.hex() for one in forgeries(genuine, lender.process.pid, victim["pid"])]
    needles = [tenants.secret.hex(), bytes([_LENT] * 64).hex()]
    with tenants.intruder() as (intruder, _, _):
        intruder.run("fill_memory", secret=_OWN.hex())
        told = intruder.run("open_memory", handles=[lender.handle, *tried], needles=needles)
    clients = {struct.unpack_from("16I", bytes.fromhex(opened))[_CLIENT] for opened in told["opened"]}
    print(f"{len(tried)} forged handles, {len(told['opened'])} opened, of clients {clients}")  # noqa: T201 (is shown)
    assert told["found"] == 0
    assert len(clients) <= 1, "the intruder's own"
    assert ada.run("filled_memory_is_intact", secret=tenants.secret.hex())["intact"]
    assert lender.is_intact()


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
