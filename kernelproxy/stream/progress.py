"""Asking the executor how far it is, for people who look: not behind the work, and for a moment at most."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from gpu_backend.opstream.devices import default_stream
from gpu_backend.wire import messages as wire
from gpu_backend.wire.errors import ProtocolError
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Tuple, Value
from kernelproxy.session.connection import Connection
from kernelproxy.stream.inbox import Answer
from kernelproxy.stream.pipeline import Pipeline
from kernelproxy.stream.work import Work, under_way


def heard(pipeline: Pipeline, seconds: float) -> Work:
    """Return what `under_way` does, after asking the executor and waiting ``seconds`` for what it says at most.

    An executor that is in the middle of an op says nothing. A lost connection is not sought.
    """
    deadline = monotonic() + seconds
    with _alone(pipeline, seconds) as connection:
        if connection is None or not connection.send(wire.Ping(pipeline.inbox.received)):
            return under_way(pipeline)
        is_heard = _is_heard(pipeline, connection, deadline)
    return under_way(pipeline)._replace(is_heard=is_heard)


def _is_heard(pipeline: Pipeline, connection: Connection, deadline: float) -> bool:
    while (message := _next(pipeline, connection, deadline)) is not None:
        if isinstance(message, wire.Ack):
            return True
    return False


def memory_in(answer: Value) -> dict[str, int]:
    """Return used_bytes, limit_bytes, free_bytes and total_bytes, as an executor has answered ``.memory``."""
    if not isinstance(answer, Tuple):
        raise ProtocolError("The executor's answer to .memory is no tuple.")
    names = ("used_bytes", "limit_bytes", "free_bytes", "total_bytes")
    return {name: int(item) for name, item in zip(names, answer.items, strict=True)}  # type: ignore[arg-type]


def ways_in(answer: Value) -> list[tuple[str, str, int]]:
    """Return what an executor has answered ``.ways``: name, how or why, how many. The name is empty past CuPy."""
    if not isinstance(answer, Tuple):
        raise ProtocolError("The executor's answer to .ways is no tuple.")
    rows = [one.items for one in answer.items if isinstance(one, Tuple)]
    return [(str(name), str(why), int(count)) for name, why, count in rows]  # type: ignore[arg-type]


def memory(pipeline: Pipeline, seconds: float, devices: int = 1) -> list[dict[str, int]]:
    """Return what `memory_in` does of each of so many ``devices``; nothing if not all answer within ``seconds``.

    Only of use where nothing is under way: else the answer comes behind all of it.
    """
    deadline, found = monotonic() + seconds, []
    for number in range(devices):
        answer = answered(pipeline, ".memory", (), max(0.0, deadline - monotonic()), default_stream(number))
        if answer is None:
            return []
        found.append(memory_in(answer.value))
    return found


def answered(pipeline: Pipeline, name: str, args: tuple[Value, ...], seconds: float, stream: int = 0) -> Answer | None:
    """Return the answer to the op ``name``, or None if it failed or none came within ``seconds``.

    It comes behind all that is under way. A lost connection is not sought, and nothing is asked on it.
    """
    deadline = monotonic() + seconds
    with _alone(pipeline, seconds) as connection:
        if connection is None:
            return None
        number = pipeline.ask(name, args, Want.CONTENTS, stream=stream)
        try:
            _take_in(pipeline, connection, number, deadline)
            return pipeline.inbox.seen(number)
        finally:
            pipeline.inbox.forget(number)


def _take_in(pipeline: Pipeline, connection: Connection, number: int, deadline: float) -> None:
    while number not in pipeline.inbox.answers and _next(pipeline, connection, deadline) is not None:
        pass


@contextmanager
def _alone(pipeline: Pipeline, seconds: float) -> Iterator[Connection | None]:
    """Have the connection to oneself; None if others keep it for ``seconds``, or it is not to be used."""
    if not pipeline.reading.acquire(timeout=seconds):
        yield None
        return
    try:
        connection = pipeline.connection
        yield connection if connection.is_sound and not connection.is_cut else None
    finally:
        pipeline.reading.release()


def _next(pipeline: Pipeline, connection: Connection, deadline: float) -> wire.ToClient | None:
    """Take in the next message; None if none comes before ``deadline``, or if it needs more than to be taken in."""
    while (left := deadline - monotonic()) > 0 and not connection.is_cut:
        incoming = connection.receive(left)
        if incoming is None:
            continue
        if isinstance(incoming[0], wire.Refused):
            connection.put_back(incoming)  # for whoever uses the connection next
            return None
        pipeline.inbox.note(*incoming)
        connection.settle()
        return incoming[0]
    return None
