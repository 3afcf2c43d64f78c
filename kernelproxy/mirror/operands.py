"""The arguments of an op, as the notebook knows their values."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from gpu_backend.wire import values as wire
from gpu_backend.wire.dtypes import text_to_dtype
from gpu_backend.wire.values import Ref, View
from kernelproxy.mirror.casts import Array, Unknown
from kernelproxy.mirror.memory import Memory

_REQUIRED = object()


class Known(Protocol):
    """Where memory is known by its handle."""

    def get(self, handle: int) -> Memory | None:
        """Return the memory, or None."""


class Operands:
    """The arguments of one op. What is not known ends it with `Unknown`.

    Attributes
    ----------
    args, kwargs
        As they travel.
    may_be_nan
        Whether a value that was taken so far may be, or hold, NaN.
    """

    __slots__ = ("_known", "args", "kwargs", "may_be_nan")

    def __init__(self, known: Known, args: tuple[wire.Value, ...], kwargs: dict[str, wire.Value] | None) -> None:
        self._known = known
        self.args = args
        self.kwargs = kwargs or {}
        self.may_be_nan = False

    def value(self, place: int) -> Any:
        """Return the argument at ``place``: an array, or a number of Python or NumPy."""
        return self.known_value(self.args[place])

    def known_value(self, value: wire.Value) -> Any:
        """Return what ``value`` names."""
        kind = type(value)
        if kind is Ref or kind is View:
            return self.known_array(value)
        if kind is float:
            self.may_be_nan |= value != value
            return value
        if kind is int or kind is bool:
            return value
        if kind is wire.Scalar:
            (number,) = np.frombuffer(value.data, text_to_dtype(value.dtype))  # type: ignore[union-attr]
            self.may_be_nan |= number.dtype.kind in "fc" and bool(np.isnan(number))
            return number
        raise Unknown

    def array(self, place: int) -> Array:
        """Return the array at ``place``."""
        return self.known_array(self.args[place])

    def known_array(self, value: wire.Value) -> Array:
        """Return the array that ``value`` names."""
        kind = type(value)
        handle = value.handle if kind is Ref else value.root if kind is View else 0  # type: ignore[union-attr]
        memory = self._known.get(handle)
        if type(memory) is not Memory:
            raise Unknown
        if kind is Ref:
            self.may_be_nan |= memory.may_be_nan
            return memory.array
        array = memory.window(value)  # type: ignore[arg-type]
        self.may_be_nan |= memory.may_be_nan or (array.dtype != memory.array.dtype and array.dtype.kind in "fc")
        return array

    def refuse_nan(self) -> None:
        """End where an array or number that was taken may hold NaN."""
        if self.may_be_nan:
            raise Unknown

    def named(self, place: int, name: str, default: Any = _REQUIRED) -> Any:
        """Return the argument at ``place`` or of that name, as it travels if it is no array, scalar or tuple."""
        value = self.args[place] if len(self.args) > place else self.kwargs.get(name, default)
        if value is _REQUIRED:
            raise Unknown
        return self.known_value(value) if isinstance(value, (Ref, View, wire.Scalar)) else value

    @staticmethod
    def axis(value: Any) -> int | tuple[int, ...] | None:
        """Return an axis, several, or None for all."""
        if value is None or type(value) is int:
            return value
        if isinstance(value, wire.Tuple) and all(type(one) is int for one in value.items):
            return value.items  # type: ignore[return-value]
        raise Unknown
