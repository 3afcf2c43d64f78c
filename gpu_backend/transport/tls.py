"""TLS over TCP, with the face of a socket that does not block: the way to an executor from another host.

The executor's certificate is its own, made when it was started, and known to who connects by its fingerprint; there is
no authority to ask. Records are encrypted and decrypted in memory and not by OpenSSL's own reads and writes: so no
call waits, what was decrypted and not yet read is known, and of whoever has proved nothing yet only so many bytes are
looked at.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import struct
from pathlib import Path
from typing import cast

from gpu_backend.transport.framing import MessageReader
from gpu_backend.transport.keepalive import keep_alive
from gpu_backend.transport.laned_messages import LanedMessages
from gpu_backend.transport.lanes import Lanes, Reach
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.processors import threads_beside

#: By what a stream says in its handshake that it is to be a lane of a connection that there is (ALPN).
LANE = "gpu-workbench-lane"
#: Encrypted in one go; larger pieces leave the processor's cache before they are sent.
_PIECE_BYTES = 64 << 10
#: Lanes each way: so many come close to what the system carries by one stream that is not encrypted.
MOST_LANES = 4
#: Read in one go.
_READ_BYTES = 256 << 10
#: A peer that does not answer so long, though asked, is gone; seconds.
SILENCE_SECONDS = 10.0
#: Of ``struct tcp_info``, whose layout is fixed: probes in vain, segments not confirmed, and the milliseconds since
#: data and since a confirmation came.
_TCP_INFO = struct.Struct("=3xB20xI24xII")


def as_server(certificate: Path) -> ssl.SSLContext:
    """Return the context of an executor whose key and certificate are in the file ``certificate``.

    Raises
    ------
    OSError
        If the file cannot be read or holds neither.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.num_tickets = 0  # nobody resumes
    context.set_alpn_protocols([LANE])
    return context


