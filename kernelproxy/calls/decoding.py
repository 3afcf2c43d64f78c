"""Wire values to Python values: what a remote function gave back."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from gpu_backend.opstream.layout import Layout, strided
from gpu_backend.transport.copying import copy
from gpu_backend.wire import values as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.dtypes import text_to_dtype
from gpu_backend.wire.errors import ProtocolError

#: Longest integer that is read, in hexadecimal digits.
_MOST_DIGITS = 1 << 20
#: NumPy's most axes, and the largest size that it can count.
_MOST_AXES, _MOST_BYTES = 64, (1 << 63) - 1


class Decoder:
    """Decodes one answer.

    Parameters
    ----------
    buffers
        The answer's buffers.
    known
        The op's own arguments by handle: a result that is an argument is that very object again.
    make_array, make_object
        Make the local stand-ins of what stays remote.
    """

    def __init__(
        self,
        buffers: Sequence[Frame],
        known: dict[int, Any],
        make_array: Callable[[wire.ArrayInfo], Any],
        make_object: Callable[[wire.ObjectInfo], Any],
    ) -> None:
        self._buffers = buffers
        self._known = known
        self._make_array = make_array
        self._make_object = make_object

    def decode(self, value: wire.Value) -> Any:
        """Return the Python value of ``value``.

        Raises
        ------
        ProtocolError
            If it is none. Executors are not trusted with more than the values that they were asked for.
        """
        try:
            return self._decode(value)
        # All that NumPy and Python make of buffers, numbers, keys and handles that do not fit.
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
            raise ProtocolError(f"The executor sent what is no result: {error!a}") from None

    def _decode(self, value: wire.Value) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        decoder = _BY_TYPE.get(type(value))
        if decoder is None:
            raise ProtocolError(f"The executor sent a {type(value).__name__}, which is no result.")
        return decoder(self, value)

    def _ref(self, value: wire.Ref) -> Any:
        return self._known[value.handle]

    def _array(self, value: wire.ArrayInfo) -> Any:
        return self._remember(value.handle, lambda: self._make_array(value))

    def _object(self, value: wire.ObjectInfo) -> Any:
        return self._remember(value.handle, lambda: self._make_object(value))

    def _remember(self, handle: int, make: Callable[[], Any]) -> Any:
        if handle not in self._known:
            self._known[handle] = make()
        return self._known[handle]

    def _buffer(self, value: wire.Buffer) -> np.ndarray[Any, Any]:
        return buffer_to_array(value, self._buffers)


def described_layout(info: wire.ArrayInfo) -> Layout:
    """Return the layout that the executor described.

    Raises
    ------
    ProtocolError
        If no array can lie so.
    """
    dtype = _dtype(info.dtype)
    size = max(1, dtype.itemsize)
    for extent in info.shape:
        size *= extent if extent else 1
        if extent < 0 or size > _MOST_BYTES:
            raise ProtocolError(f"The executor described an array of shape {info.shape}, which none can have.")
    if len(info.shape) != len(info.strides) or len(info.shape) > _MOST_AXES:
        raise ProtocolError(
            f"The executor described an array of {len(info.shape)} extents and {len(info.strides)} strides."
        )
    return strided(info.shape, info.strides, dtype)


def told_layout(value: wire.Value) -> Layout:
    """Return the layout that the executor tells of one array: its shape, its strides and its dtype.

    Raises
    ------
    ProtocolError
        If it tells none.
    """
    parts = value.items if isinstance(value, wire.Tuple) else ()
    if len(parts) == 3:
        shape, strides, dtype = parts
        if isinstance(shape, wire.Tuple) and isinstance(strides, wire.Tuple) and isinstance(dtype, wire.DType):
            numbers = (*shape.items, *strides.items)
            if all(type(one) is int for one in numbers):
                info = wire.ArrayInfo(0, shape.items, strides.items, dtype.descr)  # type: ignore[arg-type]
                return described_layout(info)
    raise ProtocolError("The executor was asked how an array lies, and told something else.")


def buffer_to_array(value: wire.Value, buffers: Sequence[Frame]) -> np.ndarray[Any, Any]:
    """Return the writable NumPy array that ``value`` describes.

    Raises
    ------
    ProtocolError
        If it describes none.
    """
    if not isinstance(value, wire.Buffer):
        raise ProtocolError(f"The executor sent a {type(value).__name__} where an array was asked for.")
    dtype = _dtype(value.dtype)
    try:
        if 0 in value.shape:
            return np.empty(value.shape, dtype)
        # The frame's memory belongs to the message; what the user gets must be writable and live on its own.
        owned = bytearray(value.data) if value.frame < 0 else _owned(buffers[value.frame])
        return np.frombuffer(owned, dtype=np.uint8).view(dtype).reshape(value.shape)
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise ProtocolError(f"The executor sent contents that are no {value.shape} of {dtype}: {error}") from None


def _owned(content: Frame) -> bytearray | np.ndarray[Any, Any]:
    if isinstance(content, bytearray):
        return content
    owned = np.empty(len(content), np.uint8)
    copy(owned, np.frombuffer(content, np.uint8))
    return owned


def _dtype(text: str) -> np.dtype[Any]:
    try:
        return text_to_dtype(text)
    except TypeError as error:
        raise ProtocolError(f"The executor named a dtype that is none here: {error}") from None


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ProtocolError(f"The executor sent an integer of {len(digits)} digits.")
    return int(digits, 16)


def inline_scalar(dtype: str, data: bytes) -> Any:
    """Return the NumPy scalar whose bytes are ``data``.

    Raises
    ------
    ProtocolError
        If they are none.
    """
    try:
        found = text_to_dtype(dtype)
        if len(data) != found.itemsize:
            raise ValueError(f"{len(data)} bytes in place of {found.itemsize}")
        return np.ndarray((), found, data)[()]  # of an array with an axis it takes three times as long
    except (ValueError, TypeError) as error:
        raise ProtocolError(f"The executor sent what is no {dtype[:40]} number: {error}") from None


def inline_number(dtype: str, data: bytes) -> Any:
    """Return the Python number whose bytes are ``data``, as NumPy's ``item`` does.

    Raises
    ------
    ProtocolError
        If they are none.
    """
    unpack = _UNPACK.get(dtype)
    if unpack is None:
        return inline_scalar(dtype, data).item()
    try:
        return unpack(data)[0]
    except struct.error as error:
        raise ProtocolError(f"The executor sent what is no {dtype} number: {error}") from None


def _constant(name: str) -> Any:
    if name == "builtins.NotImplemented":
        return NotImplemented
    raise ProtocolError(f"The executor sent the name {name!r}, which is no result.")


#: How the bytes of most numbers are read. By way of NumPy it takes six times as long, and somebody waits.
_UNPACK: Final[dict[str, Callable[[bytes], tuple[Any, ...]]]] = {
    dtype: struct.Struct(code).unpack
    for dtype, code in {
        "|b1": "<?", "|i1": "<b", "<i2": "<h", "<i4": "<i", "<i8": "<q",
        "|u1": "<B", "<u2": "<H", "<u4": "<I", "<u8": "<Q", "<f2": "<e", "<f4": "<f", "<f8": "<d",
    }.items()
}  # fmt: skip

_BY_TYPE: dict[type, Callable[[Decoder, Any], Any]] = {
    wire.Ref: Decoder._ref,
    wire.ArrayInfo: Decoder._array,
    wire.ObjectInfo: Decoder._object,
    wire.Buffer: Decoder._buffer,
    wire.Scalar: lambda decoder, value: inline_scalar(value.dtype, value.data),
    wire.Complex: lambda decoder, value: complex(value.real, value.imag),
    wire.BigInt: lambda decoder, value: _integer(value.digits),
    wire.Tuple: lambda decoder, value: tuple(decoder._decode(item) for item in value.items),
    wire.List: lambda decoder, value: [decoder._decode(item) for item in value.items],
    wire.Dict: lambda decoder, value: {decoder._decode(key): decoder._decode(item) for key, item in value.items},
    wire.Slice: lambda decoder, value: slice(
        decoder._decode(value.start), decoder._decode(value.stop), decoder._decode(value.step)
    ),
    wire.Ellipsis: lambda decoder, value: Ellipsis,
    wire.Name: lambda decoder, value: _constant(value.qualname),
    wire.DType: lambda decoder, value: _dtype(value.descr),
    wire.Bytes: lambda decoder, value: value.data,
}
