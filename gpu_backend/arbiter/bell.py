"""Waking each other up: a socket file that an arbiter, or an executor behind a shut gate, sleeps on.

The page says everything; a ring says only "look now". So a lost one costs the time until the next look, and nothing is
sent where nobody sleeps.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

__all__ = ["Bell", "Ringer"]

_LONGEST_NAME = 256


class Bell:
    """A bell of one's own."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)  # of a predecessor that was killed
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(path))
        os.chmod(path, 0o600)

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self._socket.fileno()

    def clear(self) -> set[bytes]:
        """Return who has rung so far, and forget it."""
        rung = set()
        with suppress(BlockingIOError):
            while True:
                rung.add(self._socket.recv(_LONGEST_NAME))
        return rung

    def close(self) -> None:
        """Hear nothing more."""
        self._socket.close()


class Ringer:
    """Rings others' bells."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def ring(self, path: str, name: bytes = b"") -> None:
        """Ring the bell at ``path`` as ``name``. Nobody there, or one that rings already, is as good as rung."""
        with suppress(OSError):
            self._socket.sendto(name, path)

    def close(self) -> None:
        """Ring no more."""
        self._socket.close()
