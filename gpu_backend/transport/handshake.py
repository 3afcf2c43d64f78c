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
    | zmq.EVENT_CONNECTED
)


class HandshakeWatch:
    """Follows one socket's handshakes. Make it before ``connect``."""

    def __init__(self, socket: zmq.Socket[Any]) -> None:
        self._socket = socket
        self._monitor = socket.get_monitor_socket(_WATCHED)
        #: True once the peer accepted our key.
        self.succeeded = False
        #: Why the peer cannot be had, in words; empty while nothing speaks against it.
        self.failure = ""
        #: How often the connection was lost since the watch began.
        self.disconnects = 0

    @property
    def monitor(self) -> zmq.Socket[Any]:
        """The socket to poll for news."""
        return self._monitor

    def read(self) -> None:
        """Take in all news. Never blocks."""
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)
            self._note(event["event"], event["value"])

    def _note(self, event: int, value: int) -> None:
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.succeeded, self.failure = True, ""
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self.failure = f"the key was refused (status {value})"
        elif event in (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL):
            self.failure = "the peer speaks no CURVE, or has another server key"
        elif event == zmq.EVENT_DISCONNECTED:
            self.disconnects += 1

    def close(self) -> None:
        """Stop watching."""
        self._socket.disable_monitor()
