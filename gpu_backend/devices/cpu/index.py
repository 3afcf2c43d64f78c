"""Item access: basic indices give views, index arrays wrap around instead of being checked, as on a GPU."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.dtypes import clear_zeros, fill_value, on_host, store
from gpu_backend.devices.cpu.table import define

ndarray = np.ndarray


def _as_index(item: object) -> Any:
    """Return one part of an index: None, Ellipsis, a slice, an int, or an array of ints or bools."""
    if item is None or item is Ellipsis:
        return item
    if isinstance(item, slice):
        return slice(_bound(item.start), _bound(item.stop), _bound(item.step))
    if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        return item
    if not isinstance(item, ndarray):
        if isinstance(item, (float, complex, str)) or item is None:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
                "are valid indices"
            )
        empty = isinstance(item, (list, tuple)) and not len(item)
        item = np.asarray(item)
        if empty or (item.size == 0 and item.dtype.kind == "f"):
            item = item.astype(np.int32)
        if item.dtype.kind not in "biu":
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
                "are valid indices"
            )
    if item.dtype.kind not in "biu":
        raise IndexError(f"arrays used as indices must be of integer or boolean type. (actual: {item.dtype.type})")
    return item


def _bound(value: Any) -> Any:
    return value if value is None or isinstance(value, int) else int(value)


def parse_index(array: Array, index: object) -> tuple[tuple[Any, ...], bool]:
    """Return ``index`` as a tuple that NumPy takes, its arrays wrapped into range, and whether it has arrays.

    Raises
    ------
    IndexError
        If there are too many indices, an int is out of range, or a mask has another shape.
    """
    parts = [_as_index(item) for item in (index if isinstance(index, tuple) else (index,))]
    consumed = sum(_axes_of(part) for part in parts)
    ellipses = sum(part is Ellipsis for part in parts)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if consumed > array.ndim:
        raise IndexError(f"too many indices for array: array is {array.ndim}-dimensional, but {consumed} were indexed")
    if not ellipses:
        parts.append(Ellipsis)
    axis, has_arrays = 0, False
    for place, part in enumerate(parts):
        if part is Ellipsis:
            axis += array.ndim - consumed
        elif isinstance(part, ndarray):
            has_arrays = True
            parts[place] = _fitted(array, part, axis)
            axis += _axes_of(part)
        elif part is not None:
            if not isinstance(part, slice):
                parts[place] = _as_place(part, axis, array.shape[axis])
            axis += 1
    return tuple(parts), has_arrays


def _axes_of(part: object) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, ndarray) and part.dtype.kind == "b" else 1


def _as_place(value: Any, axis: int, extent: int) -> int:
    """Return any number as an index, by its integer part."""
    place = int(value)
    if not -(1 << 63) <= place < 1 << 63:
        raise OverflowError("Python int too large to convert to C ssize_t")
    if not -extent <= place < extent:
        raise IndexError(f"Index {value} is out of bounds for axis {axis} with size {extent}")
    return place


def _fitted(array: Array, part: Array, axis: int) -> Array:
    if part.dtype.kind != "b":
        return wrapped(part, array.shape[axis])
    for place, extent in enumerate(part.shape):
        wanted = array.shape[axis + place]
        if extent not in (0, wanted):
            raise IndexError(
                f"boolean index did not match indexed array along dimension {axis + place}; dimension is {wanted} "
                f"but corresponding boolean dimension is {extent}"
            )
    if part.size == 0 and part.shape != array.shape[axis : axis + part.ndim]:
        return np.zeros(array.shape[axis : axis + part.ndim], bool)
    return part


def wrapped(indices: Array, extent: int) -> Array:
    """Return ``indices`` modulo ``extent``, as int64."""
    if extent == 0:
        return np.zeros(indices.shape, np.int64)
    wide = np.uint64 if indices.dtype.kind == "u" else np.int64  # a GPU divides unsigned numbers as such
    return np.asarray((indices.astype(wide) % wide(extent)).astype(np.int64))


def _fields_of(array: Array, index: object) -> bool:
    return array.dtype.fields is not None and (
        isinstance(index, str) or (isinstance(index, list) and all(isinstance(name, str) for name in index))
    )


def _field_view(array: Array, index: Any) -> Array:
    if isinstance(index, list):
        return array[index]
    fields = array.dtype.fields
    if index not in fields:
        raise ValueError(f"no field name of {index}")
    if fields[index][0].shape:
        raise ValueError("CuPy does not yet support accessing nested subarrays.")
    made: Array = array[index]
    return made


@define("cupy.ndarray.__getitem__")
def getitem(array: Array, index: object) -> Array:
    if _fields_of(array, index):
        return _field_view(array, index)
    parts, has_arrays = parse_index(array, index)
    if not has_arrays:
        made: Array = array[parts]
        return made
    if array.size == 0 and any(isinstance(p, ndarray) and p.dtype.kind != "b" and p.size for p in parts):
        array, parts = _with_something_to_take(array, parts)
    # The Ellipsis keeps NumPy from returning a scalar, and a 0-d integer array from being read as an int.
    parts = tuple(p.reshape(1) if isinstance(p, ndarray) and p.ndim == 0 and p.dtype.kind != "b" else p for p in parts)
    result = np.array(array[parts], order="C", copy=None)
    if all(np.ndim(p) == 1 and p.size == 1 for p in parts if isinstance(p, ndarray)) and _had_scalar(index):
        result = _without_unit_axis(array, parts, result)
    return result.copy() if result.base is not None else result


def _with_something_to_take(array: Array, parts: tuple[Any, ...]) -> tuple[Array, tuple[Any, ...]]:
    """Return an array that gives NumPy what it wants, with its index, if only an empty result is taken from axes of 0.

    Raises
    ------
    IndexError
        If elements would be taken from where there are none.
    """
    axis = 0
    shape, places = list(array.shape), list(parts)
    for place, part in enumerate(parts):
        if isinstance(part, ndarray) and part.dtype.kind != "b" and part.size and array.shape[axis] == 0:
            shape[axis], places[place] = 1, np.zeros_like(part)
        axis += array.ndim - sum(map(_axes_of, parts)) if part is Ellipsis else _axes_of(part)
    stand_in = np.broadcast_to(np.zeros((), array.dtype), shape)
    if stand_in.shape != array.shape and stand_in[tuple(places)].size:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    return stand_in, tuple(places)


def _had_scalar(index: object) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    arrays = [item for item in items if isinstance(item, ndarray) and item.dtype.kind != "b"]
    lists = any(isinstance(item, (list, tuple)) for item in items)
    return bool(arrays) and not lists and all(item.ndim == 0 for item in arrays)


def _without_unit_axis(array: Array, parts: tuple[Any, ...], result: Array) -> Array:
    """Return ``result`` without the axis that a 0-d index array was given for NumPy's sake."""
    with_scalars = tuple(int(p[0]) if isinstance(p, ndarray) and p.dtype.kind != "b" else p for p in parts)
    return result.reshape(array[with_scalars].shape)


