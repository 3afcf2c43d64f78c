"""The way between two processes of one user on one host: messages over a Unix stream socket.

ZeroMQ hands every message to a thread of its own on either side, which costs some 50 µs a round trip and a copy. Here
the two processes speak to each other directly. The kernel vouches for the peer: the socket lies in a directory that
only its owner may enter, and the peer's user id is checked on top. Between users or hosts there is CURVE, and only
that.

A message is a ``u32`` number of frames, a ``u64`` length for each, and the frames' bytes; all little-endian.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from gpu_backend.transport.sockets import MAX_FRAME_BYTES
from gpu_backend.wire.codec import MAX_FRAMES, Frame

_COUNT = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
_SINGLE = struct.Struct("<IQ")  # what stands before a message of one frame
#: Read in one go, into memory that stays: to have the system give and take it back costs ten times the reading.
_READ_BYTES = 256 << 10
#: Largest message that is read; its sender is cut off. The largest that the protocol needs is the upload of one op's
#: arguments, and what is larger than a frame may be travels in pieces.
MAX_MESSAGE_BYTES = 1 << 30
_BUFFER_BYTES = 4 << 20
_PEER = struct.Struct("iII")  # struct ucred: pid, uid, gid


class LocalClosed(ConnectionError):
    """The peer is gone, is another user's, or does not speak this format."""


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
    """

    def __init__(self, connected: socket.socket, process: PeerProcess | None = None) -> None:
        self._process = process
        connected.setblocking(False)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):  # as much as the system allows
            connected.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        self._socket = connected
        self._unsent: deque[memoryview] = deque()
        self._arrived = memoryview(bytearray(_READ_BYTES))
        self._read = bytearray()
        self._large: _LargeMessage | None = None

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self._socket.fileno()

    @property
    def is_sending(self) -> bool:
        """True while part of a message waits for the peer to read."""
        return bool(self._unsent)

    @property
    def has_read_ahead(self) -> bool:
        """True while something has been read that was not yet received."""
        return bool(self._read) or self._large is not None

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send a message, or as much as goes now; False if an earlier one is still on its way and nothing was taken.

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
        head = _COUNT.pack(len(frames)) + b"".join(_LENGTH.pack(len(frame)) for frame in frames)
        self._unsent.extend([memoryview(head), *(memoryview(frame).cast("B") for frame in frames if len(frame))])
        self.push()
        return True

    def _send_single(self, frame: Frame) -> None:
        """Send a message as nearly all are: of one frame, and taken by the system at once."""
        data = _SINGLE.pack(1, len(frame)) + frame
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise LocalClosed(str(error)) from None
        if sent < len(data):
            self._unsent.append(memoryview(data)[sent:])

    def push(self) -> bool:
        """Send what still waits; tell whether all is sent."""
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
        return True

    def receive(self) -> list[Frame] | None:
        """Return the next message, or None if none is complete.

        Raises
        ------
        LocalClosed
            If the peer is gone or sends what is no message.
        """
        if self._read:
            message = self._parse()
            if message is not None:
                return message
        try:
            if self._large is not None:
                self._large.read_from(self._socket)
                return self._finish_large()
            taken = self._socket.recv_into(self._arrived)
        except BlockingIOError:
            return None
        except OSError as error:
            raise LocalClosed(str(error)) from None
        if not taken:
            raise LocalClosed("the peer closed the connection")
        arrived = self._arrived
        if not self._read and taken > _SINGLE.size and _SINGLE.unpack_from(arrived) == (1, taken - _SINGLE.size):
            return [bytes(arrived[_SINGLE.size : taken])]  # as nearly all are: one frame, and whole
        self._read += arrived[:taken]
        return self._parse()

    def _parse(self) -> list[Frame] | None:
        read = self._read
        if len(read) < _COUNT.size:
            return None
        (count,) = _COUNT.unpack_from(read)
        if not 0 < count <= MAX_FRAMES + 1:
            raise LocalClosed(f"a message of {count} frames")
        start = _COUNT.size + count * _LENGTH.size
        if len(read) < start:
            return None
        lengths = struct.unpack_from(f"<{count}Q", read, _COUNT.size)
        if max(lengths) > MAX_FRAME_BYTES:
            raise LocalClosed(f"a frame of {max(lengths)} bytes")
        total = sum(lengths)
        if total > MAX_MESSAGE_BYTES:
            raise LocalClosed(f"a message of {total} bytes")
        if len(read) < start + total:
            if total > _READ_BYTES:
                self._large = _LargeMessage(lengths, memoryview(bytes(read))[start:])
                self._read = bytearray()
            return None
        frames = _split(memoryview(bytes(read[start : start + total])), lengths)
        del read[: start + total]
        return frames

    def _finish_large(self) -> list[Frame] | None:
        large = self._large
        if large is None or not large.is_complete:
            return None
        self._large = None
        return large.frames()

    def take_process(self) -> PeerProcess | None:
        """Return the peer's process, which the caller closes."""
        process, self._process = self._process, None
        return process

    def close(self) -> None:
        """Close at once."""
        self._socket.close()
        if self._process is not None:
            self._process.close()


class _LargeMessage:
    """A message whose bytes go straight to where they stay."""

    def __init__(self, lengths: tuple[int, ...], begun: memoryview) -> None:
        self._lengths = lengths
        self._content = memoryview(bytearray(sum(lengths)))
        self._content[: len(begun)] = begun
        self._filled = len(begun)

    @property
    def is_complete(self) -> bool:
        return self._filled == len(self._content)

    def read_from(self, source: socket.socket) -> None:
        while not self.is_complete:
            taken = source.recv_into(self._content[self._filled :])
            if not taken:
                raise LocalClosed("the peer closed the connection")
            self._filled += taken

    def frames(self) -> list[Frame]:
        return _split(self._content, self._lengths)


def _split(content: memoryview, lengths: tuple[int, ...]) -> list[Frame]:
    frames: list[Frame] = []
    start = 0
    for length in lengths:
        frames.append(content[start : start + length])
        start += length
    return frames


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
    return LocalSocket(connected)


def _peer(connected: socket.socket) -> tuple[int, int]:
    """Return the peer's process id and user id."""
    pid, uid, _ = _PEER.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return pid, uid
