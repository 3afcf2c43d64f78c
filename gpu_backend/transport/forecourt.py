"""Where a ZeroMQ socket's peers come in from a network: libzmq behind it hears few who have shown no good key.

libzmq bounds neither connections nor what the first message of a stranger takes, and 4.3.5 ends its process by an
assertion (`ipc_listener.cpp`) where that has no descriptor left. So who comes by TCP stands here first, and what they
say is passed on to the socket's private address. CURVE is spoken from end to end: nothing here knows a key. That the
server has let somebody in is seen by the command in which it says so, which follows its greeting and its welcome.

Who goes is seen out: libzmq ends its process, too, where a peer hangs up while their queue is full and there is a PING
among what it has read and not queued (`stream_engine_base.cpp`, `out_event`). So it is hung up on only once it has
taken everything, and then one byte more by itself: it reads nothing while it still holds something.
"""

from __future__ import annotations

import asyncio
import fcntl
import resource
import socket
import struct
import termios
from typing import cast
from urllib.parse import urlsplit

from gpu_backend.transport.crowd import in_the_way
from gpu_backend.transport.keepalive import keep_alive

__all__ = ["Forecourt", "listen", "places"]

#: How long the handshake may take, seconds: as long as libzmq gives it.
_PROOF_SECONDS = 5.0
#: Connections whose keys were not accepted yet: in all, and of one host, which may be the near end of a tunnel.
_MOST_ENTERING, _MOST_OF_ONE = 256, 64
#: Bytes passed on for a peer before that. All that a client says in a handshake takes some 700.
_ALLOWANCE_BYTES = 4 << 10
#: ZMTP 3 with CURVE: after the server's greeting, its WELCOME in a frame, and two bytes, the name of what it says then.
_VERDICT = slice(64 + 170 + 2, 64 + 170 + 2 + 6)
_ADMITTED = b"\x05READY"
#: A connection has a descriptor outside, one on the way within, and libzmq's; a process needs some for all else.
_DESCRIPTORS, _KEPT_DESCRIPTORS, _MOST_DESCRIPTORS = 3, 256, 1 << 16
#: Connections that the system keeps for us, and how many of them are taken in one go: the rest waits its turn.
_BACKLOG, _MOST_AT_ONCE = 128, 8
#: What is said last for somebody who has gone: the first byte of a frame that never comes.
_LAST_WORD = b"\0"
#: How soon, and later how often, it is looked whether all was taken, seconds.
_FIRST_LOOK_SECONDS, _LOOK_SECONDS = 0.001, 0.05


def listen(endpoint: str) -> socket.socket:
    """Return a socket that listens at ``endpoint``: ``tcp://ADDRESS:PORT``, an IPv4 address or ``*`` for all.

    Raises
    ------
    OSError
        If it cannot be had.
    """
    host, _, port = urlsplit(endpoint).netloc.rpartition(":")
    flags = socket.AI_NUMERICHOST | socket.AI_PASSIVE
    found = socket.getaddrinfo("0.0.0.0" if host == "*" else host, int(port), socket.AF_INET, flags=flags)
    listening = socket.create_server(cast("tuple[str, int]", found[0][4]), backlog=_BACKLOG)
    keep_alive(listening)
    return listening


def places(doors: int) -> int:
    """Return for how many connections each of so many doors of this process has descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MOST_DESCRIPTORS if limit == resource.RLIM_INFINITY else min(limit, _MOST_DESCRIPTORS)
    return max(1, (limit - _KEPT_DESCRIPTORS) // (_DESCRIPTORS * doors))


class Forecourt:
    """A TCP door before the ZeroMQ socket that is bound at ``path``, which nobody else can reach.

    ``most`` is how many connections there may be, of those whose keys were accepted, of others, and of those who have
    gone and are seen out. Nobody who was let
    in goes for a stranger; for others who were, where there is no room, the eldest of the host that has most. A peer of
    ZeroMQ connects again by itself.
    """

    def __init__(self, path: str, most: int) -> None:
        self._path = path
        self._most_entering = max(1, min(_MOST_ENTERING, most // 4))
        self._most_leaving = max(1, most // 4)
        self._most_admitted = max(1, most - self._most_entering - self._most_leaving)
        self._entering: list[_Outside] = []  # the eldest first
        self._admitted: list[_Outside] = []  # the eldest first
        self._leaving: dict[_Inside, asyncio.Task[None]] = {}  # the eldest first
        self._server: asyncio.Server | None = None

    async def open(self, listening: socket.socket) -> None:
        """Let in who comes to ``listening``, which is this door's from now on."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Outside(self), sock=listening, backlog=_MOST_AT_ONCE)
        listening.listen(_BACKLOG)  # asyncio takes in one go as many as it lets the system keep

    def close(self) -> None:
        """Turn everybody away and accept no more."""
        if self._server is not None:
            self._server.close()
        for one in [*self._entering, *self._admitted]:
            one.abort()
        for inside in [*self._leaving]:
            self._hang_up(inside)

    def receive(self, newcomer: _Outside) -> None:
        """Find a place for somebody who has come. Whoever is in their way goes."""
        _make_room(self._entering, newcomer, self._most_entering, _MOST_OF_ONE)
        self._entering.append(newcomer)
        newcomer.enter(self._path, _PROOF_SECONDS)

    def admit(self, one: _Outside) -> None:
        """Take it that the server has accepted somebody's key."""
        if one in self._entering:
            self._entering.remove(one)
            _make_room(self._admitted, one, self._most_admitted, self._most_admitted)
            self._admitted.append(one)

    def forget(self, one: _Outside) -> None:
        """Give away the place of a connection that is over."""
        for those in (self._entering, self._admitted):
            if one in those:
                those.remove(one)

    def see_out(self, inside: _Inside) -> None:
        """Hang up for somebody who has gone, once everything that they said was taken."""
        if len(self._leaving) >= self._most_leaving:
            self._hang_up(next(iter(self._leaving)))
        self._leaving[inside] = asyncio.get_running_loop().create_task(self._see_out(inside))

    async def _see_out(self, inside: _Inside) -> None:
        await inside.is_taken()
        inside.say(_LAST_WORD)
        await inside.is_taken()
        inside.abort()
        self._leaving.pop(inside, None)

    def _hang_up(self, inside: _Inside) -> None:
        self._leaving.pop(inside).cancel()
        inside.abort()


