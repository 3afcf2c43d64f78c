"""What the device has to do for this notebook, as far as is known here: nothing in it waits for the device."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_backend.wire import messages as wire
from gpu_backend.wire.errors import ProtocolError
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, Tuple, Value
from kernelproxy.session.connection import Connection
from kernelproxy.session.signs import Sign, signs
from kernelproxy.stream.source_lines import Site

if TYPE_CHECKING:
    from kernelproxy.stream.inbox import Answer
    from kernelproxy.stream.pipeline import Pipeline

#: An executor that spoke within this time is not in the middle of an op: it is asked every second, seconds.
_FRESH_SECONDS = 1.5
#: So many of the waiting ops are looked at.
_MOST_LOOKED_AT = 100
#: What is done in no time, `.same` as soon as what it reads is there; what is short beside others; and what is long.
_BRIEF = frozenset({".nothing", ".same", ".window", ".wait_event", "cupy.cuda.Event", "cupy.empty"})
_SHORT = frozenset({"cupy.zeros", "cupy.ones", "cupy.full", "cupy.arange", ".write", ".store", ".getattr", ".setattr"})
_LONG = (
    ".call",
    ".launch",
    ".compile",
    ".python_kernel",
    ".begin",
    "cupy.linalg.",
    "cupy.fft.",
    "cupy.matmul",
    "cupyx.",
)
#: Verbs that are nothing but a transfer.
_READS, _WRITES = ".same", ".write"
_WORDS = {
    ".synchronize": "Synchronizing",
    ".nothing": "Synchronizing",
    ".memory": "Asking for the memory in use",
    ".window": "Making a view",
    ".store": "Assigning to a part of an array",
    ".wait_event": "Waiting for an event",
    ".resume": "Calling a function of the notebook",
    ".module_of_file": "Loading a compiled module",
    ".doc": "Reading a docstring",
}
#: Kernels of the user's own by their handle, and what they are called.
_kernels: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


class Work(NamedTuple):
    """Work under way. ``queued`` operations are not known to be done; ``unsent`` of them wait here.

    ``what`` is the oldest of them, or the newest of those that the device was told to carry out and still computes;
    ``place`` the line that recorded it, and ``seconds`` for how long nothing else was heard. "" and 0 if there is none.
    ``is_heard`` tells whether the executor has just said that it is so.
    """

    what: str = ""
    place: str = ""
    seconds: float = 0.0
    queued: int = 0
    unsent: int = 0
    is_heard: bool = False


def note_kernel(kernel: Any, name: str) -> None:
    """Remember what ``kernel``, a remote object, is called."""
    object.__setattr__(kernel, "_called", name)
    _kernels[kernel._handle] = kernel


def under_way(pipeline: Pipeline) -> Work:
    """Return the work of ``pipeline`` that is not known to be done."""
    journal, batch = pipeline.journal, pipeline.open_batch
    queued = max(0, batch.last - journal.marks.applied)
    found = _running(pipeline)
    if found is None:
        return Work(queued=len(batch.ops), unsent=len(batch.ops))
    op, site, is_certain = found
    what = in_words(op) if is_certain else f"{in_words(op)}, or another of what is queued,"
    unsent = batch.last - journal.cursor
    return Work(what, _place(site), monotonic() - pipeline.inbox.moved_at, queued, unsent)


def _running(pipeline: Pipeline) -> tuple[Op, Site | None, bool] | None:
    """Return what the device is at, where that was recorded, and whether that is certain.

    An executor in the middle of an op says nothing, and what it last said may be a few short ops old: those that ran
    within 20 ms. So it is certain where it has just spoken, or where all are alike; else the oldest of the ops that
    take longest, as far as their names tell, is taken for it.
    """
    journal = pipeline.journal
    waiting = [batch.at(place) for batch, place in islice(journal.waiting(), _MOST_LOOKED_AT)]
    if not waiting:
        newest = journal.find(journal.marks.applied)  # unless it is done
        return (*newest[0].at(newest[1]), True) if newest is not None else None
    if monotonic() - pipeline.inbox.heard_at < _FRESH_SECONDS:
        return (*waiting[0], True)
    likely, site = max(waiting, key=lambda one: _weight(one[0]))
    what = in_words(likely)
    return likely, site, all(_weight(op) < 0 or in_words(op) == what for op, _ in waiting)


def _weight(op: Op) -> int:
    """Return how long ``op`` takes beside others: more for more, negative for what is done in no time."""
    if op.name in _BRIEF or (op.name == ".method" and op.args[1] == "record"):
        return -1
    if op.name.startswith(_LONG):
        return 2
    return 0 if op.name in _SHORT else 1


def heard(pipeline: Pipeline, seconds: float) -> Work:
    """Return what `under_way` does, after asking the executor and waiting ``seconds`` for what it says at most.

    An executor that is in the middle of an op says nothing. A lost connection is not sought.
    """
    deadline = monotonic() + seconds
    with _alone(pipeline, seconds) as connection:
        if connection is None or not connection.send(wire.Ping(pipeline.inbox.received)):
            return under_way(pipeline)
        while (message := _next(pipeline, connection, deadline)) is not None:
            if isinstance(message, wire.Ack):
                return under_way(pipeline)._replace(is_heard=True)
    return under_way(pipeline)


def memory_in(answer: Value) -> dict[str, int]:
    """Return used_bytes, limit_bytes, free_bytes and total_bytes, as an executor has answered ``.memory``."""
    if not isinstance(answer, Tuple):
        raise ProtocolError("The executor's answer to .memory is no tuple.")
    names = ("used_bytes", "limit_bytes", "free_bytes", "total_bytes")
    return {name: int(item) for name, item in zip(names, answer.items, strict=True)}  # type: ignore[arg-type]


def memory(pipeline: Pipeline, seconds: float) -> dict[str, int]:
    """Return what `memory_in` does, after asking the executor; nothing if it does not answer within ``seconds``.

    Only of use where nothing is under way: else the answer comes behind all of it.
    """
    answer = answered(pipeline, ".memory", (), seconds)
    return memory_in(answer.value) if answer is not None else {}


def answered(pipeline: Pipeline, name: str, args: tuple[Value, ...], seconds: float) -> Answer | None:
    """Return the answer to the op ``name``, or None if it failed or none came within ``seconds``.

    It comes behind all that is under way. A lost connection is not sought, and nothing is asked on it.
    """
    deadline = monotonic() + seconds
    with _alone(pipeline, seconds) as connection:
        if connection is None:
            return None
        number = pipeline.ask(name, args, Want.CONTENTS)
        try:
            while not pipeline.inbox.has(number) and _next(pipeline, connection, deadline) is not None:
                pass
            return pipeline.inbox.seen(number)
        finally:
            pipeline.inbox.forget(number)


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


def sign(pipeline: Pipeline) -> Sign:
    """Return what somebody waits for who waits for the answer to the last op, or for room to send more."""
    found = _running(pipeline)
    transfer = signs.transfer
    if found is None:
        return transfer.sign() if transfer is not None else Sign("Waiting for the executor")
    op, site, is_certain = found
    if op.name in (_READS, _WRITES) and transfer is not None:
        return transfer.sign()._replace(place=_place(site))
    behind = pipeline.open_batch.last - pipeline.journal.marks.applied - 1
    much = f"{behind:,} {'' if is_certain else 'other '}operation{'s' * (behind > 1)}" if behind > 0 else ""
    if much:
        much = f"{much} behind it" if is_certain else f"or one of {much}"
    what = in_words(op)
    return Sign(what, much, _place(site), is_op=what == op.name)


def _place(site: Site | None) -> str:
    return site.describe() if site is not None else ""


def in_words(op: Op) -> str:
    """Return what people call ``op``."""
    if not op.name.startswith("."):
        return op.name
    if op.name in (".call", ".launch", ".compile"):
        if op.name == ".compile":
            return f"Compiling {_kernel(op)}"
        is_first = op.want is not Want.NOTHING  # only a first launch is waited for
        return f"{'Compiling and running' if is_first else 'The kernel'} {_kernel(op)}"
    if op.name in (_READS, _WRITES):
        return "Download" if op.name == _READS else "Upload"
    if op.name == ".begin":
        return str(op.args[0])
    if op.name in (".method", ".getattr", ".setattr"):
        return f"{'The method' if op.name == '.method' else 'The attribute'} {op.args[1]}"
    if op.name == ".python_kernel":
        return f"Compiling {op.args[1]}"
    return _WORDS.get(op.name, op.name)


def _kernel(op: Op) -> str:
    target = op.args[0]
    kernel = _kernels.get(target.handle) if isinstance(target, Ref) else None
    return kernel._called if kernel is not None else "a kernel"