def as_client(is_lane: bool = False) -> ssl.SSLContext:
    """Return the context of who connects. It believes any certificate: look at `TlsStream.fingerprint` first of all."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    if is_lane:
        context.set_alpn_protocols([LANE])
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _context(protocol: ssl._SSLMethod) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def fingerprint_of(certificate: bytes) -> str:
    """Return by what a ``certificate`` (DER) is known."""
    return hashlib.sha256(certificate).hexdigest()


class TlsStream:
    """One side of an encrypted connection. Its calls raise BlockingIOError where they would wait.

    ``allowance`` is how many bytes are read at most, until `trust` lifts that.
    """

    def __init__(self, connected: socket.socket, context: ssl.SSLContext, is_server: bool, allowance: int) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages leave at once
        keep_alive(connected)
        self._socket = connected
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._arrived = memoryview(bytearray(min(allowance, _READ_BYTES)))
        self._allowance: int | None = allowance
        self._unsent = memoryview(b"")  # encrypted
        self._taken = 0  # so much of what is being sent is encrypted already

    def fileno(self) -> int:
        """Return the descriptor, for a poller."""
        return self._socket.fileno()

    def shake_hands(self) -> None:
        """Go on with the handshake; it is done when this returns.

        Raises
        ------
        BlockingIOError
            If the peer has to say something first.
        OSError
            If it will never be done.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                if not self._read():
                    raise ConnectionResetError("the peer closed the connection") from None
            except ssl.SSLError:
                self._try_to_flush()  # what is wrong, in TLS's own words
                raise
            else:
                self._flush()
                return

    @property
    def fingerprint(self) -> str:
        """By what the peer's certificate is known."""
        return fingerprint_of(self._tls.getpeercert(binary_form=True) or b"")

    @property
    def is_lane(self) -> bool:
        """Whether both sides mean it to be a lane."""
        return self._tls.selected_alpn_protocol() == LANE

    def trust(self) -> None:
        """Read whatever comes from now on: the peer has proved who it is."""
        self._allowance = None
        self._arrived = memoryview(bytearray(_READ_BYTES))

    @property
    def has_pending(self) -> bool:
        """True while something has arrived that was not yet read."""
        return bool(self._tls.pending() or self._incoming.pending)

    def send(self, data: bytes | memoryview) -> int:
        """Send some of ``data``; return how much. After a BlockingIOError, the next call must bring the same again."""
        if not self._taken:
            self._taken = self._tls.write(data[:_PIECE_BYTES])
        self._flush()
        taken, self._taken = self._taken, 0
        return taken

    def recv_into(self, buffer: memoryview) -> int:
        """Read into ``buffer`` what there is; return how much, 0 after the end."""
        try:
            while not (taken := self._decrypt(buffer)):
                if not self._read():
                    return 0
        except ssl.SSLZeroReturnError:
            return 0
        return taken

    def _decrypt(self, buffer: memoryview) -> int:
        taken = 0
        try:
            while taken < len(buffer):
                # Into a buffer; typeshed knows only the call without one.
                taken += cast("int", self._tls.read(len(buffer) - taken, buffer[taken:]))
        except ssl.SSLWantReadError:
            if self._outgoing.pending:  # TLS's own business
                self._try_to_flush()
        except ssl.SSLZeroReturnError:
            if not taken:
                raise
        return taken

    def _read(self) -> int:
        if self._allowance is None:
            arrived = self._socket.recv_into(self._arrived)
        elif not self._allowance:
            raise ConnectionAbortedError("the peer says too much before it has proved who it is")
        else:
            arrived = self._socket.recv_into(self._arrived[: self._allowance])
            self._allowance -= arrived
        self._incoming.write(self._arrived[:arrived])
        return arrived

    def _flush(self) -> None:
        while self._unsent or self._outgoing.pending:
            if not self._unsent:
                self._unsent = memoryview(self._outgoing.read())
            self._unsent = self._unsent[self._socket.send(self._unsent) :]

    def _try_to_flush(self) -> None:
        try:
            self._flush()
        except OSError:
            return  # later, or never

    def is_silent(self) -> bool:
        """Tell whether the peer's host has not answered for `SILENCE_SECONDS` although it should have.

        The system asks by itself where nothing is under way, and gives up; where something is, it would try for a
        quarter of an hour. A peer that computes and does not read is not silent: its system answers for it.
        """
        return is_silent(self._socket)

    def shut(self) -> None:
        """Have whoever waits at it wait no more."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # it is closed already
            return

    def close(self) -> None:
        """Close at once."""
        self._socket.close()


def is_silent(connected: socket.socket) -> bool:
    """Tell of a TCP connection what `TlsStream.is_silent` tells."""
    try:
        told = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    except OSError:
        return True
    probes, unconfirmed, since_data, since_confirmed = _TCP_INFO.unpack(told)
    # One probe may just be on its way, long after the last: who does not read is asked ever more rarely.
    return bool(probes > 1 or unconfirmed > 0) and min(since_data, since_confirmed) > SILENCE_SECONDS * 1_000


def messages_of(
    stream: TlsStream, lanes: int = MOST_LANES, reach: Reach | None = None
) -> tuple[MessageSocket, Lanes | None]:
    """Return what takes messages by ``stream``, and up to so many ``lanes``, if this host has processors for any.

    ``reach`` connects one, where it is this side that connects.
    """
    most = threads_beside(min(lanes, MOST_LANES))
    beside = Lanes(most, reach) if most else None
    expect = beside.expect if beside is not None else None
    # More may have arrived than was read.
    reader = MessageReader(stream, has_pending=lambda: stream.has_pending, expect=expect)
    laned = LanedMessages(stream.fileno(), reader, beside) if beside is not None else None
    return MessageSocket(stream, reader, laned=laned), beside


def tls_way(fingerprint: str) -> bytes:
    """Return by what a way with the certificate of ``fingerprint`` is known in a proof."""
    return b"tls " + fingerprint.encode()
