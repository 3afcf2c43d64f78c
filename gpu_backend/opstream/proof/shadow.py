"""Arrays without contents. Rules compute with them as CuPy computes with arrays, and what comes out is the proof."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_backend.opstream.layout import DType, Layout, Shape, contiguous, strided
from gpu_backend.opstream.proof import advanced, reshaping, ufuncs, windows
from gpu_backend.opstream.proof.arguments import as_dtype, as_order, native, order_like
from gpu_backend.opstream.proof.indexing import window
from gpu_backend.opstream.proof.outcome import ArrayProof, CannotProve, Place, Returned, View, Window, refusal
from gpu_backend.opstream.proof.promotion import check_cast
from gpu_backend.opstream.proof.values import is_items, is_python_scalar, is_tuple

#: Stands for "an argument inside a list": a view of such a one cannot be named.
NESTED = "a list"


class Array:
    """An array without contents.

    Attributes
    ----------
    layout
        Shape, strides and dtype.
    of
        The argument whose memory this is: a place or a keyword, None for new memory.
    offset
        Where it starts in that argument, in bytes.
    """

    __slots__ = ("layout", "of", "offset")

    def __init__(self, layout: Layout, of: Place | None = None, offset: int = 0) -> None:
        self.layout = layout
        self.of = of
        self.offset = offset

    @property
    def shape(self) -> Shape:
        """As of an array."""
        return self.layout.shape

    @property
    def strides(self) -> Shape:
        """As of an array."""
        return self.layout.strides

    @property
    def dtype(self) -> DType:
        """As of an array."""
        return self.layout.dtype

    @property
    def ndim(self) -> int:
        """As of an array."""
        return self.layout.ndim

    @property
    def size(self) -> int:
        """As of an array."""
        return self.layout.size

    @property
    def T(self) -> Array:  # noqa: N802 (an array's name for it)
        """As of an array."""
        return self if self.ndim < 2 else self.window((0, reshaping.reversed_axes(self.layout)))

    @property
    def real(self) -> Array:
        """As of an array."""
        return self.window(windows.part(self.layout, imaginary=False)) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Array:
        """As of an array."""
        if self.dtype.kind == "c":
            return self.window(windows.part(self.layout, imaginary=True))
        return new(self.shape, self.dtype)

    def window(self, made: Window | Layout) -> Array:
        """Return the view that a window is, or the new array that a layout is."""
        if isinstance(made, Layout):
            return Array(made)
        return Array(made[1], self.of, self.offset + made[0])

    def reshape(self, *shape: object, order: object = "C", copy: object = None) -> Array:
        """As of an array."""
        wanted = shape[0] if len(shape) == 1 else shape
        return self.window(reshaping.reshape(self.layout, wanted, order, copy))

    def ravel(self, order: object = "C") -> Array:
        """As of an array."""
        return self.window(reshaping.ravel(self.layout, order))

    def flatten(self) -> Array:
        """As of an array, in any order."""
        return Array(reshaping.flattened(self.layout))

    def transpose(self, *axes: object) -> Array:
        """As of an array."""
        order = axes[0] if len(axes) == 1 and (axes[0] is None or is_items(axes[0])) else axes or None
        return self.window(windows.transpose(self.layout, order))

    def squeeze(self, axis: object = None) -> Array:
        """As of an array: itself if there is nothing to squeeze."""
        made = self.window(windows.squeeze(self.layout, axis))
        return self if made.ndim == self.ndim else made

    def astype(self, dtype: object, order: object = "K", *, copy: bool = True) -> Array:
        """As of an array."""
        wanted = as_dtype(dtype)
        char = as_order(order)
        if wanted == self.dtype and not copy and _lies_as(self.layout, char):
            return self
        if self.dtype.kind == "c" and wanted.kind not in "bc":
            raise CannotProve("a ComplexWarning")
        return Array(like(self.layout, wanted, char))

    def copy(self, order: object = "C") -> Array:
        """As of an array."""
        return self.astype(self.dtype, order)

    def __getitem__(self, key: object) -> Array:
        """As of an array: a view, or a new array if there are integer arrays in the key."""
        if _has_arrays(key):
            return Array(advanced.take(self.layout, unwrapped(key)))
        return self.window(window(self.layout, key if is_tuple(key) else (key,)))


def new(shape: Shape, dtype: DType, order: str = "C") -> Array:
    """Return a new contiguous array."""
    return Array(contiguous(shape, dtype, order))


def like(layout: Layout, dtype: DType, order: str, shape: Shape | None = None) -> Layout:
    """Return the layout of a new array made after another: "K" keeps the order of its strides."""
    char = order_like(layout, order)
    extents = layout.shape if shape is None else shape
    if char != "K":
        return contiguous(extents, dtype, char)
    strides = [0] * layout.ndim
    step = dtype.itemsize
    for _, place in sorted((abs(stride), -place) for place, stride in enumerate(layout.strides)):
        strides[-place] = step
        step *= extents[-place]
    return strided(extents, tuple(strides), dtype)


def ufunc(name: str | ufuncs.UfuncRule, *operands: object, dtype: object = None, out: Array | None = None) -> Array:
    """Return the result of the ufunc ``cupy.<name>``, or of one that has no public name."""
    function = name
    if isinstance(function, str):
        function = ufuncs.rule_for(function if "." in function else f"cupy.{function}")
    if out is None:
        made = function.apply(*map(unwrapped, operands), dtype=dtype)
        if isinstance(made, tuple):
            raise CannotProve(f"several results of {function.name}")
        return Array(made)
    function.call(tuple(map(unwrapped, operands)), {"out": out.layout, "dtype": dtype})
    return out


def into(out: Array | None, made: Array, casting: str = "unsafe", error: str = "Out shape is mismatched") -> Array:
    """Return ``out`` if it can take what was made, or what was made if there is no ``out``."""
    if out is None:
        return made
    if out.shape != made.shape:
        raise refusal(ValueError, error)
    check_cast(made.dtype, out.dtype, casting, "output operand")
    return out


def array(value: object) -> Array:
    """Return ``value`` if it is an array; rules that need one know nothing about other things."""
    if not isinstance(value, Array):
        raise CannotProve(f"{type(value).__name__} where an array is wanted")
    return value


def as_array(value: object) -> Array:
    """Return what ``cupy.asarray`` makes of an array, or of a scalar of Python or NumPy."""
    if isinstance(value, Array):
        return value
    if not is_python_scalar(value) and not isinstance(value, np.generic):
        raise CannotProve(f"{type(value).__name__} where an array or a scalar is wanted")
    return new((), native(np.asarray(value).dtype))


def arrays(values: object) -> list[Array]:
    """Return the arrays of a list or tuple."""
    if not is_items(values):
        raise CannotProve(f"{type(values).__name__} where arrays are wanted")
    return [array(value) for value in values]


def wrapped(value: object, of: Place) -> object:
    """Return an argument with its layouts as arrays without contents."""
    if isinstance(value, Layout):
        return Array(value, of)
    if is_items(value):
        return type(value)([wrapped(item, NESTED) for item in value])
    return value


def unwrapped(value: object) -> object:
    """Return a value with the arrays in it as layouts."""
    if isinstance(value, Array):
        return value.layout
    if is_items(value):
        return type(value)([unwrapped(item) for item in value])
    return value


def proof_of(made: Array, arguments: Sequence[object]) -> ArrayProof:
    """Return what is proved of a result: new memory, a view of an argument, or the argument itself."""
    if made.of is None:
        if made.layout.memory_order[:1] == "?" and min(made.layout.strides) < 0:
            raise CannotProve("a result that lies backwards, with gaps between its elements")
        return made.layout
    if made.of == NESTED:
        raise CannotProve("a view of an array in a list")
    if any(made is argument for argument in arguments):
        return Returned(made.of)
    return View(made.offset, made.layout, made.of)


def _lies_as(layout: Layout, order: str) -> bool:
    if order == "K":
        return True
    if order == "A":
        return layout.c_contiguous or layout.f_contiguous
    return layout.c_contiguous if order == "C" else layout.f_contiguous


def _has_arrays(key: object) -> bool:
    parts = key if is_tuple(key) else (key,)
    return any(isinstance(part, (Array, list, np.ndarray)) for part in parts)
