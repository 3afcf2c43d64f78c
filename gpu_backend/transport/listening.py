"""Whether anybody listens at an address, as the system says at once; ZeroMQ itself only tries again for ever."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit


def connected_to(endpoint: str, timeout_seconds: float) -> socket.socket:
    """Return a plain socket that is connected to ``endpoint``, ``tcp://HOST:PORT`` or ``ipc://PATH``.

    Raises
    ------
    OSError
        If there is no connection within ``timeout_seconds``: ConnectionRefusedError or FileNotFoundError if it is
        certain that nobody listens, BlockingIOError if too many others wait there to be accepted.
    ValueError
        If it is no such endpoint.
    """
    address = urlsplit(endpoint)
    if address.scheme == "tcp":
        return socket.create_connection((address.hostname, address.port or 0), timeout_seconds)
    if address.scheme != "ipc":
        raise ValueError(f"{endpoint} is neither tcp:// nor ipc://.")
    tried = socket.socket(socket.AF_UNIX)
    try:
        tried.settimeout(timeout_seconds)
        tried.connect(endpoint.removeprefix("ipc://"))
    except BaseException:  # an interrupt too must leave nothing open
        tried.close()
        raise
    return tried


def is_deserted(endpoint: str, timeout_seconds: float) -> bool:
    """Tell whether it is certain that nobody listens at ``endpoint``.

    A host that says nothing for ``timeout_seconds`` is not certain to have nobody.
    """
    try:
        connected_to(endpoint, timeout_seconds).close()
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    except (OSError, ValueError):  # no way there, no such name, no number: the asking itself says it better
        return False
    return False
