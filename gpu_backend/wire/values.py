"""What an op may take and give: every argument and result that can cross the wire.

Python's ``None``, ``bool``, ``float``, ``str`` and ints of up to 64 bits travel as they are. All else is
one of the tagged structs below. NumPy scalars keep their dtype (``Scalar``), Python scalars do not: NEP 50
promotes the two differently.
"""

from __future__ import annotations

from typing import Union

import msgspec


class Ref(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A remote object, by its handle."""

    handle: int


class View(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A window on the memory of the array ``root``; it exists only as this metadata.

    ``order`` is the memory order ("C" or "F", "" if both hold, else a word of `memory_order`) in which the client
    believes ``root`` to lie. The executor checks it, so a wrong belief costs a copy or is an error, and is never a
    wrong number. ``offset`` and ``strides`` are in bytes.
    """

    root: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    order: str


class Scalar(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A NumPy scalar: its dtype and its bytes in memory order."""

    dtype: str
    data: bytes


class Complex(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """A Python ``complex``."""

    real: float
    imag: float


class BigInt(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """A Python ``int`` that 64 bits cannot hold, in hexadecimal."""

    digits: str


class Tuple(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """A Python ``tuple``."""

    items: tuple[Value, ...]


class List(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A Python ``list``."""

    items: tuple[Value, ...]


class Dict(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """A Python ``dict``."""

    items: tuple[tuple[Value, Value], ...]


class Slice(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """A Python ``slice``."""

    start: Value
    stop: Value
    step: Value


class Ellipsis(msgspec.Struct, frozen=True, array_like=True, tag=10, gc=False):
    """Python's ``...``."""


class DType(msgspec.Struct, frozen=True, array_like=True, tag=11, gc=False):
    """A dtype: ``numpy.dtype.str``, or a JSON field list for structured ones (see ``dtypes.py``)."""

    descr: str


class Buffer(msgspec.Struct, frozen=True, array_like=True, tag=12, gc=False):
    """Host data, C-contiguous, read as ``dtype`` and ``shape``: ``data`` if ``frame`` is -1, else that frame.

    Frames count from 0 behind the message's first. Small data travel inside the message: a frame of its own costs more
    than the copy.
    """

    frame: int
    dtype: str
    shape: tuple[int, ...]
    data: bytes = b""


class Name(msgspec.Struct, frozen=True, array_like=True, tag=13, gc=False):
    """A public name of the CuPy surface used as a value, such as ``cupy.add`` handed to another function."""

    qualname: str


class Bytes(msgspec.Struct, frozen=True, array_like=True, tag=14, gc=False):
    """A Python ``bytes``."""

    data: bytes


class Method(msgspec.Struct, frozen=True, array_like=True, tag=15, gc=False):
    """A public method of a remote object used as a value, such as ``pool.malloc`` handed to ``set_allocator``."""

    handle: int
    name: str


class Callback(msgspec.Struct, frozen=True, array_like=True, tag=16, gc=False):
    """A function of the notebook, by its number there. It never leaves the notebook: calling it asks for its result."""

    number: int


#: Arrays of the host among arguments travel inside their message up to this size, and what is read or uploaded up to
#: that one.
INLINE_BYTES, SMALL_BYTES = 1 << 10, 64 << 10


class SeedSequence(msgspec.Struct, frozen=True, array_like=True, tag=17, gc=False):
    """A ``numpy.random.SeedSequence``: its entropy as integers in hexadecimal, and which of whose children it is."""

    entropy: tuple[str, ...]
    spawn_key: tuple[int, ...]
    pool_size: int


class ArrayInfo(msgspec.Struct, frozen=True, array_like=True, tag=20, gc=False):
    """Executor to client: a result that stays remote and is an array. ``strides`` are in bytes.

    ``base`` is the handle whose memory this array shares, or 0; ``offset`` is then its start there, in bytes, and
    ``order`` the memory order in which that array lies.
    """

    handle: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    base: int = 0
    offset: int = 0
    order: str = ""


class ObjectInfo(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """Executor to client: a result that stays remote and is no array, with the public name of its type."""

    handle: int
    type_name: str
    attributes: dict[str, Value] = {}


Value = Union[  # noqa: UP007 (msgspec needs the forward reference in a typing construct)
    None,
    bool,
    int,
    float,
    str,
    Ref,
    View,
    Scalar,
    Complex,
    BigInt,
    Tuple,
    List,
    Dict,
    Slice,
    Ellipsis,
    DType,
    Buffer,
    Name,
    Bytes,
    Method,
    Callback,
    SeedSequence,
    ArrayInfo,
    ObjectInfo,
]
