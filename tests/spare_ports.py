"""Ports for a test that has to name them before anybody listens there."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from pathlib import Path

_LOWEST = 10_000


def spare_ports(count: int) -> range:
    """Return ``count`` ports that follow one another, and that nobody listens on.

    They lie below those that the system gives to whoever asks for any port, and to connections: one of those that is
    free now may be somebody's before the test comes to use it.
    """
    given_out = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        first = random.randrange(_LOWEST, max(given_out, _LOWEST + 10_000) - count)
        wanted = range(first, first + count)
        try:
            with ExitStack() as stack:
                for port in wanted:
                    stack.enter_context(socket.create_server(("127.0.0.1", port)))
        except OSError:
            continue
        return wanted


def spare_port() -> int:
    """Return a port that nobody listens on, nor is given by chance."""
    return spare_ports(1)[0]
