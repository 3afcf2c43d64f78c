"""Operators of remote arrays: each is its ufunc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.wire.errors import WarningRecord
from kernelproxy import compiled
from kernelproxy.calls import array_core, dispatch
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.dispatch import stands_for
from kernelproxy.calls.scalars import NUMBERS
from kernelproxy.calls.ufunc import ufunc
from kernelproxy.calls.ufuncs import ufunc_named
from kernelproxy.errors import warn_again

_Method = Callable[[Any, Any], Any]
#: What CuPy says of ``+x`` for bools.
_ILL_DEFINED = (
    "Applying '+' to a non-numerical array is ill-defined. Returning a copy, but in the future this will error."
)


def _defers(array: ArrayCore, other: Any) -> bool:
    """Tell whether ``other`` wants to be asked instead: CuPy's rule for foreign array types."""
    if isinstance(other, (ArrayCore, int, float, complex, np.generic, np.ndarray)):
        return False
    if hasattr(other, "__array_ufunc__"):
        return other.__array_ufunc__ is None
    return bool(getattr(other, "__array_priority__", -1) > array.__array_priority__)


def _is_asked(other: object) -> bool:
    """Tell whether ``other`` is of another library that answers to NumPy's ufuncs, as arrays of xarray or Dask do.

    CuPy calls NumPy's ufunc for all that is no array of its own; what NumPy would only hand back need not go there.
    """
    return hasattr(other, "__array_ufunc__") and not isinstance(other, (ArrayCore, np.generic, np.ndarray))


def _numpys(function: ufunc) -> Callable[..., Any]:
    """Return NumPy's ufunc of the same name."""
    found: Callable[..., Any] = getattr(np, function._qualname.removeprefix("cupy."))
    return found


def _forward(function: ufunc) -> _Method:
    binary, of_arrays, numpys = function.binary, function._of_arrays, _numpys(function)

    def operator(self: Any, other: object) -> Any:
        if isinstance(other, ArrayCore):
            return of_arrays(self, other)
        if type(other) in NUMBERS and type(self) is array_core.array_class:
            return binary(self, other)
        if _defers(self, other):
            return NotImplemented
        return numpys(self, other) if _is_asked(other) or _asks(self) else binary(self, stands_for(other))

    return compiled.quick("binary", operator, function._qualname)


def _asks(array: Any) -> bool:
    """Tell whether ``array`` is of a user's subclass that answers to NumPy's ufuncs itself."""
    return type(array).__array_ufunc__ is not array_core.array_class.__array_ufunc__


def _reflected(function: ufunc) -> _Method:
    binary = function.binary

    def operator(self: Any, other: object) -> Any:
        return NotImplemented if _defers(self, other) else binary(stands_for(other), self)

    return compiled.quick("reflected", operator, function._qualname)


def _compared(function: ufunc, apart: bool | None = None) -> _Method:
    """Return a comparison; ``apart`` is what it gives for objects that no number is ever equal to, such as None."""
    operator = _forward(function)

    def comparison(self: Any, other: object) -> Any:
        if isinstance(other, np.ndarray) and other.ndim == 0:
            other = other.item()
        elif apart is not None and type(other) not in NUMBERS and _is_incomparable(other, apart):
            return dispatch.call("cupy.full", (self.shape, apart), {"dtype": np.bool_})
        return operator(self, other)

    return compiled.quick("binary", comparison, function._qualname)


def _is_incomparable(other: object, apart: bool) -> bool:
    kind: Any = type(other)
    # Python's own `!=` asks `==`, and not the other way round.
    return other is None or (kind.__eq__ is object.__eq__ and (not apart or kind.__ne__ is object.__ne__))


def _inplace(function: ufunc) -> _Method:
    inplace = function.inplace

    def operator(self: Any, other: object) -> Any:
        # Into an array of its own CuPy computes by itself: it asks nobody, and refuses what it does not know.
        is_known = isinstance(other, ArrayCore) or type(other) in NUMBERS
        return inplace(self, other if is_known else stands_for(other))

    return compiled.quick("inplace", operator, function._qualname)


def _positive(function: ufunc) -> Callable[[Any], Any]:
    """Return ``+x``, which copies an array of bools where the ufunc refuses it."""
    unary = function.unary

    def operator(self: Any) -> Any:
        if self._layout.dtype.kind != "b":
            return unary(self)
        warn_again((WarningRecord("builtins.DeprecationWarning", _ILL_DEFINED),))
        return self.copy()

    return compiled.quick("unary", operator, function._qualname)


