"""Rules of calls that surely succeed and give arrays whose shape depends on values: masks, sets, what is not zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof import advanced
from gpu_backend.opstream.proof.arguments import as_axis, as_bool
from gpu_backend.opstream.proof.outcome import CannotProve, Later
from gpu_backend.opstream.proof.promotion import promote
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array

#: dtypes that are sorted, compared and told apart without further thought.
_ORDERED = "?bBhHiIlLefd"
_INDEX = np.dtype("i8")
_INDEX_BYTES = _INDEX.itemsize


def selected_by_mask(layout: Layout, key: object) -> Later | None:
    """Return what is proved of ``x[key]`` for a mask of unknown contents, which is argument 1; None for other keys."""
    selected = advanced.select(layout, key)
    if not isinstance(selected, advanced.Selection) or selected.mask_ndim is None or selected.known is not None:
        return None
    if selected.view.size == 0:
        raise CannotProve("a mask of no elements")
    if not isinstance(key, Layout) or not selected.mask_ndim:
        return Later(None, selected.view.nbytes)
    return Later(None, selected.view.nbytes, None, 1, layout.dtype, selected.view.shape[selected.mask_ndim :])


def _elements(a: object, dtypes: str = _ORDERED + "FD") -> Array:
    given = array(a)
    if given.size == 0 or given.ndim == 0 or given.dtype.char not in dtypes:
        raise CannotProve("no elements, or some of another kind")
    return given


@rule("cupy.nonzero", "cupy.ndarray.nonzero")
def nonzero(a: object) -> Later:
    """As CuPy: the indices of each axis."""
    given = _elements(a)
    nbytes = given.size * given.ndim * _INDEX_BYTES
    if given.ndim > 1:  # they are columns of one array then
        return Later(given.ndim, nbytes)
    return Later(1, nbytes, None, _mask(given), _INDEX)


def _mask(given: Array) -> int | None:
    """Return the place of the argument that says how many there are: of the first, if it is a mask."""
    return 0 if given.dtype.kind == "b" else None


@rule("cupy.argwhere")
def argwhere(a: object) -> Later:
    """As CuPy."""
    return Later(None, nonzero(a).nbytes)


@rule("cupy.flatnonzero")
def flatnonzero(a: object) -> Later:
    """As CuPy."""
    given = _elements(a)
    return Later(None, given.size * _INDEX_BYTES, None, _mask(given), _INDEX)


@rule("cupy.extract")
def extract(condition: object, a: object) -> Later:
    """As CuPy, of as many conditions as elements."""
    given = _elements(a)
    if _elements(condition).size != given.size:
        raise CannotProve("more or fewer conditions than elements")
    return Later(None, given.layout.nbytes)


@rule("cupy.compress")
def compress(condition: object, a: object, axis: object = None, out: Array | None = None) -> Later:
    """As CuPy, of no more conditions than there are places."""
    given, wanted = _elements(a), _elements(condition)
    places = given.size if axis is None else given.shape[as_axis(axis, given.ndim)]
    if out is not None or wanted.ndim != 1 or wanted.size > places:
        raise CannotProve("an output, or conditions that do not fit")
    return Later(None, given.layout.nbytes)


@rule("cupy.ndarray.compress")
def compress_method(a: object, condition: object, axis: object = None, out: Array | None = None) -> Later:
    """As CuPy."""
    return compress(condition, a, axis, out)


@rule("cupy.unique")
def unique(
    ar: object, return_index: object = False, return_inverse: object = False, return_counts: object = False,
    axis: object = None, *, equal_nan: object = True,
) -> Later:  # fmt: skip
    """As CuPy, of all elements together."""
    given = _elements(ar, _ORDERED)
    if axis is not None or equal_nan is not True:
        raise CannotProve("an axis, or NaNs that differ")
    others = sum(map(as_bool, (return_index, return_inverse, return_counts)))
    if others:
        return Later(1 + others, given.layout.nbytes + others * given.size * _INDEX_BYTES)
    return Later(None, given.layout.nbytes, None, None, given.dtype)


@rule("cupy.unique_values")
def unique_values(x: object) -> Later:
    """As CuPy, of what has no NaNs."""
    return Later(None, _elements(x, "?bBhHiIlL").layout.nbytes)


def _set_operation(a: object, b: object, assume_unique: object = False) -> Later:
    first, second = _elements(a, _ORDERED), _elements(b, _ORDERED)
    as_bool(assume_unique)
    return Later(None, (first.size + second.size) * promote(first.dtype, second.dtype).itemsize)


def _taking(*names: str) -> Callable[..., Later]:
    def operation(*args: object, **named: object) -> Later:
        if len(args) + len(named) > len(names) or not set(names[len(args) :]).issuperset(named):
            raise CannotProve("other arguments")
        given = dict(zip(names, args, strict=False)) | named
        return _set_operation(*given.values())

    return operation


rule("cupy.union1d")(_taking("arr1", "arr2"))
rule("cupy.intersect1d")(_taking("arr1", "arr2", "assume_unique"))
rule("cupy.setdiff1d", "cupy.setxor1d")(_taking("ar1", "ar2", "assume_unique"))
