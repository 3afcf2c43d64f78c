"""One request to a gateway and its answer, over ZeroMQ in this very process."""

from __future__ import annotations

import secrets
from contextlib import suppress
from time import monotonic
from typing import NamedTuple

import msgspec
import zmq

from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.greeting import Greeting, greeting_at
from gpu_backend.transport.handshake import HandshakeWatch
from gpu_backend.transport.sockets import as_client
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.control import Denied, FromGateway
from gpu_backend.wire.errors import (
    AnswerOverdue,
    ExecutorStarting,
    ForeignServer,
    KeyRefused,
    NoDevice,
    NotAuthorized,
    PoolFull,
    PoolRefusal,
    PoolUnreachable,
    RefusalCode,
    SessionLost,
    TooManyAtOnce,
    WireError,
)
from gpu_backend.wire.joining import Question
from gpu_backend.wire.told import fit_answer

#: How long to sleep at most before the deadline is looked at, seconds.
_LOOK_SECONDS = 0.2
#: How long a port may take to greet, seconds: what listens does so at once, and two ways there and back are needed.
_GREETING_SECONDS = 1.0
_TUNNEL = (
    "If that is the near end of a tunnel, see that the tunnel still runs, that it leads to the pool's `listen_port`, "
    "and that the pool is up (`workbench pool status` on its host); otherwise another program has this port. No key "
    "was looked at, neither yours nor the pool's."
)
#: What is said of a port where somebody listens, and no pool.
_NO_POOL = {
    Greeting.CLOSED: f"accepts connections and closes them without a word: no pool is behind it. {_TUNNEL}",
    Greeting.SILENT: f"accepts connections and then says nothing: the pool behind it is halted, or is none. {_TUNNEL}",
    Greeting.OTHER: f"answers, and does not speak as a pool does. {_TUNNEL}",
}

_answers: Codec[FromGateway] = Codec(FromGateway)


class Door(NamedTuple):
    """A gateway as a client knows it, and the key to show there."""

    endpoint: str
    server_key: bytes
    keys: KeyPair


def exchange(door: Door, message: Question, timeout_seconds: float) -> FromGateway:
    """Send ``message`` and return the answer; raises as `gpu_backend.transport.asking.ask` does."""
    under_way = _Exchange(door, message)
    try:
        return _answer(under_way, timeout_seconds)
    finally:
        under_way.close()


def _answer(under_way: _Exchange, timeout_seconds: float) -> FromGateway:
    deadline = monotonic() + timeout_seconds
    while (answer := under_way.read()) is None:
        remaining = deadline - monotonic()
        if remaining <= 0:
            raise under_way.silence(timeout_seconds)
        zmq.zmq_poll(under_way.polled, int(min(remaining, _LOOK_SECONDS) * 1000) + 1)
    return answer


class _Exchange:
    """One request under way, on a socket of its own that lives no longer than that."""

    def __init__(self, door: Door, message: Question) -> None:
        self._address, self._public = door.endpoint, door.keys.public.decode()
        self._number = secrets.randbits(32)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._watch = HandshakeWatch(self._socket)
        try:
            as_client(self._socket, door.keys, door.server_key).connect(door.endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise PoolUnreachable(
                f"The address {door.endpoint} or its key cannot be used: {error}. Run `workbench connect` again."
            ) from None
        with suppress(zmq.Again):  # whoever speaks otherwise has ended the connection already: `silence` tells of them
            self._socket.send_multipart(encode(msgspec.structs.replace(message, request=self._number)), zmq.NOBLOCK)
        self.polled = [(self._socket, zmq.POLLIN), (self._watch.monitor, zmq.POLLIN)]

    def read(self) -> FromGateway | None:
        """Return the answer if it is there."""
        self._watch_handshakes()
        if self._watch.is_foreign:
            raise ForeignServer(
                f"What answers at {self._address} is not the pool whose public key we hold. "
                "Compare address, port and server key with those that its operator sees (`workbench pool status` "
                "there), and run `workbench connect` with them. Your own key was not looked at."
            )
        if self._watch.failure:
            raise KeyRefused(
                f"The pool at {self._address} turned us away: it does not know our key {self._public}, or it was "
                "revoked there. Its operator sees that with `workbench pool keys`, and adds or restores it."
            )
        while self._socket.poll(0):
            try:
                answer = fit_answer(_answers.decode(self._socket.recv_multipart()))
            except WireError as error:
                raise PoolRefusal(f"The answer of the pool at {self._address} cannot be read. {error}") from None
            if isinstance(answer, Denied) and answer.request in (self._number, 0):
                raise refusal(answer)
            if answer.request == self._number:
                return answer
        return None

    def silence(self, seconds: float) -> PoolUnreachable:
        """Return what to raise when the time is up."""
        if self._watch.succeeded:
            return AnswerOverdue(
                f"The pool at {self._address} took the request and did not answer within {seconds:.1f} s. "
                "Try again; if it stays so, ask the pool's operator to look at its log."
            )
        greeting = greeting_at(self._address, _GREETING_SECONDS)
        if told := _NO_POOL.get(greeting):
            return PoolUnreachable(f"Something at {self._address} {told}")
        if greeting is Greeting.UNKNOWN:
            return PoolUnreachable(
                f"No machine is known here by the name in {self._address}. See that it is spelt as the pool's operator "
                "spells it, and that this machine is on the network that knows it."
            )
        if greeting is Greeting.CURVE and self._watch.failures:
            return PoolUnreachable(
                f"A pool answers at {self._address}, and broke off what began the connection (waited {seconds:.1f} s). "
                "Try again; if it stays so, compare the server key with the one that its operator sees."
            )
        return PoolUnreachable(
            f"Nobody answers at {self._address} (waited {seconds:.1f} s). Is the pool up? `workbench doctor` says more."
        )

    def _watch_handshakes(self) -> None:
        """Take in what became of handshakes. One that broke off where nobody greets says nothing of keys."""
        known = self._watch.failures
        self._watch.read()
        if self._watch.failures > known and greeting_at(self._address, _GREETING_SECONDS) is not Greeting.CURVE:
            self._watch.forgive()

    def close(self) -> None:
        self._watch.close()
        self._socket.close(linger=0)
        self._context.destroy(linger=0)


def refusal(answer: Denied) -> NotAuthorized | SessionLost | PoolRefusal:
    """Return the exception that ``answer`` stands for, with the remedy in its text."""
    text = f"{answer.message} {answer.remedy}".strip()
    if answer.code == RefusalCode.NOT_AUTHORIZED:
        return NotAuthorized(text)
    if answer.code in (RefusalCode.ENDED, RefusalCode.UNKNOWN_SESSION):
        return SessionLost(text)
    if answer.code == RefusalCode.STARTING:
        return ExecutorStarting(text)
    if answer.code == RefusalCode.OVER_CREDIT:
        return TooManyAtOnce(text)
    if answer.code == RefusalCode.POOL_FULL:
        return PoolFull(text)
    if answer.code == RefusalCode.NO_DEVICE:
        return NoDevice(text)
    return PoolRefusal(text)
