"""What greets us at an address, before keys are looked at.

libzmq tells a peer that closes the connection without a word and one that has another server key by the same event. The
first is what the near end of a tunnel does whose far end leads nowhere, and what a process does that was killed while
we connected. It says nothing of keys; so the address is asked for its greeting, which comes before any key.
"""

from __future__ import annotations

import socket
from enum import Enum, auto
from time import monotonic

from gpu_backend.transport.listening import connected_to

#: What the address of a process on this host begins with.
_OF_THIS_HOST = "ipc://"
#: The greeting of ZMTP 3: signature, version, mechanism, whether one is the server, and padding.
_SIGNATURE = b"\xff" + bytes(7) + b"\x01\x7f"
_CURVE = b"CURVE".ljust(20, b"\0")
_REST = b"\x03\x00" + _CURVE + bytes(32)
_MECHANISM = slice(12, 32)


class Greeting(Enum):
    """What came of asking. Each but `CURVE` says that no pool was heard."""

    NOBODY = auto()  #: no connection came about
    UNKNOWN = auto()  #: nor can any: no host is known by that name
    CLOSED = auto()  #: it was accepted and closed, and nothing was said
    SILENT = auto()  #: it was accepted, and nothing more was said in time
    OTHER = auto()  #: something that is no pool's greeting was said
    CURVE = auto()  #: a pool's greeting, of whichever pool


def greeting_at(endpoint: str, seconds: float) -> Greeting:
    """Say at ``endpoint`` what a client says first, and tell what came back within ``seconds``."""
    deadline = monotonic() + seconds
    try:
        connected = connected_to(endpoint, seconds)
    except BlockingIOError:
        return Greeting.SILENT
    except (socket.gaierror, UnicodeError):  # the latter of what can be no name
        return Greeting.UNKNOWN
    except OSError:
        return Greeting.NOBODY
    with connected:
        greeting = _exchanged(connected, deadline)
    # No tunnel ends at an address of this host's own: what closed the connection is about to be gone.
    is_ending = greeting is Greeting.CLOSED and endpoint.startswith(_OF_THIS_HOST)
    return Greeting.NOBODY if is_ending else greeting


def _exchanged(connected: socket.socket, deadline: float) -> Greeting:
    said = bytearray()
    try:
        # One after the other: who closes a connection for what comes last takes back what it said and was not read.
        for part in (_SIGNATURE, _REST):
            connected.sendall(part)
            _read(connected, said, len(said) + len(part), deadline)
    except TimeoutError:
        return Greeting.OTHER if said else Greeting.SILENT
    except OSError:  # closed, with what we said unread or not
        return Greeting.OTHER if said else Greeting.CLOSED
    return Greeting.CURVE if said[_MECHANISM] == _CURVE else Greeting.OTHER


def _read(connected: socket.socket, said: bytearray, size: int, deadline: float) -> None:
    while len(said) < size and _may_be_ours(said):
        connected.settimeout(max(deadline - monotonic(), 1e-3))
        if not (more := connected.recv(size - len(said))):
            raise ConnectionResetError
        said += more


def _may_be_ours(said: bytearray) -> bool:
    """Tell whether ``said`` begins as the signature does. The eight bytes in its middle are for older versions."""
    return said[:1] in (b"", _SIGNATURE[:1]) and said[9:10] in (b"", _SIGNATURE[9:10])
