"""Learning that a connection was refused. libzmq itself only retries for ever; its monitor knows why."""

from __future__ import annotations

from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

_WATCHED = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_DISCONNECTED
)
#: A peer that dies in the middle of a handshake, or a way that is cut or altered, looks like a peer with another key;
#: a wrong key fails every time. libzmq tries again after 50, 100 and 200 ms, so the verdict is there in half a second.
_FAILURES_THAT_COUNT = 4


class HandshakeWatch:
    """Follows one socket's handshakes. Make it before ``connect``; works for plain and for asyncio sockets."""

    def __init__(self, socket: zmq.Socket[Any]) -> None:
        self._socket = socket
        self._monitor = socket.get_monitor_socket(_WATCHED)
        # An asyncio monitor would hand out futures where ``read`` needs messages.
        self._plain: zmq.Socket[bytes] = zmq.Socket(shadow=self._monitor)
        #: How many handshakes in a row broke off, for whatever reason but a refused key.
        self.failures = 0
        #: True once the peer accepted our key.
        self.succeeded = False
        #: Why the peer cannot be had, in words; empty while nothing speaks against it. After a refused key libzmq
        #: does not try again: the socket must be closed and a new one made.
        self.failure = ""
        #: Whether that speaks against the peer, and not against our key.
        self.is_foreign = False
        #: How often the connection was lost since the watch began.
        self.disconnects = 0

    @property
    def monitor(self) -> zmq.Socket[Any]:
        """The socket to poll for news."""
        return self._monitor

    def read(self) -> None:
        """Take in all news. Never blocks."""
        while self._plain.poll(0):
            event = recv_monitor_message(self._plain)
            self._note(event["event"], event["value"])

    def _note(self, event: int, value: int) -> None:
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.succeeded, self.failure, self.is_foreign, self.failures = True, "", False, 0
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self.failure = f"the key was refused (status {value})"
        elif event in (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL):
            self.failures += 1
            if self.failures >= _FAILURES_THAT_COUNT:
                self.failure = "each handshake broke off: it has another server key, or nobody is behind its port"
                self.is_foreign = True
        elif event == zmq.EVENT_DISCONNECTED:
            self.disconnects += 1

    def forgive(self) -> None:
        """Forget the handshakes that broke off: they say nothing against the peer."""
        self.failures, self.failure, self.is_foreign = 0, "", False

    def close(self) -> None:
        """Stop watching."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        # Left open, the monitor would keep its context from ever ending.
        self._monitor.close(linger=0)
