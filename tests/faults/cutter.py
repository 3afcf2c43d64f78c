"""A way between a notebook and its executor that is cut again and again, wherever a message happens to be."""

from __future__ import annotations

import mmap
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gpu_backend.transport import local, ring
from gpu_backend.transport.shared_frames import FRAMES_BYTES

#: How often to look how much has passed through a ring, seconds.
_LOOK_SECONDS = 1e-4


class Cutter:
    """Relays a socket to ``target`` and cuts all connections whenever so many more bytes have passed.

    What still passes by a connection that was struck counts no more, so each place strikes one that was whole.

    Parameters
    ----------
    target
        An executor's endpoint: of its host, or for others.
    cuts
        Bytes until each cut, both directions counted together; after the last one the way is good.
    passes_memory
        Whether the descriptor of shared memory passes too, where the socket is a Unix socket: then the bytes that pass
        through its rings are counted as well.
    flips
        Whether a byte is altered at each of these places, and nothing is cut.
    near
        Where to listen, if ``target`` is one for other hosts.
    """

    def __init__(
        self,
        target: str,
        cuts: Sequence[int],
        passes_memory: bool = False,
        flips: bool = False,
        near: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self._target = target
        self._flips = flips
        self._most_descriptors = int(passes_memory)
        self._cuts = list(cuts)
        self._passed = 0
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._whole: set[socket.socket] = set()
        if target.startswith(local.SCHEME):
            self._listener, self.endpoint = local.listen("cutter")
        else:
            self._listener = socket.create_server(near)
            scheme = target.partition("://")[0]
            self.endpoint = f"{scheme}://{near[0]}:{self._listener.getsockname()[1]}"
        self.connections = 0
        #: Bytes that have passed, both directions counted together.
        self.passed_in_all = 0
        #: Connections that were accepted and closed, as what is behind could not be reached.
        self.turned_away = 0
        #: Whether what is behind cannot be reached, whoever listens there.
        self.leads_nowhere = False
        self._closed = threading.Event()
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
            try:
                far = self._connect()
            except OSError:  # who is behind it has ended, or is just being started again
                near.close()
                self.turned_away += 1
                continue
            with self._lock:
                self.connections += 1
                self._open += [near, far]
                self._whole |= {near, far}
            self._serving.append(threading.Thread(target=self._serve, args=(near, far), daemon=True))
            self._serving[-1].start()

    def _serve(self, near: socket.socket, far: socket.socket) -> None:
        with near, far:
            back = threading.Thread(target=self._relay, args=(far, near), daemon=True)
            back.start()
            self._relay(near, far)
            back.join()

    def _connect(self) -> socket.socket:
        if self.leads_nowhere:
            raise ConnectionRefusedError
        if self._target.startswith(local.SCHEME):
            return local.connect(self._target, 5.0)
        host, _, port = self._target.partition("://")[2].partition(":")
        return socket.create_connection((host, int(port)))

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := self._pass_on(source, sink):
                if not self._flips and self._is_time(len(data), source, sink):
                    self.cut()
        except OSError:
            return
        finally:
            self._shut(source, sink)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> bytes:
        size = 4096 if self._cuts else 1 << 20
        if not self._most_descriptors:
            data = source.recv(size)
            if self._flips and self._is_time(len(data), source, sink):
                altered = bytearray(data)
                altered[len(data) // 2] ^= 0x40
                data = bytes(altered)
            sink.sendall(data)
            return data
        data, descriptors, _, _ = socket.recv_fds(source, size, self._most_descriptors)
        if descriptors:
            memory = mmap.mmap(descriptors[0], os.fstat(descriptors[0]).st_size)
            self._serving.append(threading.Thread(target=self._watch, args=(memory, source), daemon=True))
            self._serving[-1].start()
            sink.sendall(data[:-1])  # what came before the byte that it came with, which nothing is read behind
            socket.send_fds(sink, [data[-1:]], descriptors)
            os.close(*descriptors)
        else:
            sink.sendall(data)
        return data

    def _watch(self, memory: mmap.mmap, connected: socket.socket) -> None:
        """Count what passes through the rings in ``memory`` too, while ``connected`` is open, and cut in time."""
        words = memoryview(memory)[FRAMES_BYTES : FRAMES_BYTES + mmap.PAGESIZE].cast("Q")
        before = 0
        while connected.fileno() >= 0:
            if (now := sum(words[n * ring._RING_WORDS + ring._PUT] for n in range(2))) != before:
                if self._is_time(now - before, connected):
                    self.cut()
                before = now
            self._closed.wait(_LOOK_SECONDS)

    def _is_time(self, size: int, *connection: socket.socket) -> bool:
        """Count what has passed by a ``connection``, of which an end or both are given; tell whether to strike it."""
        with self._lock:
            self.passed_in_all += size
            if not self._whole.issuperset(connection):
                return False
            self._passed += size
            if not self._cuts or self._passed < self._cuts[0]:
                return False
            self._passed = 0
            self._cuts.pop(0)
            self._whole.difference_update(connection if self._flips else self._open)
            return True

    def cut_after(self, cuts: Sequence[int]) -> None:
        """Cut whenever so many more bytes have passed from now on."""
        with self._lock:
            self._cuts, self._passed = list(cuts), 0

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
        self._closed.set()
        self._shut(self._listener)
        self._accepting.join()
        self._listener.close()
        while self._serving:
            self.cut()
            self._serving.pop().join()


@contextmanager
def cutting(target: str, cuts: Sequence[int], passes_memory: bool = False) -> Iterator[Cutter]:
    """Have a `Cutter`."""
    cutter = Cutter(target, cuts, passes_memory)
    try:
        yield cutter
    finally:
        cutter.close()


@contextmanager
def flipping(target: str, flips: Sequence[int]) -> Iterator[Cutter]:
    """Have a `Cutter` that alters bytes."""
    flipper = Cutter(target, flips, flips=True)
    try:
        yield flipper
    finally:
        flipper.close()
