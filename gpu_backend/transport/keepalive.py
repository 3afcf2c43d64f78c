"""That a peer's host is gone is noticed by TCP, also while nothing is under way."""

from __future__ import annotations

import socket

__all__ = ["keep_alive"]

#: How often a peer that says nothing is asked whether its host is there, and how often in vain; seconds.
_PROBE_SECONDS, _PROBES = 2, 4


def keep_alive(one: socket.socket) -> None:
    """Have the system ask the peer of a TCP connection, or those of all that come to a listening socket."""
    for option, value in (
        (socket.TCP_KEEPIDLE, _PROBE_SECONDS),
        (socket.TCP_KEEPINTVL, _PROBE_SECONDS),
        (socket.TCP_KEEPCNT, _PROBES),
    ):
        one.setsockopt(socket.IPPROTO_TCP, option, value)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