def _unary(function: ufunc) -> Callable[[Any], Any]:
    unary = function.unary

    def operator(self: Any) -> Any:
        return unary(self)

    return compiled.quick("unary", operator, function._qualname)


_ADD, _SUBTRACT, _MULTIPLY = ufunc_named("add"), ufunc_named("subtract"), ufunc_named("multiply")
_DIVIDE, _FLOOR_DIVIDE = ufunc_named("true_divide"), ufunc_named("floor_divide")
_REMAINDER, _POWER = ufunc_named("remainder"), ufunc_named("power")
#: CuPy's operator squares where cupy.power(x, 2) calls pow(), which may differ in the last bit.
_OWN_POWER = ufunc(_POWER._qualname, _POWER.description, "cupy.ndarray.__pow__")
_LEFT, _RIGHT = ufunc_named("left_shift"), ufunc_named("right_shift")
_AND, _OR, _XOR = ufunc_named("bitwise_and"), ufunc_named("bitwise_or"), ufunc_named("bitwise_xor")


class Operators(ArrayCore):
    """Arithmetic, comparison and bit operators."""

    __slots__ = ()

    __add__, __radd__, __iadd__ = _forward(_ADD), _reflected(_ADD), _inplace(_ADD)
    __sub__, __rsub__, __isub__ = _forward(_SUBTRACT), _reflected(_SUBTRACT), _inplace(_SUBTRACT)
    __mul__, __rmul__, __imul__ = _forward(_MULTIPLY), _reflected(_MULTIPLY), _inplace(_MULTIPLY)
    __truediv__, __rtruediv__, __itruediv__ = _forward(_DIVIDE), _reflected(_DIVIDE), _inplace(_DIVIDE)
    __floordiv__, __rfloordiv__ = _forward(_FLOOR_DIVIDE), _reflected(_FLOOR_DIVIDE)
    __ifloordiv__ = _inplace(_FLOOR_DIVIDE)
    __mod__, __rmod__, __imod__ = _forward(_REMAINDER), _reflected(_REMAINDER), _inplace(_REMAINDER)
    __lshift__, __rlshift__, __ilshift__ = _forward(_LEFT), _reflected(_LEFT), _inplace(_LEFT)
    __rshift__, __rrshift__, __irshift__ = _forward(_RIGHT), _reflected(_RIGHT), _inplace(_RIGHT)
    __and__, __rand__, __iand__ = _forward(_AND), _reflected(_AND), _inplace(_AND)
    __or__, __ror__, __ior__ = _forward(_OR), _reflected(_OR), _inplace(_OR)
    __xor__, __rxor__, __ixor__ = _forward(_XOR), _reflected(_XOR), _inplace(_XOR)
    __ipow__ = _inplace(_POWER)
    __lt__, __le__ = _compared(ufunc_named("less")), _compared(ufunc_named("less_equal"))
    __gt__, __ge__ = _compared(ufunc_named("greater")), _compared(ufunc_named("greater_equal"))
    __eq__, __ne__ = _compared(ufunc_named("equal"), False), _compared(ufunc_named("not_equal"), True)
    __hash__ = None  # type: ignore[assignment]
    __neg__, __pos__ = _unary(ufunc_named("negative")), _positive(ufunc_named("positive"))
    __abs__, __invert__ = _unary(ufunc_named("absolute")), _unary(ufunc_named("invert"))

    def __pow__(self, other: Any, modulo: object = None) -> Any:
        if _defers(self, other):  # as NumPy and CuPy, it knows of no modulo
            return NotImplemented
        if _is_asked(other):
            return np.power(self, other)
        other = stands_for(other)
        if isinstance(other, ArrayCore):
            return _POWER.binary(self, other)
        return _OWN_POWER.binary(self, other)

    __pow__ = compiled.quick("binary", __pow__, _OWN_POWER._verb)

    def __rpow__(self, other: object, modulo: Any = None) -> Any:
        return NotImplemented if _defers(self, other) else _POWER.binary(other, self)

    def __divmod__(self, other: Any) -> Any:
        if _defers(self, other):
            return NotImplemented
        return np.divmod(self, other) if _is_asked(other) else ufunc_named("divmod")(self, other)

    def __rdivmod__(self, other: object) -> Any:
        return NotImplemented if _defers(self, other) else ufunc_named("divmod")(other, self)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, ArrayCore):
            return dispatch.call("cupy.matmul", (self, other), {})
        return NotImplemented if _defers(self, other) else np.matmul(self, other)

    __matmul__ = compiled.quick("matmul", __matmul__, "cupy.matmul")

    def __rmatmul__(self, other: Any) -> Any:
        return NotImplemented if _defers(self, other) else np.matmul(other, self)
