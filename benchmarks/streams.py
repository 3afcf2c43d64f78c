"""How fast bulk travels to an executor on another host, beside what one plain TCP stream carries there, in one run.

    python benchmarks/streams.py [--seconds 1] [--most 4] [--turns 3]

Run as root, where there is the command ``ip``, the two sides are in network namespaces of their own, with a cable of
the system's between them; else they speak over loopback. The first row is TCP alone; then comes a connection to an
executor without lanes beside it, then with more and more of them. The best of all turns counts. Beside it stands what a
byte takes of this side's processors.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from ways import forked

from gpu_backend.node.certificate import Certificate, make_certificate
from gpu_backend.transport import tls
from gpu_backend.transport.entrance import Entrance, TlsDoor
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.reaching import Expected, reach_far
from kernelproxy.session.links import Link

_LARGE = bytes(4 << 20)
#: Messages on their way at a time: as much as an executor gives credit for, or less.
_IN_FLIGHT = 16
_NEW_NETWORK = 0x40000000
_NEAR, _FAR = "198.18.0.1", "198.18.0.2"
_DIRECTION = struct.Struct("?")
_PORTS = (7001, 7002)


class Rate(NamedTuple):
    """How fast bytes passed one way."""

    #: Bytes a second.
    speed: float
    #: Seconds of this process's processors for each byte.
    effort: float


def timed(pass_some: Callable[[], int], seconds: float) -> Rate:
    """Return the rate of ``pass_some``, which returns how many bytes have passed, again and again."""
    passed, begun, spent = 0, perf_counter(), process_time()
    while perf_counter() < begun + seconds:
        passed += pass_some()
    return Rate(passed / (perf_counter() - begun), (process_time() - spent) / max(1, passed))


# --- the other host ---------------------------------------------------------------------------------------------------


def serve_plain(listening: socket.socket) -> None:
    """Swallow what comes, or send without end, as each connection wants it."""
    buffer = memoryview(bytearray(_LARGE))
    while True:
        connected, _ = listening.accept()
        with connected, suppress(ConnectionError):
            (is_up,) = _DIRECTION.unpack(connected.recv(_DIRECTION.size))
            while connected.recv_into(buffer) if is_up else connected.sendall(buffer) is None:
                continue


def serve_messages(entrance: Entrance) -> None:
    """Answer a large message by a small one, and a small one by a large one."""
    peers: dict[int, MessageSocket] = {}
    poll = select.poll()
    poll.register(entrance.fileno(), select.POLLIN)
    unsent: list[tuple[MessageSocket, list[bytes]]] = []
    while True:
        poll.poll(1 if unsent else 100)
        for peer in entrance.admitted():
            peers[peer.fileno()] = peer
            poll.register(peer.fileno(), select.POLLIN)
        for descriptor, peer in list(peers.items()):
            try:
                peer.push()
                while (message := peer.receive()) is not None:
                    unsent.append((peer, [b"taken"] if len(message) > 1 else [b"head", _LARGE]))
                while unsent and unsent[0][0] is peer and peer.send(unsent[0][1]):
                    del unsent[0]
                poll.modify(descriptor, peer.awaited)
            except ConnectionLost:
                unsent = [one for one in unsent if one[0] is not peer]
                poll.unregister(descriptor)
                peers.pop(descriptor).close()


def be_far(address: str, made: Certificate, secret: bytes, most: int) -> list[Callable[[], None]]:
    """Return what to do on the other host."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(made.pem)
        file.flush()
        context = tls.as_server(Path(file.name))
    tls.threads_beside = lambda _: most
    plain, listening = (socket.create_server((address, port)) for port in _PORTS)
    entrance = Entrance(secret, (TlsDoor(listening, context, tls.tls_way(made.fingerprint)),))
    return [lambda: serve_plain(plain), lambda: serve_messages(entrance)]


# --- this side --------------------------------------------------------------------------------------------------------


def plain_rate(address: str, is_up: bool, seconds: float) -> Rate:
    """Return how fast one TCP stream is."""
    buffer = memoryview(bytearray(_LARGE))
    with socket.create_connection((address, _PORTS[0])) as connected:
        connected.send(_DIRECTION.pack(is_up))
        return timed(lambda: connected.send(buffer) if is_up else connected.recv_into(buffer), seconds)


