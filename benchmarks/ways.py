"""The ways to an executor, side by side: round trips and bulk, on this machine alone and in one run.

CURVE, which TLS took the place of, is measured beside it. Run as root, the local way is tried from another account too.

    python benchmarks/ways.py [--seconds 2]
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

import zmq

from gpu_backend.node.certificate import make_certificate
from gpu_backend.transport import curve, joining, local, tls
from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.entrance import Entrance, LocalDoor, TlsDoor
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.reaching import Expected, reach_far, reach_local
from gpu_backend.transport.sockets import as_client, as_server
from kernelproxy.session.links import Link

_SMALL, _LARGE = b"x" * 200, bytes(4 << 20)
_NOBODY = 65534
Exchange = Callable[[list[bytes]], object]


def serve(entrance: Entrance) -> None:
    """Answer every message by its size, awake, as an executor that is at work does."""
    peers: list[MessageSocket] = []
    poll = select.poll()
    poll.register(entrance.fileno(), select.POLLIN)
    for turn in count():
        if not peers or turn % 100 == 0:
            poll.poll(0 if peers else 1_000)
            peers += entrance.admitted()
        for peer in list(peers):
            if not (peer.has_read_ahead or peer.has_news() or turn % 100 == 0):  # the end rings no bell
                continue
            try:
                message = peer.receive()
                if message is not None:
                    peer.send([b"%d" % sum(map(len, message))])
            except ConnectionLost:
                peers.remove(peer)
                peer.close()


def serve_curve(keys: KeyPair, endpoint: str) -> None:
    """Do the same over ZeroMQ."""
    server = as_server(zmq.Context().socket(zmq.ROUTER), keys)
    server.bind(endpoint)
    while True:
        peer, *message = server.recv_multipart(copy=False)
        server.send_multipart([peer.bytes, b"%d" % sum(map(len, message))])


def exchange_by(link: Link) -> Exchange:
    """Return what sends a message over ``link`` and waits for its answer."""

    def exchange(message: list[bytes]) -> object:
        while not link.send(message):
            link.receive(0.001)
        while (answer := link.receive(1.0)) is None:
            continue
        link.is_torn = False
        return answer

    return exchange


def measure(name: str, exchange: Exchange, seconds: float) -> None:
    """Print the median round trip of a small message, and how fast large ones go out."""
    times, until = [], perf_counter() + seconds / 2
    while perf_counter() < until:
        begun = perf_counter()
        exchange([_SMALL])
        times.append(perf_counter() - begun)
    sent, begun = 0, perf_counter()
    while perf_counter() < begun + seconds / 2:
        exchange([b"head", _LARGE])
        sent += 1
    rate = sent * len(_LARGE) / (perf_counter() - begun)
    print(f"{name:28} {1e6 * median(times):8.1f} µs {rate / 1e9:8.2f} GB/s", flush=True)


def forked(action: Callable[[], None]) -> int:
    """Run ``action`` in a process of its own and return its number."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(0)
    return child


def as_nobody(action: Callable[[], None]) -> None:
    """Run ``action`` under another account."""

    def run() -> None:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        action()

    os.waitpid(forked(run), 0)


def free_endpoint() -> str:
    """Return a TCP endpoint of this host that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{free.getsockname()[1]}"


def main() -> None:
    """Measure every way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each way is measured")
    seconds: float = parser.parse_args().seconds
    made, secret = make_certificate(), os.urandom(32)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "tls.pem"
        path.write_bytes(made.pem)
        context = tls.as_server(path)
    near, near_endpoint = local.listen("benchmark")
    far = socket.create_server(("127.0.0.1", 0))
    doors = (LocalDoor(near, joining.make), TlsDoor(far, context, tls.tls_way(made.fingerprint)))
    expected = Expected(secret, made.fingerprint)
    server_keys, client_keys, curve_endpoint = curve.generate(), curve.generate(), free_endpoint()
    serving = [forked(lambda: serve(Entrance(secret, doors))), forked(lambda: serve_curve(server_keys, curve_endpoint))]

    def by_local(name: str) -> None:
        measure(name, exchange_by(Link(reach_local(near_endpoint, expected, 5.0))), seconds)

    try:
        by_local("local, own account")
        if os.geteuid() == 0:
            as_nobody(lambda: by_local("local, another account"))
        reached, _ = reach_far(f"tls://127.0.0.1:{far.getsockname()[1]}", expected, 5.0)
        measure("TLS", exchange_by(Link(reached)), seconds)
        client = as_client(zmq.Context.instance().socket(zmq.DEALER), client_keys, server_keys.public)
        client.connect(curve_endpoint)
        measure("CURVE", lambda message: (client.send_multipart(message), client.recv_multipart()), seconds)
        client.close()
    finally:
        for process in serving:
            os.kill(process, 9)
            os.waitpid(process, 0)


if __name__ == "__main__":
    main()
