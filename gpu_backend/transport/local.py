"""The way between two processes of one host: a Unix socket with a name in no directory, and memory that both share.

Whoever may reach a directory decides nothing here: every account of the host can connect, and has to prove that it
knows the ticket's secret. While a process listens under a name, the system lets no other have it; on another host, or
in a container with a network of its own, somebody else may. So an endpoint says where its name was taken, and who is
not there does not try it.
"""

from __future__ import annotations

import hashlib
import secrets
import socket
import struct
from pathlib import Path

#: What such an endpoint begins with; where and which name follow, with a slash between them.
SCHEME = "unix-abstract://"
_NAME = "\0gpu-workbench/"
_NAME_BYTES = 16
#: Connections that may wait to be accepted: more than a host's accounts open in a moment.
_BACKLOG = 128
#: As much as the system allows.
_BUFFER_BYTES = 4 << 20
_TIME = struct.Struct("ll")  # struct timeval
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NETWORK = Path("/proc/self/ns/net")


def here() -> str:
    """Return what tells this boot of this host, and this network of it, from all others; "" if the system will not."""
    try:
        place = f"{_BOOT.read_text()}{_NETWORK.stat().st_ino}"
    except OSError:
        return ""
    return hashlib.sha256(place.encode()).hexdigest()[:16]


def listen(label: str) -> tuple[socket.socket, str]:
    """Return a listening socket under ``label`` and what nobody can have guessed, and its endpoint."""
    name = f"{label}-{secrets.token_hex(_NAME_BYTES)}"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(_NAME + name)
    listening.listen(_BACKLOG)
    return listening, f"{SCHEME}{here()}/{name}"


def is_here(endpoint: str) -> bool:
    """Tell whether ``endpoint`` is one of this host and network."""
    place = endpoint.removeprefix(SCHEME).partition("/")[0]
    return endpoint.startswith(SCHEME) and bool(place) and place == here()


def connect(endpoint: str, timeout_seconds: float) -> socket.socket:
    """Return a socket that is connected to ``endpoint``.

    Raises
    ------
    OSError
        If nobody listens there, or nobody has accepted for ``timeout_seconds``.
    """
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Where as many wait to be accepted as may, a socket that does not block would give up at once.
        limit = _TIME.pack(*divmod(max(1, round(timeout_seconds * 1_000_000)), 1_000_000))
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        connected.connect(_NAME + endpoint.removeprefix(SCHEME).partition("/")[2])
    except BaseException:  # an interrupt too must leave nothing open
        connected.close()
        raise
    return connected


def make_ready(connected: socket.socket) -> None:
    """Give ``connected`` the options that its messages want."""
    connected.setblocking(False)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        connected.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
