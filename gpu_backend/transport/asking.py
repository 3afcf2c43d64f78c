"""Asking a gateway: one request, one answer.

libzmq 4.3.5 ends its process by an assertion when bytes are altered on their way over a network. No notebook and no
Jupyter server may end by that, so a gateway that is not on this host is asked from a process of its own: it lives for
one question, and if it dies the question is put again.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from time import monotonic

import msgspec

from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.exchange import Door, exchange
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.control import FromGateway, OpenSession
from gpu_backend.wire.errors import (
    AnswerOverdue,
    ExecutorStarting,
    ForeignServer,
    KeyRefused,
    NoDevice,
    NotAuthorized,
    PoolError,
    PoolFull,
    PoolRefusal,
    PoolUnreachable,
    SessionLost,
    TooManyAtOnce,
)
from gpu_backend.wire.joining import Question

__all__ = ["ANSWER_SECONDS", "Door", "answer_one", "ask", "ask_async"]

#: The gateway answers within two seconds; the rest is for the way.
ANSWER_SECONDS = 3.0
#: Only what passes a network can be altered on its way.
_NETWORK = "tcp://"
#: How long the process that asks may take to start and to end on a busy machine, beside the asking, seconds.
_PROCESS_SECONDS = 10.0
#: A question put again is given so long at least, seconds.
_SHORTEST_SECONDS = 0.5
#: Our own packages last: where the process starts, somebody's files may have the names of what it imports.
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from gpu_backend.transport.asking import answer_one; answer_one()"
_PACKAGES = Path(__file__).parents[2]

_questions: Codec[Question] = Codec(Question)
_answers: Codec[FromGateway] = Codec(FromGateway)
_ERRORS: dict[str, type[PoolError]] = {
    kind.__name__: kind
    for kind in (
        AnswerOverdue, ExecutorStarting, ForeignServer, KeyRefused, NoDevice, NotAuthorized, PoolFull, PoolRefusal,
        PoolUnreachable, SessionLost, TooManyAtOnce,
    )
}  # fmt: skip


class _Question(msgspec.Struct):
    """What the process that asks reads on its standard input: nobody else sees that."""

    endpoint: str
    server_key: bytes
    public: bytes
    secret: bytes
    message: bytes
    seconds: float


class _Outcome(msgspec.Struct):
    """What it writes to its standard output: an answer, or the name of an error and what it says."""

    answer: bytes = b""
    error: str = ""
    text: str = ""


def ask(door: Door, message: Question, timeout_seconds: float = ANSWER_SECONDS) -> FromGateway:
    """Send ``message`` to the gateway and return its answer. The ``request`` number is set on the way.

    Raises
    ------
    NotAuthorized
        If the pool does not know our key (a `KeyRefused`), or the key may not do this; or if the pool is not the one
        whose key we hold (a `ForeignServer`). Known within a second.
    PoolUnreachable
        If nobody answers within ``timeout_seconds``; an `AnswerOverdue` if the request was taken.
    SessionLost
        If the message is about a session that has ended.
    PoolRefusal
        If the pool says no; the message says why and what to do.
    """
    if not door.endpoint.startswith(_NETWORK) or not sys.executable:
        return exchange(door, message, timeout_seconds)
    deadline = monotonic() + timeout_seconds
    while (outcome := _ask_apart(door, message, max(deadline - monotonic(), _SHORTEST_SECONDS))) is None:
        # An answer may be lost with the process that waited for it: who asks for a session without a name for the
        # wait would be given a second one.
        if monotonic() > deadline or (isinstance(message, OpenSession) and not message.waiter):
            raise PoolUnreachable(
                f"The connection to the pool at {door.endpoint} broke down while it was asked. Try again; if it stays "
                "so, something on the network alters what passes."
            )
    if outcome.error:
        raise _ERRORS[outcome.error](outcome.text)
    return _answers.decode([outcome.answer])


async def ask_async(door: Door, message: Question, timeout_seconds: float = ANSWER_SECONDS) -> FromGateway:
    """Like `ask`, from an event loop."""
    return await asyncio.to_thread(ask, door, message, timeout_seconds)


def _ask_apart(door: Door, message: Question, seconds: float) -> _Outcome | None:
    """Ask from a process of its own; None if that died of it."""
    keys = door.keys
    question = _Question(door.endpoint, door.server_key, keys.public, keys.secret, bytes(encode(message)[0]), seconds)
    # In a session of its own: a Ctrl-C is for whoever waits for it, who then ends it.
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM, str(_PACKAGES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            told, _ = process.communicate(msgspec.msgpack.encode(question), seconds + _PROCESS_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()
    try:
        return msgspec.msgpack.decode(told, type=_Outcome)
    except msgspec.DecodeError:
        return None


def answer_one() -> None:
    """Be the process that asks: read a question, put it, write what came of it."""
    question = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Question)
    door = Door(question.endpoint, question.server_key, KeyPair(question.public, question.secret))
    try:
        answer = exchange(door, _questions.decode([question.message]), question.seconds)
    except PoolError as error:
        outcome = _Outcome(error=type(error).__name__, text=str(error))
    else:
        outcome = _Outcome(answer=bytes(encode(answer)[0]))
    sys.stdout.buffer.write(msgspec.msgpack.encode(outcome))