@define("cupy.ndarray.__setitem__")
def setitem(array: Array, index: object, value: object) -> None:
    if isinstance(value, ndarray):
        value = without_leading_ones(value)
    if _fields_of(array, index):
        array, index = _field_view(array, index), ...
    parts, has_arrays = parse_index(array, index)
    if not has_arrays:
        _assign(array[parts], value)
        return
    if _selects_nothing(array, parts):
        return
    if not isinstance(value, ndarray):
        value = on_host(value, array.dtype)
        if not value.ndim:
            clear_zeros(value)
    elif value.dtype != array.dtype:
        cast = np.empty(value.shape, array.dtype)
        store(cast, value)
        value = cast
    if array.size == 0 and value.size <= 1:
        return
    array[parts] = value


def _selects_nothing(array: Array, parts: tuple[Any, ...]) -> bool:
    """Tell whether all arrays among ``parts`` are one mask that selects nothing: CuPy looks at no value then."""
    arrays = [part for part in parts if isinstance(part, ndarray)]
    if len(arrays) != 1 or arrays[0].dtype.kind != "b":
        return False
    (mask,) = arrays
    view = [(slice(None),) * mask.ndim if part is mask else (part,) for part in parts]
    return not mask.any() or not array[tuple(chain.from_iterable(view))].size


def without_leading_ones(value: Array) -> Array:
    """Return ``value`` without its first axes of length 1, as CuPy stores it."""
    while value.ndim and value.shape[0] == 1:
        value = value[0, ...]
    return value


def _assign(target: Array, value: object) -> None:
    if isinstance(value, ndarray):
        store(target, np.broadcast_to(value, target.shape) if value.shape != target.shape else value)
        return
    target[...] = fill_value(value, target.dtype)
    clear_zeros(target)