def _make_room(those: list[_Outside], newcomer: _Outside, most: int, most_of_one: int) -> None:
    gone = in_the_way([one.host for one in those], newcomer.host, most, most_of_one)
    if gone is not None:
        those.pop(gone).abort()


class _End(asyncio.Protocol):
    """One end of a connection that is passed on: what is heard here is said at the other, as fast as that takes it."""

    transport: asyncio.Transport | None = None
    other: _End | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None:
            self.other.leave()

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.say(data)

    def say(self, data: bytes) -> None:
        """Pass on what was heard at the other end."""
        if self.transport is not None:
            self.transport.write(data)

    def leave(self) -> None:
        """End the connection, whose other end is over, once all was said that was heard there."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()


class _Outside(_End):
    """The end that a peer holds, who is a stranger until the server accepts their key."""

    def __init__(self, court: Forecourt) -> None:
        self.host = ""
        self._court = court
        self._left: int | None = _ALLOWANCE_BYTES  # None without a limit
        self._entering: asyncio.Task[None] | None = None
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.host = (transport.get_extra_info("peername") or ("",))[0]
        cast("asyncio.Transport", transport).pause_reading()  # until there is somebody to say it to
        self._court.receive(self)

    def enter(self, path: str, seconds: float) -> None:
        """Be passed on to the socket at ``path``, for so long unless it lets us in."""
        loop = asyncio.get_running_loop()
        self._late = loop.call_later(seconds, self.abort)
        self._entering = loop.create_task(self._enter(path))

    async def _enter(self, path: str) -> None:
        if self._is_gone:
            return
        inside = _Inside(self, self._court)
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: inside, path)
        except OSError:
            self.abort()
            return
        self.other = inside
        if self._is_gone:
            inside.abort()
        elif self.transport is not None:
            self.transport.resume_reading()

    @property
    def _is_gone(self) -> bool:
        return self.transport is None or self.transport.is_closing()

    def data_received(self, data: bytes) -> None:
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                self.abort()
                return
        super().data_received(data)

    def admitted(self) -> None:
        """Be no stranger any more."""
        self._left = None
        if self._late is not None:
            self._late.cancel()
        self._court.admit(self)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        if self._late is not None:
            self._late.cancel()
        self._court.forget(self)


class _Inside(_End):
    """The end at the ZeroMQ socket, which says whether it lets the peer in."""

    def __init__(self, outside: _Outside, court: Forecourt) -> None:
        self.other = outside
        self._outside = outside
        self._court = court
        self._said: bytearray | None = bytearray()  # None once it is known

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._said is not None:
            self._said += data[: _VERDICT.stop]
            if len(self._said) >= _VERDICT.stop:
                if self._said[_VERDICT] == _ADMITTED:
                    self._outside.admitted()
                self._said = None

    def leave(self) -> None:
        """End the connection of somebody who has gone, as `Forecourt.see_out` does."""
        self.other = None
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()  # answers that nobody reads must not keep libzmq from reading
            self._court.see_out(self)

    async def is_taken(self) -> None:
        """Wait until libzmq has read all that was said here, or is gone."""
        pause = _FIRST_LOOK_SECONDS
        while self._unread_bytes():
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LOOK_SECONDS)

    def _unread_bytes(self) -> int:
        if self.transport is None or self.transport.is_closing():
            return 0
        own = cast("socket.socket", self.transport.get_extra_info("socket"))
        try:
            (in_between,) = struct.unpack("i", fcntl.ioctl(own, termios.TIOCOUTQ, bytes(4)))
        except OSError:  # a system that cannot tell: nobody is waited for in vain
            return 0
        return self.transport.get_write_buffer_size() + cast("int", in_between)
