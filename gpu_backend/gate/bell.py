"""Waking each other up: what an arbiter, or an executor behind a shut gate, sleeps on.

The pages say everything; a ring says only "look now". So a lost one costs the time until the next look, and nothing is
sent where nobody sleeps. An agent rings at a socket file in the arbiter's own directory, which no executor can reach.
An arbiter and an executor ring each other over a pair of sockets of their own, so that the arbiter knows who rang. Not
an eventfd: whether that blocks is a flag that both sides share, so that an executor could put its arbiter to sleep.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

__all__ = ["Bell", "Line", "ring"]

_MOST_BYTES = 4_096
_NOW = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class Bell:
    """A bell that can be rung by whoever can reach its file."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)  # of a predecessor that was killed
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        os.chmod(path, 0o600)

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self._socket.fileno()

    def clear(self) -> None:
        """Forget who has rung."""
        with suppress(BlockingIOError):
            while True:
                self._socket.recv(1, socket.MSG_DONTWAIT)

    def close(self) -> None:
        """Hear nothing more."""
        self._socket.close()


def ring(path: Path) -> None:
    """Ring the bell at ``path``. Nobody there, or one that rings already, is as good as rung."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ringer, suppress(OSError):
        ringer.sendto(b"\0", _NOW, str(path))


class Line:
    """One end of a pair of bells: rings the other's, and is rung by it. Never waits, whatever the other does."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)

    @classmethod
    def pair(cls) -> tuple[Line, int]:
        """Return an end, and the descriptor of the other, which the caller closes when it has been handed over."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return cls(ours.detach()), theirs.detach()

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self._socket.fileno()

    def ring(self) -> None:
        """Ring the other's bell."""
        with suppress(OSError):  # it rings already, or nobody is there any more
            self._socket.send(b"\0", _NOW)

    def clear(self) -> bool:
        """Forget that this end was rung; tell whether the other is still there."""
        try:
            return bool(self._socket.recv(_MOST_BYTES, _NOW))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Let go of this end."""
        self._socket.close()
