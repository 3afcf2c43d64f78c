"""A way between a notebook and its executor that is cut again and again, wherever a message happens to be."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class Cutter:
    """Relays a socket to ``target`` and cuts all connections whenever so many more bytes have passed.

    Parameters
    ----------
    target
        "tcp://host:port" or "unix://path".
    place
        Where to listen if it is a Unix socket.
    cuts
        Bytes until each cut, both directions counted together; after the last one the way is good.
    passes_memory
        Whether the descriptor of shared memory passes too, where the socket is a Unix socket.
    """

    def __init__(self, target: str, place: Path, cuts: Sequence[int], passes_memory: bool = False) -> None:
        self._target = target
        self._most_descriptors = int(passes_memory)
        self._cuts = list(cuts)
        self._passed = 0
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX if target.startswith("unix") else socket.AF_INET)
        self._listener.bind(str(place) if target.startswith("unix") else ("127.0.0.1", 0))
        self._listener.listen()
        name = self._listener.getsockname()
        self.endpoint = f"unix://{place}" if target.startswith("unix") else f"tcp://127.0.0.1:{name[1]}"
        self.connections = 0
        self._serving: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def cuts_left(self) -> int:
        return len(self._cuts)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = self._connect()
            with self._lock:
                self.connections += 1
                self._open += [near, far]
            self._serving.append(threading.Thread(target=self._serve, args=(near, far), daemon=True))
            self._serving[-1].start()

    def _serve(self, near: socket.socket, far: socket.socket) -> None:
        with near, far:
            back = threading.Thread(target=self._relay, args=(far, near), daemon=True)
            back.start()
            self._relay(near, far)
            back.join()

    def _connect(self) -> socket.socket:
        scheme, _, rest = self._target.partition("://")
        if scheme == "unix":
            far = socket.socket(socket.AF_UNIX)
            far.connect(rest)
            return far
        host, _, port = rest.partition(":")
        return socket.create_connection((host, int(port)))

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := self._pass_on(source, sink):
                if self._is_time(len(data)):
                    self.cut()
        except OSError:
            return
        finally:
            self._shut(source, sink)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> bytes:
        size = 4096 if self._cuts else 1 << 20
        if not self._most_descriptors:
            data = source.recv(size)
            sink.sendall(data)
            return data
        data, descriptors, _, _ = socket.recv_fds(source, size, self._most_descriptors)
        if descriptors:
            socket.send_fds(sink, [data], descriptors)  # few bytes, which the system takes at once
            os.close(*descriptors)
        else:
            sink.sendall(data)
        return data

    def _is_time(self, size: int) -> bool:
        with self._lock:
            self._passed += size
            if not self._cuts or self._passed < self._cuts[0]:
                return False
            self._passed = 0
            self._cuts.pop(0)
            return True

    def cut(self) -> None:
        """Cut every connection there is."""
        with self._lock:
            cut, self._open = self._open, []
        self._shut(*cut)

    @staticmethod
    def _shut(*sockets: socket.socket) -> None:
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it is gone already

    def close(self) -> None:
        self._shut(self._listener)
        self._accepting.join()
        self._listener.close()
        while self._serving:
            self.cut()
            self._serving.pop().join()


@contextmanager
def cutting(target: str, place: Path, cuts: Sequence[int], passes_memory: bool = False) -> Iterator[Cutter]:
    """Have a `Cutter`."""
    cutter = Cutter(target, place, cuts, passes_memory)
    try:
        yield cutter
    finally:
        cutter.close()