class Connected:
    """A connection with ``count`` lanes beside it."""

    def __init__(self, address: str, expected: Expected, count: int) -> None:
        tls.threads_beside = lambda _: count
        socket, _ = reach_far(f"tls://{address}:{_PORTS[1]}", expected, 10.0, count)
        self._link = Link(socket)
        self._lanes = socket._laned.lanes if socket._laned is not None else None
        if self._lanes is not None:
            self._lanes.want()
            while any(len(one) < count for one in self._lanes._streams.values()):
                self._link.receive(0.01)

    def rate(self, is_up: bool, seconds: float) -> Rate:
        """Return how fast it is, with messages of 4 MiB."""
        message = [b"head", _LARGE] if is_up else [b"more"]
        in_flight = 0

        def pass_some() -> int:
            nonlocal in_flight
            while in_flight < _IN_FLIGHT and self._link.send(message):
                in_flight += 1
            return answered()

        def answered() -> int:
            nonlocal in_flight
            if self._link.receive(0.1) is None:
                return 0
            self._link.is_torn = False
            in_flight -= 1
            return len(_LARGE)

        found = timed(pass_some, seconds)
        while in_flight:
            answered()
        return found

    def close(self) -> None:
        """Close it."""
        self._link.close()


def measure(address: str, expected: Expected, most: int, seconds: float) -> dict[str, tuple[Rate, Rate]]:
    """Return the rates up and down of each way."""
    found = {"plain TCP": (plain_rate(address, True, seconds), plain_rate(address, False, seconds))}
    for count in range(most + 1):
        connected = Connected(address, expected, count)
        found[f"TLS, {count} lanes"] = (connected.rate(True, seconds), connected.rate(False, seconds))
        connected.close()
    return found


# --- both -------------------------------------------------------------------------------------------------------------


def enter_network() -> None:
    """Have this process be in a network of its own."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare")
    ip("link set lo up")


def ip(arguments: str) -> None:
    """Run ``ip`` with ``arguments``."""
    subprocess.run(["ip", *arguments.split()], check=True)


def set_up(cable: str, address: str) -> None:
    """Give this side's end of the ``cable`` its ``address``."""
    ip(f"address add {address}/24 dev {cable}")
    ip(f"link set {cable} up")


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each way is measured in each turn")
    parser.add_argument("--most", type=int, default=4, help="lanes each way, at most")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    made, secret = make_certificate(), os.urandom(32)
    is_apart = os.geteuid() == 0 and shutil.which("ip") is not None
    address = _FAR if is_apart else "127.0.0.1"
    (entered, enters), (connected, connects) = os.pipe(), os.pipe()

    def be_other_host() -> None:
        if is_apart:
            enter_network()
            os.write(enters, b"1")
            os.read(connected, 1)
            set_up("far", _FAR)
        serving = [forked(action) for action in be_far(address, made, secret, options.most)]
        os.write(enters, b" ".join(b"%d" % process for process in serving))
        os.wait()

    if is_apart:
        enter_network()
    others = [forked(be_other_host)]
    try:
        if is_apart:
            os.read(entered, 1)
            ip(f"link add near type veth peer name far netns {others[0]}")
            set_up("near", _NEAR)
            os.write(connects, b"1")
        others += map(int, os.read(entered, 100).split())
        expected = Expected(secret, made.fingerprint)
        turns = [measure(address, expected, options.most, options.seconds) for _ in range(options.turns)]
    finally:
        for process in reversed(others):
            os.kill(process, 9)
        os.waitpid(others[0], 0)
    show(turns, f"{'two network namespaces' if is_apart else 'loopback'}, {os.cpu_count()} processors")


def show(turns: list[dict[str, tuple[Rate, Rate]]], where: str) -> None:
    """Print the best rate of each way, and what part of plain TCP's that is."""
    best = {name: [max(turn[name][way] for turn in turns) for way in (0, 1)] for name in turns[0]}
    print(where)
    for name, rates in best.items():
        told = [
            f"{rate.speed / 1e9:6.2f} GB/s {100 * rate.speed / of.speed:4.0f} % {rate.effort * 1e9:6.2f} ns/B"
            for rate, of in zip(rates, best["plain TCP"], strict=True)
        ]
        print(f"{name:14} up {told[0]}   down {told[1]}")


if __name__ == "__main__":
    main()
