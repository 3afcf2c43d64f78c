"""A link with a round trip of a given length between notebooks and executors of one machine.

Run as ``delayed_link.py HOST TARGET FIRST-LAST SECONDS [RATE]``: whoever connects to a port of the range on HOST is
connected to the same port on TARGET, and each byte arrives half of the round trip later, either way. Bytes keep their
order. With a RATE no more than so many bytes a second pass by a connection, each way; without one the link has a
length, and no width. Says "ready" when it listens, and ends with its input.

Each connection has a process of its own, which looks without sleeping while any bytes are under way and a little
longer: to be woken takes a tenth of a millisecond, which each half of a short round trip would be longer by.
"""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import sys
import traceback
from collections import deque
from contextlib import suppress
from time import monotonic

_PIECE_BYTES = 1 << 20
#: How long to look for more without sleeping, seconds, once something has passed by.
_AWAKE_SECONDS = 2e-3
#: What is due in more than so long is slept for, seconds, but for so much.
_WAKING_SECONDS = 5e-4
#: How often to look for room where bytes that have arrived find none, seconds.
_FULL_SECONDS = 2e-3


class Way:
    """One direction of a connection.

    Parameters
    ----------
    source, sink
        Where bytes come from, and where they go.
    seconds
        How long they take.
    rate
        How many pass by in a second at most.
    """

    def __init__(self, source: socket.socket, sink: socket.socket, seconds: float, rate: float) -> None:
        self.source, self._sink = source, sink
        self._seconds, self._rate = seconds, rate
        self._left_at = 0.0
        self._under_way: deque[tuple[float, memoryview]] = deque()
        self.is_over = False
        #: Whether the sink had no room.
        self.is_full = False

    @property
    def due(self) -> float:
        """When there is something to deliver, by the host's monotonic clock; infinity if nothing is under way."""
        if not self._under_way:
            return math.inf
        return self._under_way[0][0] if not self.is_full else monotonic() + _FULL_SECONDS

    def take(self) -> bool:
        """Take in what has come; return whether more may come."""
        try:
            data = self.source.recv(_PIECE_BYTES)
        except BlockingIOError:
            return True
        except OSError:  # the other direction has ended it
            data = b""
        self._left_at = max(self._left_at, monotonic()) + len(data) / self._rate
        self._under_way.append((self._left_at + self._seconds, memoryview(data)))
        return bool(data)

    def deliver(self, now: float) -> None:
        """Hand over what has arrived, as far as there is room for it."""
        self.is_full = False
        while self._under_way and self._under_way[0][0] <= now:
            due, data = self._under_way.popleft()
            try:
                if not data:
                    self.is_over = True
                    self._sink.shutdown(socket.SHUT_WR)
                elif (sent := self._sink.send(data)) < len(data):
                    self._under_way.appendleft((due, data[sent:]))
            except BlockingIOError:
                self._under_way.appendleft((due, data))
                self.is_full = True
                return
            except OSError:
                self.is_over = True


class Connection:
    """Both directions of one connection, until they have ended or the link's input has."""

    def __init__(self, near: socket.socket, far: socket.socket, seconds: float, rate: float) -> None:
        self._poll = select.epoll()
        self._ways: dict[int, Way] = {}
        for source, sink in ((near, far), (far, near)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            source.setblocking(False)
            self._ways[source.fileno()] = Way(source, sink, seconds, rate)
            self._poll.register(source.fileno(), select.EPOLLIN)
        self._input = sys.stdin.fileno()
        self._poll.register(self._input, select.EPOLLIN)
        self._awake_until = 0.0

    def run(self) -> None:
        """Relay."""
        while self._ways and self._look():
            now = monotonic()
            for way in list(self._ways.values()):
                way.deliver(now)
                if way.is_over:
                    self._end(way.source.fileno())

    def _look(self) -> bool:
        """Take in what has come; return whether the link's input goes on."""
        for number, _ in self._poll.poll(self._patience()):
            if number == self._input:
                return bool(os.read(number, 1))
            if self._ways[number].take():
                self._awake_until = monotonic() + _AWAKE_SECONDS
            else:
                self._poll.unregister(number)
        return True

    def _end(self, number: int) -> None:
        del self._ways[number]
        with suppress(FileNotFoundError):  # its source has ended
            self._poll.unregister(number)

    def _patience(self) -> float | None:
        """Return how long to wait for more, seconds; None for as long as nothing comes."""
        now, due = monotonic(), min(way.due for way in self._ways.values())
        if now < self._awake_until or due < now + _WAKING_SECONDS:
            return 0
        if due == math.inf:
            return None
        return math.floor((due - now - _WAKING_SECONDS) * 1e3) / 1e3  # a poller rounds up to milliseconds


def serve(listeners: dict[int, socket.socket], target: str, one_way_seconds: float, rate: float) -> None:
    """Have a process for each connection, until the input ends."""
    poll = select.poll()
    for number in (*listeners, sys.stdin.fileno()):
        poll.register(number, select.POLLIN)
    while True:
        for number, _ in poll.poll():
            if number not in listeners:
                if not os.read(number, 1):
                    return
                continue
            with suppress(OSError):  # who came has gone, or there are too many: the others stay connected
                near, _ = listeners[number].accept()
                port = listeners[number].getsockname()[1]
                with near:
                    if not os.fork():
                        for listener in listeners.values():
                            listener.close()
                        relay(near, (target, port), one_way_seconds, rate)


def relay(near: socket.socket, target: tuple[str, int], one_way_seconds: float, rate: float) -> None:
    """Connect ``near`` to ``target``, and end this process when both directions have ended."""
    try:
        with suppress(ConnectionRefusedError), socket.create_connection(target) as far:  # nobody may be there now
            Connection(near, far, one_way_seconds, rate).run()
    except BaseException:  # whatever it is: this process ends without what the one that listens does at its end
        traceback.print_exc()
    finally:
        os._exit(0)


def main() -> None:
    """Listen until the input ends."""
    host, target, ports, seconds, *rates = sys.argv[1:]
    first, last = map(int, ports.split("-"))
    every = [socket.create_server((host, port)) for port in range(first, last + 1)]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that are done
    print("ready", flush=True)
    serve({one.fileno(): one for one in every}, target, float(seconds) / 2, float(rates[0]) if rates else math.inf)


if __name__ == "__main__":
    main()
