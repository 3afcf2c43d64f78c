"""Whoever finds a port of the pool and has no key costs the gateway few descriptors, little memory, and nobody else."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import ExitStack, suppress

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.gate import roster
from gpu_backend.node import arbiter as arbiters
from gpu_backend.pool import commands
from tests.spare_ports import spare_port

from .conftest import MakePool, RunningPool, resident_bytes, until

#: Fewer than the strangers, and what many systems give: libzmq would end the process that has no more.
DESCRIPTORS, STRANGERS = 512, 700
MOST_GROWTH_BYTES = 16 << 20
FRAME_BYTES = 60_000  # below what either door takes of whom it knows
GREETING = b"\xff" + bytes(7) + b"\x01\x7f\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32)
SAID = {
    "nothing": b"",
    "a greeting": GREETING,
    "a large frame": GREETING + b"\x06" + FRAME_BYTES.to_bytes(8, "big") + b"\x05HELLO" + bytes(FRAME_BYTES - 7),
}


PORTS = {"listen_port": spare_port(), "nodes_port": spare_port()}


@pytest.fixture(scope="module")
def pool(make_pool: MakePool) -> RunningPool:
    return make_pool(listen_host="127.0.0.1", nodes_host="127.0.0.1", **PORTS)


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.parametrize("port", ["listen_port", "nodes_port"])
@pytest.mark.parametrize("said", list(SAID))
def test_many_strangers_who_hold_their_connections(pool: RunningPool, port: str, said: str) -> None:
    gateway = pool.process("gateway")
    ticket = pool.open()
    before, most = resident_bytes(gateway.pid), 0
    resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    with ExitStack() as stack:
        for number in range(STRANGERS):
            stranger = stack.enter_context(socket.create_connection(("127.0.0.1", PORTS[port]), 60.0))
            stranger.setblocking(False)
            with suppress(OSError):  # it is hung up on already
                stranger.send(SAID[said])
            if number % 20 == 0:
                assert gateway.is_running
                most = max(most, descriptors(gateway.pid))
        assert commands.status(pool.state).devices  # others are served meanwhile
        most = max(most, descriptors(gateway.pid))
        assert pool.process("gateway") == gateway
        assert resident_bytes(gateway.pid) - before < MOST_GROWTH_BYTES
    assert most < DESCRIPTORS - 100
    until(lambda: descriptors(gateway.pid) < 100)
    assert pool.renew(ticket).epoch == 1


def test_the_pool_has_all_descriptors_that_it_may_have(make_pool: MakePool) -> None:
    """So many may also be on their way between processes of the account: sandboxed executors may have fewer there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard // 2, hard))
    try:
        pool = make_pool()
        gateway = pool.process("gateway")
        pool.open()  # so an arbiter runs
        arbiter = read_identity(arbiters.directory_of(str(pool.state.runtime), 0) / roster.PROCESS)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert arbiter is not None
    for process in (gateway, arbiter):
        until(lambda pid=process.pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) == (hard, hard))
