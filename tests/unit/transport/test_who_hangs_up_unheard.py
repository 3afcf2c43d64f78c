"""Peers that fill their queue and hang up before they are heard: libzmq has ended the server's process by that."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from gpu_backend.transport import curve, forecourt
from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.forecourt import Forecourt
from gpu_backend.transport.handshake import HandshakeWatch
from gpu_backend.transport.sockets import ZAP_DOMAIN, as_client, as_server
from gpu_backend.transport.zap import LookedUpKeys, guard_async

SPAWN = multiprocessing.get_context("spawn")
#: Longer than a heartbeat of ours takes to fall due.
UNHEARD_SECONDS = 3.0
PATIENT_SECONDS = 60.0
#: As many messages as a server queues of one peer, and some more that it reads and has no place for.
QUEUED, MORE = 1_000, 50
#: So many, as it is chance how what they send is read.
PEERS = 8
LAST = b"the last one"


def serve(keys: KeyPair, path: str, told: Connection) -> None:
    """Open a door that reads nothing until it is told to; then read up to what was sent last."""

    async def all_of_it() -> None:
        context = zmq.asyncio.Context()
        guard = guard_async(context, {ZAP_DOMAIN: LookedUpKeys(lambda key: True)})
        router = as_server(context.socket(zmq.ROUTER), keys)
        router.bind(f"ipc://{path}")
        court = Forecourt(path, 1_000)
        listening = forecourt.listen("tcp://127.0.0.1:0")
        port = listening.getsockname()[1]
        await court.open(listening)
        told.send(port)
        await asyncio.to_thread(told.recv)
        while LAST not in await router.recv_multipart():
            pass
        told.send("heard")
        court.close()
        guard.stop()
        context.destroy(linger=0)

    asyncio.run(all_of_it())


def fill_and_hang_up(endpoint: str, server: SpawnProcess, server_key: bytes, heartbeat_ms: int) -> None:
    """Send more than the queues take, PINGs among it if there are heartbeats, and be gone before it was read."""
    with zmq.Context() as context:
        sockets = [connected(context, endpoint, server_key, heartbeat_ms) for _ in range(PEERS)]
        for socket in sockets:
            for _ in range(QUEUED):
                socket.send(b"x")
        sockets[0].poll(50)  # nothing comes: so long they have to be taken
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        for _ in range(MORE):
            for socket in sockets:
                socket.send(b"x")
            sockets[0].poll(2)  # so long heartbeats have to fall due
        os.kill(server.pid, signal.SIGCONT)
        for socket in sockets:
            socket.close(linger=10_000)


def connected(context: zmq.Context[zmq.Socket[bytes]], door: str, key: bytes, heartbeat_ms: int) -> zmq.Socket[bytes]:
    socket = as_client(context.socket(zmq.DEALER), curve.generate(), key)
    socket.heartbeat_ivl, socket.sndhwm = heartbeat_ms, QUEUED + MORE
    watch = HandshakeWatch(socket)
    socket.connect(door)
    while not watch.succeeded:
        watch.monitor.poll()
        watch.read()
    watch.close()
    return socket


@pytest.mark.parametrize(("way", "heartbeat_ms"), [("own account", 0), ("network", 0), ("network", 1)])
def test_the_server_stays(tmp_path: Path, way: str, heartbeat_ms: int) -> None:
    keys, path = curve.generate(), tmp_path / "router"
    told, theirs = SPAWN.Pipe()
    server = SPAWN.Process(target=serve, args=(keys, str(path), theirs), daemon=True)
    server.start()
    theirs.close()
    try:
        assert told.poll(PATIENT_SECONDS)
        port = told.recv()
        door = f"tcp://127.0.0.1:{port}" if way == "network" else f"ipc://{path}"
        fill_and_hang_up(door, server, keys.public, heartbeat_ms)
        server.join(UNHEARD_SECONDS)
        assert server.exitcode is None
        told.send("read")
        with zmq.Context() as context, as_client(context.socket(zmq.DEALER), curve.generate(), keys.public) as socket:
            socket.connect(door)
            socket.send(LAST)
            assert told.poll(PATIENT_SECONDS)
            assert told.recv() == "heard"  # raises EOFError where it has ended
    finally:
        server.kill()
        server.join()
        told.close()
