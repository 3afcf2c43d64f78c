"""A user who is admitted like everybody, and then says what no notebook would say: any op, with any wire values.

`connect` is the only place that knows how one comes to an executor. What is above it, numbers, ops and values, is
forged by the caller.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from time import monotonic
from typing import Any, Protocol

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.program.run import OpStream
from gpu_backend.transport.asking import Door, ask
from gpu_backend.wire import control
from gpu_backend.wire import messages as wire
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.dtypes import text_to_dtype
from gpu_backend.wire.errors import ErrorRecord, RefusalCode
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Buffer, Ref, Value
from kernelproxy.session.connection import Connection
from tests.integration.conftest import granted
from tests.integration.notebook_pool import STATE_SECONDS

#: How long an op may take, seconds: a compiler runs in some of them.
_ANSWER_SECONDS = 120.0
_FOREVER = float("inf")


class Said(Exception):
    """The executor answered with an exception: ``kind`` is its class."""

    def __init__(self, error: ErrorRecord) -> None:
        super().__init__(f"{error.kind}: {error.message}")
        self.kind, self.message = error.kind, error.message


class HungUp(ConnectionError):
    """The executor has ended, or was ended."""


class Way(Protocol):
    """How ops get to an op stream, and what it answers."""

    def carry_out(self, ops: Sequence[Op]) -> list[Answer | None]:
        """Run ``ops`` and return the answer of each; None where there is none."""


class Hostile:
    """Says any op."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self._handles = count(1 << 20, 64)

    def make(self, name: str, *args: Value, **kwargs: Value) -> int:
        """Have an op's result kept, unseen, whatever it is, and return its handle.

        Raises
        ------
        Said
            If the op failed.
        """
        handle = next(self._handles)
        self._succeed(Op(name, handle, args, None, Want.NOTHING, kwargs or None))
        return handle

    def ask(self, name: str, *args: Value, **kwargs: Value) -> Any:
        """Have an op's result come back by value, and return it: an array as one of NumPy.

        Raises
        ------
        Said
            If the op failed, or its result may not leave the executor.
        """
        answer = self._succeed(Op(name, 0, args, None, Want.CONTENTS, kwargs or None))
        return decoded(answer) if answer is not None else None

    def describe(self, name: str, *args: Value, **kwargs: Value) -> Value:
        """Have an op's result stay and be described."""
        answer = self._succeed(Op(name, next(self._handles), args, None, Want.DESCRIPTION, kwargs or None))
        return answer.value if answer is not None else None

    def upload(self, host: np.ndarray[Any, Any]) -> int:
        """Make an array with the contents of ``host`` and return its handle."""
        data = np.ascontiguousarray(host)
        return self.make("cupy.array", Buffer(-1, data.dtype.str, data.shape, data.tobytes()))

    def download(self, handle: int) -> np.ndarray[Any, Any]:
        """Return the contents of an array."""
        found: np.ndarray[Any, Any] = self.ask(".same", Ref(handle))
        return found

    def _succeed(self, op: Op) -> Answer | None:
        (answer,) = self.way.carry_out([op])
        if answer is not None and answer.error is not None:
            raise Said(answer.error)
        return answer


def decoded(answer: Answer) -> Any:
    """Return the value of ``answer``: an array as one of NumPy, all else as it was on the wire."""
    value = answer.value
    if not isinstance(value, Buffer):
        return value
    content = value.data if value.frame < 0 else answer.buffers[value.frame]
    return np.frombuffer(content, np.uint8).view(text_to_dtype(value.dtype)).reshape(value.shape)


# --- from afar --------------------------------------------------------------------------------------------------------


class Line:
    """A greeted connection to an executor of a pool."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._next = 1

    def carry_out(self, ops: Sequence[Op]) -> list[Answer | None]:
        """Send ``ops``, and one more whose answer says that they are done."""
        first = self._next
        self._next += len(ops) + 1
        last = Op(".nothing", 0, (), None, Want.CONTENTS)
        assert self.connection.send(wire.Batch(first, first - 1, (*ops, last)))
        answers: list[Answer | None] = [None] * (len(ops) + 1)
        chunks: dict[int, bytearray] = {}
        deadline = monotonic() + _ANSWER_SECONDS
        while answers[-1] is None:
            assert monotonic() < deadline, f"no answer to {ops[-1].name}"
            incoming = self.connection.receive(0.2)
            self.connection.settle()
            if incoming is None:
                if self.connection.is_cut:
                    raise HungUp(f"{ops[-1].name} has no answer any more")
                continue
            message, frames = incoming
            if isinstance(message, wire.Refused) and message.code == RefusalCode.ENDED:
                raise HungUp(message.message)
            if isinstance(message, wire.Chunk):
                chunks.setdefault(message.seq, bytearray()).extend(frames[0])
            elif isinstance(message, wire.Reply):
                buffers = frames or [chunks[message.seq]] if message.seq in chunks else frames
                made = tuple(np.frombuffer(frame, np.uint8) for frame in buffers)
                answers[message.seq - first] = Answer(message.value, made)
            elif isinstance(message, wire.Failed):
                answers[message.seq - first] = Answer(error=message.error)
            else:
                assert isinstance(message, (wire.Ack, wire.Welcome)), message
        return answers[:-1]


@contextmanager
def connect(ticket: Ticket) -> Iterator[Line]:
    """Have a connection to the executor of ``ticket``, got and greeted as a notebook gets it."""
    connection = Connection(ticket, secrets.token_hex(8), False, STATE_SECONDS)
    try:
        connection.greet(1, 0, STATE_SECONDS)
        yield Line(connection)
    finally:
        connection.close()


@contextmanager
def hostile_session(door: Door, kind: str = "", label: str = "attack") -> Iterator[tuple[Hostile, Ticket]]:
    """Have a session of one's own in a pool, on a device of ``kind``, and somebody hostile in it."""
    ticket = granted(door, control.OpenSession(0, label, kind))
    try:
        with connect(ticket) as line:
            yield Hostile(line), ticket
    finally:
        ask(door, control.CloseSession(0, ticket.session))


# --- in this process --------------------------------------------------------------------------------------------------


class InProcess:
    """An op stream of this process: no wire, and its heap can be looked into."""

    def __init__(self, device: Device) -> None:
        self.stream = OpStream(device)
        self._next = 1

    def carry_out(self, ops: Sequence[Op]) -> list[Answer | None]:
        """Run ``ops``."""
        answers: list[Answer | None] = []
        for op in ops:
            batch = QueuedBatch(self._next, (op,), 0, ())
            self._next += 1
            answer: Answer | None = None
            while batch.next < 1 and answer is None:
                batch.next, answer = self.stream.run(batch, _FOREVER)
            answers.append(answer)
        return answers
