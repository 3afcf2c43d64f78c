"""Wire values to Python values: what a remote function gave back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu_backend.wire import values as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.dtypes import text_to_dtype
from gpu_backend.wire.errors import ProtocolError


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
        """Return the Python value of ``value``."""
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


def buffer_to_array(value: wire.Buffer, buffers: Sequence[Frame]) -> np.ndarray[Any, Any]:
    """Return the writable NumPy array that ``value`` describes."""
    dtype = text_to_dtype(value.dtype)
    if 0 in value.shape:
        return np.empty(value.shape, dtype)
    # The frame's memory belongs to the message; what the user gets must be writable and live on its own.
    content = value.data if value.frame < 0 else buffers[value.frame]
    raw = content if isinstance(content, bytearray) else bytearray(content)
    return np.frombuffer(raw, dtype=np.uint8).view(dtype).reshape(value.shape)


def _constant(name: str) -> Any:
    if name == "builtins.NotImplemented":
        return NotImplemented
    raise ProtocolError(f"The executor sent the name {name!r}, which is no result.")


_BY_TYPE: dict[type, Callable[[Decoder, Any], Any]] = {
    wire.Ref: Decoder._ref,
    wire.ArrayInfo: Decoder._array,
    wire.ObjectInfo: Decoder._object,
    wire.Buffer: Decoder._buffer,
    wire.Scalar: lambda decoder, value: np.frombuffer(value.data, dtype=text_to_dtype(value.dtype))[0],
    wire.Complex: lambda decoder, value: complex(value.real, value.imag),
    wire.BigInt: lambda decoder, value: int(value.digits, 16),
    wire.Tuple: lambda decoder, value: tuple(decoder.decode(item) for item in value.items),
    wire.List: lambda decoder, value: [decoder.decode(item) for item in value.items],
    wire.Dict: lambda decoder, value: {decoder.decode(key): decoder.decode(item) for key, item in value.items},
    wire.Slice: lambda decoder, value: slice(
        decoder.decode(value.start), decoder.decode(value.stop), decoder.decode(value.step)
    ),
    wire.Ellipsis: lambda decoder, value: Ellipsis,
    wire.Name: lambda decoder, value: _constant(value.qualname),
    wire.DType: lambda decoder, value: text_to_dtype(value.descr),
    wire.Bytes: lambda decoder, value: value.data,
}
