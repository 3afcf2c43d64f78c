"""A link with a round trip of a given length between notebooks and executors of one machine.

Run as ``delayed_link.py HOST TARGET FIRST-LAST SECONDS [RATE]``: whoever connects to a port of the range on HOST is
connected to the same port on TARGET, and each byte arrives half of the round trip later, either way. Bytes keep their
order. With a RATE no more than so many bytes a second pass by a connection, each way; without one the link has a
length, and no width. Says "ready" when it listens.
"""

from __future__ import annotations

import math
import queue
import socket
import sys
import threading
from time import monotonic, sleep

_PIECE_BYTES = 1 << 20
_Queue = queue.SimpleQueue[tuple[float, bytes]]


def relay(source: socket.socket, sink: socket.socket, seconds: float, rate: float) -> None:
    """Pass on what comes from ``source``, ``seconds`` later, until it ends; ``rate`` bytes a second at most."""
    under_way: _Queue = queue.SimpleQueue()
    left_at = 0.0
    threading.Thread(target=_deliver, args=(under_way, sink), daemon=True).start()
    data = b"-"
    while data:
        try:
            data = source.recv(_PIECE_BYTES)
        except OSError:  # the other direction has ended it
            data = b""
        left_at = max(left_at, monotonic()) + len(data) / rate
        under_way.put((left_at + seconds, data))


def _deliver(under_way: _Queue, sink: socket.socket) -> None:
    while True:
        due, data = under_way.get()
        sleep(max(0.0, due - monotonic()))
        try:
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return
            sink.sendall(data)
        except OSError:
            return


def serve(listener: socket.socket, target: str, port: int, one_way_seconds: float, rate: float) -> None:
    """Accept for ever."""
    while True:
        near, _ = listener.accept()
        try:
            far = socket.create_connection((target, port))
        except OSError:  # nobody is behind that port now
            near.close()
            continue
        for one in (near, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=relay, args=(source, sink, one_way_seconds, rate), daemon=True).start()


def main() -> None:
    """Listen until the input ends."""
    host, target, ports, seconds, *rates = sys.argv[1:]
    rate = float(rates[0]) if rates else math.inf
    first, last = map(int, ports.split("-"))
    for port in range(first, last + 1):
        listener = socket.create_server((host, port))
        threading.Thread(target=serve, args=(listener, target, port, float(seconds) / 2, rate), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
