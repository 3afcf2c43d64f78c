"""The messages between a notebook and its executor (the data plane).

Every message is one ZeroMQ multipart message: the encoded struct, then the raw buffers it refers to.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from gpu_backend.wire.errors import ErrorRecord, WarningRecord
from gpu_backend.wire.values import Value

#: Contents larger than this travel in chunks, so that no message is ever large.
CHUNK_BYTES = 4 << 20


class Want(IntEnum):
    """What the client needs to hear of an op."""

    NOTHING = 0  #: its result was proved by the client; only a failure is reported
    DESCRIPTION = 1  #: the result stays remote and is described
    CONTENTS = 2  #: the result comes back by value: arrays as buffers


class Op(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One call on the CuPy surface, or a verb of the protocol (``.same``, ``.method``, ... see docs/reference/wire.md).

    ``out`` is the handle of the result; further arrays of the same result take the next handles. ``drop`` lists the
    handles to forget before the op runs. ``stream`` is the handle of the current stream, 0 for the default one; the op
    goes to the device of its stream, which the handle tells (``gpu_backend.opstream.devices``).
    ``reuse`` is one more handle to forget, of an array that lies exactly as the result will: if nothing else refers to
    its memory, the executor may compute into it instead of allocating.
    ``orders`` says for each proved result in which memory order it must lie, in a word of `memory_order`, "" where that
    does not matter; None if all are C-contiguous. The executor sees to it.
    """

    name: str
    out: int
    args: tuple[Value, ...]
    drop: tuple[int, ...] | None = None
    want: Want = Want.NOTHING
    kwargs: dict[str, Value] | None = None
    stream: int = 0
    reuse: int = 0
    orders: tuple[str, ...] | None = None


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """Client: first message on every connection.

    ``instance`` is a random name of the client process: an epoch belongs to the first instance that greets it.
    ``first`` is the oldest op the client may still send; a fresh executor starts counting there. ``received`` is the
    last reply the client has read, by op number. ``is_owner`` says that the session is this process's own: when that
    ends, nobody comes back for the session. A kernel whose starter holds the ticket is not the owner: the next one goes
    on with it.
    """

    session: str
    epoch: int
    instance: str
    first: int
    received: int
    is_owner: bool = False


class Batch(msgspec.Struct, frozen=True, array_like=True, tag="batch"):
    """Client: ops in order. The first has number ``first``; the others follow without gaps."""

    first: int
    received: int
    ops: tuple[Op, ...]


class Cancel(msgspec.Struct, frozen=True, array_like=True, tag="cancel"):
    """Client: forget every op numbered up to ``through`` that has not started."""

    through: int


class Ping(msgspec.Struct, frozen=True, array_like=True, tag="ping"):
    """Client: are you there, and how far? Answered by ``Ack``; keeps the session's lease."""

    received: int


class Bye(msgspec.Struct, frozen=True, array_like=True, tag="bye"):
    """Client: the notebook is done with the session; release it."""


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag="welcome"):
    """Executor: the connection is this session's now. ``taken`` is the last op that it has, carried out or not.

    The client sends every later one again, and none before. ``kept_bytes`` is how much the executor keeps of what is
    uploaded, as the client says by ``.keep``; 0 for nothing. ``minor`` is its ``MINOR_VERSION``.
    """

    taken: int
    epoch: int
    credit_ops: int
    credit_bytes: int
    memory_limit_bytes: int
    device: dict[str, Value]
    kept_bytes: int = 0
    minor: int = 0


class Ack(msgspec.Struct, frozen=True, array_like=True, tag="ack"):
    """Executor: every op up to ``applied`` has been carried out or given to the device, so its credit is free again.

    The device has done every op up to ``done``, and worked ``busy_seconds`` for this session so far. Ops above
    ``dropped_after`` up to ``dropped_through`` were cancelled in time: they never run.
    """

    applied: int
    done: int = 0
    busy_seconds: float = 0.0
    dropped_after: int = 0
    dropped_through: int = 0


class Reply(msgspec.Struct, frozen=True, array_like=True, tag="reply"):
    """Executor: the answer to op ``seq``, and what it warned of; a proved op cannot warn.

    Every op up to ``seq`` has been carried out or given to the device, which has done every one up to ``done``: it may
    still compute what an answer describes.
    """

    seq: int
    value: Value
    warnings: tuple[WarningRecord, ...] | None = None
    done: int = 0


class Chunk(msgspec.Struct, frozen=True, array_like=True, tag="chunk"):
    """Executor: part of the bytes that op ``seq`` asked for, to be put at ``offset``; a ``Reply`` ends the series."""

    seq: int
    offset: int


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """Executor: op ``seq`` raised. Sent for every failing op, whatever the client wanted. ``done`` is as of `Reply`."""

    seq: int
    error: ErrorRecord
    done: int = 0


class Refused(msgspec.Struct, frozen=True, array_like=True, tag="refused"):
    """Executor: the message was not accepted. ``code`` is one of ``errors.RefusalCode``."""

    code: str
    message: str


ToExecutor = Hello | Batch | Cancel | Ping | Bye
ToClient = Welcome | Ack | Reply | Chunk | Failed | Refused
