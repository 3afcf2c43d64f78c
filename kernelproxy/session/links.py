"""The ways to an executor: on its own host through shared memory or a Unix socket, and by TLS from any other."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Sequence
from time import monotonic, sleep

import msgspec

from gpu_backend.transport import local
from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.processors import has_spare
from gpu_backend.transport.reaching import TLS_SCHEME, Expected, NobodyListens, NotReached, reach_far, reach_local
from gpu_backend.transport.ring import naps
from gpu_backend.transport.spinning import Spinning
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.control import Ticket
from kernelproxy import compiled
from kernelproxy.session.unreached import ExecutorEnded

#: How long to look for an answer without sleeping at least, seconds: most answers come sooner than a sleeper wakes.
_SPIN_SECONDS = 100e-6
#: How often who spins lets others have the interpreter, and the processor, seconds.
_YIELD_SECONDS = 50e-6
_MILLISECOND = 1e-3
#: How often to look whether the other host is still there, seconds.
_LOOK_SECONDS = 1.0
#: How often who finds nothing hears whether the peer is gone, seconds: rings do not tell of it.
_HEAR_SECONDS = 0.05


class Link:
    """Carries messages, once both sides have proved who they are. Used by one thread at a time.

    ``is_silent`` tells whether the other host is gone without a word, where that can be.

    Attributes
    ----------
    is_torn
        True while a message is half sent or half taken. If an interrupt leaves it so, nothing on the link can be sure
        any more. It stays so after `receive` has returned a message, until the caller has that safe and sets it back.
    """

    def __init__(self, socket: MessageSocket, is_silent: Callable[[], bool] | None = None) -> None:
        self._socket = socket
        self._is_silent = is_silent
        self._looked_at = self._heard_at = monotonic()
        self._poll = select.poll()
        self._poll.register(self._socket.fileno(), select.POLLIN)
        self._has_news = socket.has_news
        self._spinning = Spinning(_SPIN_SECONDS, has_spare)
        #: Since when is waited for a message, by turns of whoever does; 0 if one was the last that came.
        self._waits_since = 0.0
        self._is_cut = False
        self.is_torn = False

    @property
    def is_cut(self) -> bool:
        """True once the way is known to be lost."""
        if self._is_silent is not None and not self._is_cut and monotonic() - self._looked_at > _LOOK_SECONDS:
            self._looked_at = monotonic()
            self._is_cut = self._is_silent()
        return self._is_cut

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send a message; False if the one before is still on its way, or memory for what is large is not free yet."""
        if len(frames) > 1:
            placed = self._socket.place(frames)  # an interrupt in all this copying tears nothing
            if placed is None:
                return False
            frames = placed
        self.is_torn = True
        try:
            has_room = self._socket.send(frames)
        except ConnectionLost:
            self._is_cut = has_room = True  # lost like everything under way: it is sent again after the next greeting
        self.is_torn = False
        return has_room

    def receive(self, timeout_seconds: float) -> list[Frame] | None:
        """Return the next message, or None if none comes in time. Ctrl-C interrupts the wait."""
        asked = monotonic()
        try:
            if timeout_seconds and (message := self._soon(asked, timeout_seconds)) is not None:
                return message
            until = asked + timeout_seconds
            spin_until = min(until, (self._waits_since or asked) + self._spinning.seconds)
            was_sending = not self._push()
            while (message := self._take()) is None:
                now = monotonic()
                if now >= until or (was_sending and self._push()):
                    break  # the caller may have waited for room to send
                # Nobody tells of room: it is looked for as often as others are let have the processor.
                look_until = min(spin_until, now + _YIELD_SECONDS) if was_sending else spin_until
                if not self._spin(look_until) and monotonic() >= spin_until:
                    self._sleep(until - now)
        except ConnectionLost:
            self._is_cut = True
            self.is_torn = False
            return None
        if timeout_seconds:
            self._note_wait(asked, message is not None)
        if message is None and asked - self._heard_at > _HEAR_SECONDS:  # time may have been over before it could wait
            self._heard_at = asked
            self._socket.wake(is_rung=bool(self._poll.poll(0)))  # what was rung for is read by the next look
        return message

    def _soon(self, asked: float, most_seconds: float) -> list[Frame] | None:
        """Return a message as most answers are: whole in a ring, and here before others are let have a turn."""
        socket = self._socket
        if not socket.passes_whole:
            return None
        if not socket.spin(0.0):
            os.sched_yield()  # who answers may want this processor
            if not socket.spin(asked + min(most_seconds, _YIELD_SECONDS)):
                return None
        self.is_torn = True
        message = socket.take_whole()
        if message is None:
            self.is_torn = False
        else:
            self._note_wait(asked, True)
        return message

    def _note_wait(self, asked: float, has_come: bool) -> None:
        since = self._waits_since or asked
        if has_come:
            self._spinning.note(monotonic() - since)
        self._waits_since = 0.0 if has_come else since

    def _spin(self, until: float) -> bool:
        """Look for news without sleeping; False if there are none ``until`` then."""
        spin, look_until = self._socket.spin, 0.0  # once at first: who answers may want this processor
        while not spin(look_until):
            now = monotonic()
            if now >= until:
                return False
            os.sched_yield()
            look_until = min(until, now + _YIELD_SECONDS)
        return True

    def _take(self) -> list[Frame] | None:
        if not self._has_news() and not self._socket.has_read_ahead:  # takes a fourth of a read in vain
            return None
        self.is_torn = True
        message = self._socket.take_whole()
        if message is None:
            message = self._socket.receive()
        if message is None:
            self.is_torn = False
        return message

    def _push(self) -> bool:
        self.is_torn = True
        try:
            done = self._socket.push()
        except ConnectionLost:
            self._is_cut = done = True  # what the executor said before it left may still stand here to be read
        self.is_torn = False
        return done

    def _sleep(self, seconds: float) -> None:
        socket = self._socket
        self._poll.modify(socket.fileno(), socket.awaited)
        is_rung = False
        for nap in naps(socket.most_sleep(seconds)):
            if is_rung or not socket.doze():
                break
            is_rung = self._nap(nap)
        socket.wake(is_rung)
        self._push()

    def _nap(self, seconds: float) -> bool:
        if seconds < _MILLISECOND and self._socket.is_sending:  # by a call that knows of less than milliseconds
            sleep(seconds)
            return bool(self._poll.poll(0))
        return bool(self._poll.poll(max(1, int(seconds * 1_000))))

    def lend(self, size: int) -> Bytes | None:
        """Return memory for a frame of ``size`` bytes that is sent as it is; None if there is none now."""
        return self._socket.lend(size)

    def own(self) -> None:
        """Copy what is half sent: whoever gave it may change it from now on."""
        self._socket.own()

    def close(self) -> None:
        """Close; what the system has taken still arrives."""
        self._socket.close()


