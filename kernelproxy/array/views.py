"""Views of remote arrays, and the metadata they are made of. Nothing here sends a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gpu_backend.opstream.layout import Layout, strided
from gpu_backend.opstream.proof import indexing, views
from gpu_backend.opstream.proof.outcome import Unproved
from gpu_backend.opstream.proof.scalars import fills_quietly
from kernelproxy import compiled
from kernelproxy.array.private import PrivateMembers
from kernelproxy.calls import array_core, dispatch
from kernelproxy.calls.argument_types import ArrayLike, AxisLike, ShapeLike
from kernelproxy.calls.array_core import ArrayCore

Look = TypeVar("Look", bound=Callable[..., Any])


def _known_as(method: str) -> Callable[[Look], Look]:
    """Return what has a method show again, without Python, what it has shown of arrays that lie so."""
    return lambda look: compiled.quick("looked", look, method)


class Flags:
    """``x.flags``."""

    def __init__(self, c_contiguous: bool, f_contiguous: bool, owndata: bool) -> None:
        self.c_contiguous = c_contiguous
        self.f_contiguous = f_contiguous
        self.owndata = owndata

    @property
    def fnc(self) -> bool:
        """F- and not C-contiguous."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        """F- or C-contiguous."""
        return self.f_contiguous or self.c_contiguous

    def __getitem__(self, name: str) -> bool:
        names = {"C_CONTIGUOUS": "c_contiguous", "F_CONTIGUOUS": "f_contiguous", "OWNDATA": "owndata"}
        if name not in names:
            raise KeyError(f"{name} is not defined for cupy.ndarray.flags")
        return bool(getattr(self, names[name]))

    def __repr__(self) -> str:
        return f"  C_CONTIGUOUS : {self.c_contiguous}\n  F_CONTIGUOUS : {self.f_contiguous}\n  OWNDATA : {self.owndata}"


class Views(PrivateMembers):
    """Attributes, and the methods that only look at the same memory in another way."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes. May be set, if that needs no copy."""
        return self._layout.shape

    @shape.setter
    def shape(self, shape: ShapeLike) -> None:
        window = views.reshape(self._layout, shape)
        if not isinstance(window, tuple):
            raise AttributeError("incompatible shape")
        array_core.relayout(self, window[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._layout.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in bytes along the axes."""
        return self._layout.strides

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._layout.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._layout.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._layout.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._layout.nbytes

    @property
    def flags(self) -> Flags:
        """How the elements lie in memory."""
        return Flags(self._layout.c_contiguous, self._layout.f_contiguous, self._root is None)

    @property
    def base(self) -> Any:
        """The array whose memory this one shows; None if it has its own."""
        return self._root

    @property
    @_known_as("transpose")
    def T(self) -> Any:  # noqa: N802 (CuPy's name)
        """The transposed view."""
        return self.transpose()

    @property
    def mT(self) -> Any:  # noqa: N802 (CuPy's name)
        """The view with the last two axes exchanged."""
        if self._layout.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> Any:
        """The real part, as a view."""
        if self._layout.dtype.kind != "c":
            return self
        return array_core.view_of(self, 0, _part(self))

    @real.setter
    def real(self, value: ArrayLike) -> None:
        _copy_into(self.real, value)

    @property
    def imag(self) -> Any:
        """The imaginary part: a view if the elements are complex, else new zeros."""
        if self._layout.dtype.kind != "c":
            made = dispatch.call("cupy.zeros", (self._layout.shape, self._layout.dtype), {})
        else:
            made = array_core.view_of(self, self._layout.itemsize // 2, _part(self), array_core.array_class)
        if type(self) is not array_core.array_class:
            made = array_core.as_subclass(made, type(self))
            made.__array_finalize__(None)  # as in CuPy: unlike the real part, it is not made of the array
        return made

    @imag.setter
    def imag(self, value: ArrayLike) -> None:
        if self._layout.dtype.kind != "c":
            raise TypeError("cupy.ndarray does not have imaginary part to set")
        _copy_into(self.imag, value)

    @_known_as("transpose")
    def transpose(self, *axes: Any) -> Any:
        """Return a view with its axes permuted; reversed if none are given."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return _view(self, views.transpose(self._layout, order), "transpose", axes)

    @_known_as("swapaxes")
    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Return a view with two axes exchanged."""
        return _view(self, views.swapaxes(self._layout, axis1, axis2), "swapaxes", (axis1, axis2))

    @_known_as("squeeze")
    def squeeze(self, axis: AxisLike = None) -> Any:
        """Return a view without axes of length one."""
        return _view(self, views.squeeze(self._layout, axis), "squeeze", () if axis is None else (axis,))

    @_known_as("reshape")
    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        """Return an array of another shape: a view if possible."""
        wanted = shape[0] if len(shape) == 1 else shape
        may_be_view = copy is None or copy is False
        window = views.reshape(self._layout, wanted, order) if may_be_view else Unproved("a copy is wanted")
        if isinstance(window, tuple):
            return _shown(self, window, "reshape", shape if order == "C" and copy is None else None)
        return dispatch.call("cupy.ndarray.reshape", (self, wanted), {"order": order, "copy": copy})

    @_known_as("ravel")
    def ravel(self, order: str = "C") -> Any:
        """Return a one-dimensional array: a view if possible."""
        window = views.ravel(self._layout, order)
        if isinstance(window, tuple):
            return _shown(self, window, "ravel", () if order == "C" else None)
        return dispatch.call("cupy.ndarray.ravel", (self, order), {})

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """Return a view of the diagonals."""
        window = views.diagonal(self._layout, offset, axis1, axis2)
        return _view(self, window, "diagonal", (offset, axis1, axis2))

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """Return the same memory as another dtype or class."""
        array_class = type
        if _is_plain_class(dtype) and issubclass(dtype, ArrayCore):
            if array_class is not None:
                raise ValueError("Cannot specify output type twice.")
            array_class, dtype = dtype, None
        if array_class is not None and not (_is_plain_class(array_class) and issubclass(array_class, ArrayCore)):
            raise ValueError("Type must be a sub-type of ndarray type")
        window = (0, self._layout) if dtype is None else views.view(self._layout, dtype)
        if isinstance(window, tuple):
            return array_core.view_of(self, *window, array_class)
        return dispatch.call("cupy.ndarray.view", (self, dtype), {})


def _is_plain_class(value: Any) -> bool:
    """Tell whether ``value`` is a class without a metaclass of its own: CuPy takes no other here."""
    return type(value) is type


def _view(array: ArrayCore, window: Any, method: str, args: tuple[object, ...]) -> Any:
    """Return the view that was proved, or ask the executor."""
    if isinstance(window, tuple):
        return _shown(array, window, method, args)
    return dispatch.call(f"cupy.ndarray.{method}", (array, *args), {})


def _shown(array: ArrayCore, window: Any, method: str, args: tuple[object, ...] | None) -> Any:
    """Return a view that was proved, which arrays that lie so show again if they are given these ``args``."""
    layout = array._layout
    if compiled.is_compiled and args is not None and type(layout) is Layout:
        indexing.remember(layout, method, args, window)
    return array_core.view_of(array, *window)


def _copy_into(part: Any, value: ArrayLike) -> None:
    """Put ``value`` into ``part``, a number as a kernel casts it: what does not fit is no error."""
    if isinstance(value, (bool, int, float, complex)) and not fills_quietly(value, part.dtype):
        dispatch.call("cupy.copyto", (part, _as_operand(value), "unsafe"), {})
    else:
        part[...] = value


def _as_operand(number: complex) -> np.generic:
    """Return the scalar that a kernel gets for one of Python's numbers."""
    if type(number) is not int:
        made: np.generic = np.array([number])[0]
        return made
    if not -(1 << 63) <= number < 1 << 64:
        raise OverflowError("Python int too large to convert to C long")
    return np.int64(number) if number < 1 << 63 else np.uint64(number)


def _part(array: ArrayCore) -> Any:
    layout = array._layout
    return strided(layout.shape, layout.strides, np.dtype(f"f{layout.itemsize // 2}"))
