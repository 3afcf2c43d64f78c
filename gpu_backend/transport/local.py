"""The way between two processes of one user on one host: messages over a Unix stream socket.

ZeroMQ hands every message to a thread of its own on either side, which costs some 50 µs a round trip and a copy. Here
the two processes speak to each other directly. The kernel vouches for the peer: the socket lies in a directory that
only its owner may enter, and the peer's user id is checked on top. Between users or hosts there is CURVE, and only
that.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from gpu_backend.transport.local_messages import MEMORY_FOLLOWS, READ_BYTES, LocalClosed, MessageReader, head, single
from gpu_backend.transport.shared_frames import BLOCK_BYTES, SharedFrames, make_memory
from gpu_backend.wire.codec import Frame

__all__ = ["LocalClosed", "LocalListener", "LocalSocket", "PeerProcess", "connect"]

_BUFFER_BYTES = 4 << 20
#: How long a message waits for a block, seconds; then it goes through the socket. Who reads holds blocks for moments.
_BLOCK_SECONDS = 0.05
_PEER = struct.Struct("iII")  # struct ucred: pid, uid, gid


class PeerProcess:
    """The process at the other end of a connection, held by a descriptor of its own: its number may be given anew."""

    def __init__(self, connected: socket.socket) -> None:
        pid = _peer(connected)[0]  # 0 if it lives where this process cannot see it
        try:
            self._descriptor = os.pidfd_open(pid) if pid else -1
        except OSError:  # it is gone already, or the system has none: then only what it sends tells of it
            self._descriptor = -1

    def has_ended(self) -> bool:
        """Tell whether the process is known to have ended. One system call."""
        if self._descriptor < 0:
            return False
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Watch no more. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class LocalSocket:
    """A connected socket that carries messages of several frames. Never blocks.

    ``process`` is the peer's, if anybody wants to know of its end; it is closed with the socket unless taken.
    ``shared`` is the memory for large frames; without it, the peer may still hand one over.
    """

    def __init__(
        self, connected: socket.socket, process: PeerProcess | None = None, shared: SharedFrames | None = None
    ) -> None:
        self._process = process
        connected.setblocking(False)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):  # as much as the system allows
            connected.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        self._socket = connected
        self._reader = MessageReader(connected, shared)
        #: `MessageReader.receive`.
        self.receive: Callable[[], list[Frame] | None] = self._reader.receive
        self._unsent: deque[memoryview] = deque()
        self._lacked_block_at = 0.0  # since when a message waits for a block

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self._socket.fileno()

    @property
    def is_sending(self) -> bool:
        """True while a message, or part of one, waits for the peer to read."""
        return bool(self._unsent) or self._waits_for_block()

    @property
    def has_read_ahead(self) -> bool:
        """True while something has been read that was not yet received."""
        return self._reader.has_read_ahead

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send a message, or as much as goes now; False if nothing was taken, as earlier ones are still on their way.

        Raises
        ------
        LocalClosed
            If the peer is gone.
        """
        if self._unsent and not self.push():
            return False
        if len(frames) == 1:
            self._send_single(frames[0])
            return True
        shared = self._reader.shared
        if shared is not None and shared.is_joined:
            if self._must_wait_for_block(shared, frames):
                return False
            blocks = [shared.put(frame) if _is_large(frame) else None for frame in frames]
        else:
            blocks = [None] * len(frames)
        through_socket = [frame for frame, block in zip(frames, blocks, strict=True) if block is None and len(frame)]
        self._unsent += [memoryview(head(frames, blocks)), *(memoryview(frame).cast("B") for frame in through_socket)]
        self.push()
        return True

    def _must_wait_for_block(self, shared: SharedFrames, frames: Sequence[Frame]) -> bool:
        if not shared.is_full or not any(map(_is_large, frames)):
            self._lacked_block_at = 0.0
            return False
        self._lacked_block_at = self._lacked_block_at or monotonic()
        return self._waits_for_block()

    def _waits_for_block(self) -> bool:
        return self._lacked_block_at > 0 and monotonic() < self._lacked_block_at + _BLOCK_SECONDS

    def _send_single(self, frame: Frame) -> None:
        """Send a message as nearly all are: of one frame, and taken by the system at once."""
        data = single(frame)
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise LocalClosed(str(error)) from None
        if sent < len(data):
            self._unsent.append(memoryview(data)[sent:])

    def push(self) -> bool:
        """Send what still waits; tell whether there is room for the next message."""
        unsent = self._unsent
        while unsent:
            try:
                sent = self._socket.send(unsent[0])
            except BlockingIOError:
                return False
            except OSError as error:
                raise LocalClosed(str(error)) from None
            if sent == len(unsent[0]):
                unsent.popleft()
            else:
                unsent[0] = unsent[0][sent:]
        return not (self._waits_for_block() and self._reader.shared is not None and self._reader.shared.is_full)

    def take_process(self) -> PeerProcess | None:
        """Return the peer's process, which the caller closes."""
        process, self._process = self._process, None
        return process

    def close(self) -> None:
        """Close at once."""
        self._socket.close()
        if self._process is not None:
            self._process.close()


def _is_large(frame: Frame) -> bool:
    return READ_BYTES < len(frame) <= BLOCK_BYTES


class LocalListener:
    """Accepts connections of this process's own user."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        path.chmod(0o600)
        self._socket.listen(8)
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self._socket.fileno()

    def accept(self) -> LocalSocket | None:
        """Return the next connection, or None. One of another user is closed at once."""
        try:
            connected, _ = self._socket.accept()
        except OSError:
            return None
        if _peer(connected)[1] != os.geteuid():
            connected.close()
            return None
        return LocalSocket(connected, PeerProcess(connected))

    def close(self) -> None:
        """Accept no more."""
        self._socket.close()


def connect(path: str) -> LocalSocket:
    """Connect to the listener at ``path``.

    Raises
    ------
    LocalClosed
        If nobody listens there, or another user does.
    """
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connected.connect(path)
    except OSError as error:
        connected.close()
        raise LocalClosed(f"{path}: {error.strerror}") from None
    if _peer(connected)[1] != os.geteuid():
        connected.close()
        raise LocalClosed(f"{path} belongs to another user")
    return LocalSocket(connected, shared=_share_memory(connected))


def _share_memory(connected: socket.socket) -> SharedFrames | None:
    """Make memory for large frames and hand it over; None where the system has none to give."""
    try:
        descriptor = make_memory()
    except OSError:
        return None
    try:
        socket.send_fds(connected, [MEMORY_FOLLOWS], [descriptor])
        return SharedFrames(descriptor, is_maker=True)
    except OSError as error:
        connected.close()
        raise LocalClosed(str(error)) from None
    finally:
        os.close(descriptor)


def _peer(connected: socket.socket) -> tuple[int, int]:
    """Return the peer's process id and user id."""
    pid, uid, _ = _PEER.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return pid, uid
