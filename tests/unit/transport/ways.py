"""The ways to an executor, with a real entrance at their end."""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from unittest import mock

from gpu_backend.node.certificate import Certificate, make_certificate
from gpu_backend.transport import joining, local, tls
from gpu_backend.transport.entrance import Entrance, LocalDoor, TlsDoor
from gpu_backend.transport.joining import Room
from gpu_backend.transport.lanes import Lanes
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.reaching import Expected, ProofFailed, connect, reach_by, reach_far, reach_local
from gpu_backend.transport.secret_proof import channel_secret
from gpu_backend.wire.codec import Frame

SECRET = os.urandom(32)
MakeRoom = Callable[[], Room | None]
#: Lanes of a connection each way, where there are any.
LANES = 3


@cache
def certificate() -> Certificate:
    return make_certificate()


def server_context(made: Certificate) -> ssl.SSLContext:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "tls.pem"
        path.write_bytes(made.pem)
        return tls.as_server(path)


class Ways:
    """An entrance, and how to come to it.

    ``way`` is "local", "socket", "tls" or "lanes"; the second is the first where a system has no memory to share, and
    the last is TLS on a machine with processors for lanes. ``make_room`` is what a local door offers.
    """

    def __init__(self, way: str, secret: bytes = SECRET, make_room: MakeRoom = joining.make) -> None:
        self.way, self.is_far = way, way in ("tls", "lanes")
        self._processors = mock.patch.object(tls, "threads_beside", return_value=LANES if way == "lanes" else 0)
        self._processors.start()
        made = certificate()
        if not self.is_far:
            listening, self.endpoint = local.listen("test")
            door: LocalDoor | TlsDoor = LocalDoor(listening, make_room if way == "local" else lambda: None)
        else:
            listening = socket.create_server(("127.0.0.1", 0))
            self.endpoint = f"tls://127.0.0.1:{listening.getsockname()[1]}"
            door = TlsDoor(listening, server_context(made), tls.tls_way(made.fingerprint))
        self.address = listening.getsockname()
        self.family = listening.family
        self.entrance = Entrance(secret, (door,))
        #: Whether those who come are other executors.
        self.is_for_channels = False
        self.expected = Expected(secret, made.fingerprint)
        self._open: list[MessageSocket | socket.socket] = []

    def reach(self, expected: Expected | None = None, seconds: float = 90.0) -> MessageSocket:
        """Return the near side of a connection; somebody must `admit` meanwhile."""
        if self.is_far:
            near = reach_far(self.endpoint, expected or self.expected, seconds, LANES)[0]
        else:
            near = reach_local(self.endpoint, expected or self.expected, seconds)
        self._open.append(near)
        return near

    def pair(self) -> tuple[MessageSocket, MessageSocket]:
        """Return both sides of a connection."""
        reached: list[MessageSocket] = []
        coming = threading.Thread(target=lambda: reached.append(self.reach()))
        coming.start()
        far = self.admit()
        coming.join()
        self._open_lanes(reached[0], far)
        return reached[0], far

    def channel(self) -> tuple[MessageSocket, MessageSocket]:
        """Return both sides of a connection of two executors."""
        reached: list[MessageSocket] = []
        expected = self.expected._replace(secret=channel_secret(self.expected.secret))

        def come() -> None:
            reached.append(reach_by(connect((self.endpoint,), 90.0), expected, 90.0))

        coming = threading.Thread(target=come)
        coming.start()
        self.is_for_channels = True
        far = self.admit()
        coming.join()
        self._open.append(reached[0])
        return reached[0], far

    def _open_lanes(self, *sides: MessageSocket) -> None:
        lanes = [lanes_of(side) for side in sides if side._laned is not None]
        for one in lanes:
            one.want()
        until = monotonic() + 90
        while not all(len(there) == LANES for one in lanes for there in one._streams.values()):
            select.select([self.entrance], [], [], 0.01)
            assert not self.entrance.admitted()
            assert monotonic() < until

    def admit(self, seconds: float = 90.0) -> MessageSocket:
        """Return the far side of the next connection whose peer has proved who it is."""
        until = monotonic() + seconds
        while monotonic() < until:
            if admitted := self.entrance.admitted():
                ((far, is_channel),) = admitted
                self._open.append(far)
                assert is_channel == self.is_for_channels
                return far
        raise AssertionError("nobody proved anything")

    def failure(self, expected: Expected) -> Exception:
        """Return what comes of reaching for ``expected``; nobody is admitted."""
        failures: list[Exception] = []

        def come() -> None:
            try:
                self.reach(expected)
            except (ProofFailed, ConnectionLost) as error:
                failures.append(error)

        coming = threading.Thread(target=come)
        coming.start()
        while coming.is_alive():
            assert not self.entrance.admitted()
        return failures[0]

    def stranger(self) -> socket.socket:
        """Return a bare connection."""
        connected = socket.socket(self.family)
        connected.settimeout(90.0)
        connected.connect(self.address)
        self._open.append(connected)
        return connected

    def close(self) -> None:
        for one in self._open:
            one.close()
        self.entrance.close()
        self._processors.stop()


def lanes_of(side: MessageSocket) -> Lanes:
    """Return the lanes of one side of a connection that has some."""
    assert side._laned is not None
    return side._laned.lanes


def received(far: MessageSocket, near: MessageSocket) -> list[Frame]:
    """Return the next message at ``far``, from ``near``."""
    until = monotonic() + 90
    while (message := far.receive()) is None:
        near.push()
        assert monotonic() < until
    return message


MakeWays = Callable[[], Ways]
