"""Python values to wire values: what a notebook may hand to a remote function."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.opstream.layout import DType
from gpu_backend.transport.sockets import MAX_FRAME_BYTES
from gpu_backend.wire import values as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.dtypes import dtype_to_text
from kernelproxy.calls.argument_types import HostArray
from kernelproxy.calls.callbacks import NotebookFunction
from kernelproxy.calls.common_client import common
from kernelproxy.client import Client

_PLAIN = frozenset({type(None), bool, float, str})
#: Subclasses of these travel as the base: enum members, named tuples, NumPy's str_.
_BASES: tuple[type[Any], ...] = (tuple, list, dict, bool, int, float, complex, str)
_PYTHON_TYPES = {bool: "|b1", int: "<i8", float: "<f8", complex: "<c16"}


class Unsendable(TypeError):
    """A value that has no meaning outside this process."""


class Encoder:
    """Encodes the arguments of one op and collects their buffers.

    ``stands_for`` returns the remote array that an object stands for, if it does.
    """

    __slots__ = ("_stands_for", "buffers", "client", "functions", "stand_ins")

    def __init__(self, stands_for: Callable[[object], object]) -> None:
        self._stands_for = stands_for
        self.buffers: list[Frame] = []
        #: Whose the arrays and objects among the arguments are; None while there is none.
        self.client: Client | None = None
        #: What the executor may have to ask for: functions among the arguments, and those that remote objects hold.
        self.functions: list[NotebookFunction] = []
        #: Arrays for which arguments stand; they must live until the op is on its way.
        self.stand_ins: list[Any] = []

    def encode(self, value: Any) -> wire.Value:
        """Return the wire value of ``value``.

        Raises
        ------
        Unsendable
            If it is an object that only means something in this process.
        """
        kind = type(value)
        if kind in _PLAIN:
            return value  # type: ignore[no-any-return]
        if kind is int:
            return value if -(1 << 63) <= value < 1 << 64 else wire.BigInt(hex(value))
        encoder = _BY_TYPE.get(kind)
        if encoder is not None:
            return encoder(self, value)
        reference = getattr(kind, "_wire_value", None)  # remote arrays, objects, functions
        if reference is not None:
            here = getattr(kind, "_here", None)  # what stands for one object on each device
            value = value if here is None else here(value)
            referred: wire.Value = reference(value)
            owner = getattr(value, "_client", None)
            if owner is not self.client:
                self.client = common(self.client, owner)
            held = getattr(value, "_functions", None)
            if held:
                self.functions.extend(held)
            return referred
        return self._encode_by_base(value)

    def _encode_by_base(self, value: Any) -> wire.Value:
        if isinstance(value, np.ndarray):
            return self.buffer(value)
        if isinstance(value, np.generic):
            return wire.Scalar(dtype_to_text(value.dtype), value.tobytes())
        if isinstance(value, np.dtype):
            return _encode_dtype(value)
        if isinstance(value, type):
            return _encode_type(value)
        for base in _BASES:
            if isinstance(value, base):
                return self.encode(base(value))
        if hasattr(value, "__index__") and not callable(value):  # a mock is a function that could be a number
            return self.encode(value.__index__())
        array = self._stands_for(value)
        if array is not value:
            self.stand_ins.append(array)
            return self.encode(array)
        if callable(value):
            self.functions.append(NotebookFunction(value))
            return wire.Callback(self.functions[-1].number)
        raise Unsendable(
            f"A {type(value).__module__}.{type(value).__qualname__} cannot be used by the remote GPU: it exists in "
            "this process only. Pass arrays, numbers, strings, functions, or containers of them."
        )

    def buffer(self, array: HostArray) -> wire.Buffer:
        """Return the reference to a copy of ``array``'s contents, C-contiguous, taken now."""
        if array.dtype.hasobject:
            raise ValueError(f"Unsupported dtype {array.dtype}")
        if array.nbytes > MAX_FRAME_BYTES:
            raise Unsendable(
                f"A NumPy array of {array.nbytes:,} bytes is too large to be sent as an argument. "
                "Make it an array of the GPU first: cupy.asarray(...)."
            )
        if array.nbytes <= wire.INLINE_BYTES:
            return wire.Buffer(-1, dtype_to_text(array.dtype), array.shape, array.tobytes())
        self.buffers.append(array.tobytes())
        return wire.Buffer(len(self.buffers) - 1, dtype_to_text(array.dtype), array.shape)


def _encode_type(value: type) -> wire.Value:
    if value in _PYTHON_TYPES:
        return wire.DType(_PYTHON_TYPES[value])
    if issubclass(value, np.generic) or value in (object, str, bytes):
        return _encode_dtype(np.dtype(value))
    raise Unsendable(f"The class {value.__qualname__} cannot be used by the remote GPU; it knows only dtypes.")


def _encode_dtype(dtype: DType) -> wire.DType:
    if dtype.kind in "OUS":
        raise ValueError(f"Unsupported dtype {dtype}")  # in CuPy's words, at the line that names it
    return wire.DType(dtype_to_text(dtype))


def _encode_seeds(value: np.random.SeedSequence) -> wire.Value:
    # One integer and a sequence of that integer alone are the same entropy.
    entropy: Any = value.entropy
    words = np.ravel(entropy).tolist() if isinstance(entropy, (list, tuple, np.ndarray)) else [entropy]
    keys = tuple(int(key) for key in value.spawn_key)
    return wire.SeedSequence(tuple(hex(int(word)) for word in words), keys, value.pool_size)


def _encode_method(encoder: Encoder, value: types.MethodType) -> wire.Value:
    """Return the name of a method of a remote object, or that of a function of the notebook, which any other is."""
    as_method = getattr(value.__func__, "wire_method", None)
    if as_method is None:
        return encoder._encode_by_base(value)
    target: Any = value.__self__._here() if hasattr(value.__self__, "_here") else value.__self__
    encoder.functions.extend(getattr(target, "_functions", ()))
    encoder.client = common(encoder.client, getattr(target, "_client", None))
    named: wire.Value = as_method(target)
    return named


#: How NumPy's own dtypes travel: by themselves, by the types of their scalars, and by Python's.
DTYPES: dict[object, wire.Value] = {
    name: _encode_type(kind)
    for kind in (*_PYTHON_TYPES, *(np.dtype(char).type for char in np.typecodes["AllInteger"] + "?efdFD"))
    for name in (kind, np.dtype(kind))
}
#: The types of these dtypes.
DTYPE_KINDS = frozenset(type(one) for one in DTYPES if isinstance(one, np.dtype))

_BY_TYPE: dict[type, Callable[[Encoder, Any], wire.Value]] = {
    complex: lambda encoder, value: wire.Complex(value.real, value.imag),
    tuple: lambda encoder, value: wire.Tuple(tuple(encoder.encode(item) for item in value)),
    list: lambda encoder, value: wire.List(tuple(encoder.encode(item) for item in value)),
    range: lambda encoder, value: wire.List(tuple(value)),
    dict: lambda encoder, value: wire.Dict(
        tuple((encoder.encode(key), encoder.encode(item)) for key, item in value.items())
    ),
    slice: lambda encoder, value: wire.Slice(
        encoder.encode(value.start), encoder.encode(value.stop), encoder.encode(value.step)
    ),
    type(Ellipsis): lambda encoder, value: wire.Ellipsis(),
    bytes: lambda encoder, value: wire.Bytes(value),
    bytearray: lambda encoder, value: wire.Bytes(bytes(value)),
    types.MethodType: _encode_method,
    np.random.SeedSequence: lambda encoder, value: _encode_seeds(value),
}