def as_reached(ticket: Ticket, executor_host: str) -> Ticket:
    """Return ``ticket`` with the way for other hosts as this machine goes it; see `ClientSettings.executor_host`.

    Whoever answers there must still prove to be the executor that the ticket names.
    """
    if not executor_host:
        return ticket
    ways = [
        f"{TLS_SCHEME}{executor_host}:{one.rpartition(':')[2]}" if one.startswith(TLS_SCHEME) else one
        for one in ticket.endpoints
    ]
    return msgspec.structs.replace(ticket, endpoints=tuple(ways))


def open_link(ticket: Ticket, timeout_seconds: float, lanes: int = 0) -> tuple[Link, str]:
    """Return the first link to the executor of ``ticket`` that this host can have, and its endpoint.

    One to another host may have so many ``lanes`` each way.

    Raises
    ------
    NotReached
        If the executor cannot be reached within ``timeout_seconds``: an `ExecutorEnded` if that is because it has
        ended, a `NobodyListens` if the last way that was tried refused the connection.
    ConnectionLost
        If it was, and the connection was cut.
    ProofFailed
        If it is not the one that the ticket names, or does not take us for the one that the ticket was given to.
    """
    deadline = monotonic() + timeout_seconds
    expected = Expected(bytes.fromhex(ticket.secret), ticket.certificate)
    failure = NotReached("its ticket names no way that this host has")
    for endpoint in ticket.endpoints:
        remaining = deadline - monotonic()
        try:
            if local.is_here(endpoint):
                return Link(_reach_here(endpoint, expected, remaining)), endpoint
            if endpoint.startswith(TLS_SCHEME):
                socket, stream = reach_far(endpoint, expected, remaining, lanes)
                return Link(socket, stream.is_silent), endpoint
        except ExecutorEnded:
            raise  # nor does it listen anywhere else
        except NotReached as error:
            failure = error
            if deadline - monotonic() <= 0:
                break
    raise failure


def _reach_here(endpoint: str, expected: Expected, timeout_seconds: float) -> MessageSocket:
    try:
        return reach_local(endpoint, expected, timeout_seconds)
    except NobodyListens as error:
        raise ExecutorEnded(str(error)) from None


compiled.learn(ConnectionLost=ConnectionLost, Link=Link, yield_seconds=_YIELD_SECONDS)
