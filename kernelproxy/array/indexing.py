"""Reading and writing parts of remote arrays. Basic indices make views here; everything else is the executor's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof import setitem, views
from gpu_backend.opstream.proof.indexing import ROWS, RUNS, WINDOWS, known_window
from gpu_backend.opstream.proof.outcome import Unproved
from gpu_backend.opstream.proof.scalars import fills_quietly
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls import array_core, dispatch, selections, stores, transfer
from kernelproxy.calls.argument_types import ArrayLike, DTypeLike, HostArray
from kernelproxy.calls.array_core import ArrayCore, is_window
from kernelproxy.calls.dispatch import stands_for
from kernelproxy.calls.encoding import Encoder, Unsendable
from kernelproxy.mirror import counts

_NUMBERS = frozenset({bool, int, float, complex})
_GETITEM, _SETITEM = "cupy.ndarray.__getitem__", "cupy.ndarray.__setitem__"
compiled.learn(windows=WINDOWS, rows=ROWS, runs=RUNS)
#: To ask how many values there are would be one trip more: nothing follows before it is known how many places are.
_FITS_ON_THE_DEVICE = Unproved("whether as many are chosen as are put there, the device knows")
#: Whether ``x[:] = numpy_array`` is a copy, as this variable of CuPy's has it; else it is refused.
_COPIES_SLICES = bool(int(os.environ.get("CUPY_EXPERIMENTAL_SLICE_COPY", "0")))
_BASIC = (int, slice, type(None), type(Ellipsis))


class Indexing(ArrayCore):
    """``x[key]``, ``x[key] = value``, iteration."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        found = known_window(self._layout, key)
        if found is not None:
            return array_core.view_of(self, found[0], found[1])
        window = views.getitem(self._layout, key) if is_basic(key) else None
        if isinstance(window, tuple):
            return array_core.view_of(self, *window)
        key = _host_key(self, _alone(key))
        try:
            if _is_large(key):
                return _call_with_large(_GETITEM, self, key)
            return dispatch.call(_GETITEM, (self, key), {})
        except Unsendable:
            raise _no_index(key) from None

    __getitem__ = compiled.quick("getitem", __getitem__)

    def __setitem__(self, key: Any, value: ArrayLike) -> None:
        if isinstance(value, ArrayCore):
            found = known_window(self._layout, key)
            if found is not None and (is_window(value, self, *found) or _is_stored(value, self, *found)):
                return
        elif type(value) is float or type(value) is int or type(value) is bool:
            found = known_window(self._layout, key)
            if found is not None and fills_quietly(value, found[1].dtype):
                stores.fill(array_core.view_of(self, *found), value)
                return
        key = _alone(key)
        if type(key) is array_core.array_class and stores.store_where(self, key, value):
            return
        if type(value) not in _NUMBERS:
            if _COPIES_SLICES and isinstance(value, np.ndarray) and type(key) is slice and key == slice(None):
                _copy_slice(self, value)
                return
            value = stands_for(value)
            if isinstance(key, ArrayCore) and isinstance(value, ArrayCore) and _is_put_by_mask(self, key, value):
                return
        if is_basic(key):
            window = views.getitem(self._layout, key)
            if isinstance(window, tuple):
                if isinstance(value, ArrayCore) and is_window(value, self, *window):
                    return
                if setitem.is_proved(window[1], dispatch.layouts(value)):
                    target = array_core.view_of(self, *window)
                    if isinstance(value, ArrayCore) and _is_alike(window[1], value._layout):
                        stores.store(target, value)
                    else:
                        dispatch.record(_SETITEM, (target, Ellipsis, value))
                    return
                if isinstance(value, (list, np.ndarray)) and not _is_scalar(value):
                    setitem.refuse_host_values(value, window[1])
        _put(self, _host_key(self, key), value)

    __setitem__ = compiled.quick("setitem", __setitem__)

    def __delitem__(self, key: Any) -> None:
        raise NotImplementedError("Subscript deletion not supported by cupy._core.core._ndarray_base")

    def __len__(self) -> int:
        if not self._layout.shape:
            raise TypeError("len() of unsized object")
        return self._layout.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._layout.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[place] for place in range(self._layout.shape[0]))


def _copy_slice(array: ArrayCore, value: HostArray) -> None:
    """Do ``array[:] = value`` as CuPy does on request."""
    layout = array._layout
    if (layout.dtype, layout.shape) != (value.dtype, value.shape) or not (layout.c_contiguous or layout.f_contiguous):
        raise ValueError(
            "copying a numpy.ndarray to a cupy.ndarray by empty slice assignment must ensure arrays have same shape "
            "and dtype"
        )
    transfer.write(array, value)


def _put(array: ArrayCore, key: object, value: object) -> None:
    """Have the executor put ``value`` where ``key`` says, as CuPy does."""
    try:
        if _is_large(key) or _is_large(value):
            _call_with_large(_SETITEM, array, key, value)
        else:
            dispatch.call(_SETITEM, (array, key, value), {})
    except Unsendable as error:
        raise _no_index(key, error) from None


def _is_stored(value: ArrayCore, array: ArrayCore, offset: int, layout: Layout) -> bool:
    """Put ``value`` into a window on ``array`` as has been done with others that lie so; tell whether it was."""
    if type(value) is not array_core.array_class or not setitem.was_proved(layout, value._layout):
        return False
    if not _is_alike(layout, value._layout):
        return False
    stores.store(array_core.view_of(array, offset, layout), value)
    return True


def _is_alike(window: Layout, value: Layout) -> bool:
    return window.dtype == value.dtype and window.shape == value.shape


def is_basic(key: Any) -> bool:
    """Tell whether ``key`` selects a view by itself: ints, slices of ints, None and Ellipsis."""
    kind = type(key)
    if kind is int:
        return True
    if kind is slice:
        return _is_basic_slice(key)
    if kind is tuple:
        for part in key:  # noqa: SIM110 (a generator costs more than what it looks at)
            if type(part) not in _BASIC or (type(part) is slice and not _is_basic_slice(part)):
                return False
        return True
    return key is None or key is Ellipsis


def _is_basic_slice(key: slice) -> bool:
    start, stop, step = key.start, key.stop, key.step
    return (
        (start is None or type(start) is int)
        and (stop is None or type(stop) is int)
        and (step is None or type(step) is int)
    )


def _alone(key: object) -> object:
    """Return an array that is all of a key without the tuple around it: what ``cp.nonzero(x)`` gives is one."""
    return key[0] if type(key) is tuple and len(key) == 1 and isinstance(key[0], ArrayCore) else key


def _host_key(array: ArrayCore, key: Any) -> Any:
    """Return ``key`` as the executor takes it: a text names a field if ``array`` has any."""
    return key if isinstance(key, str) and array._layout.dtype.names else _host_keys(key)


def _host_keys(key: Any) -> Any:
    """Return ``key`` with 0-d arrays inside slices read, as CuPy does, and what Python makes an int of as one."""
    if isinstance(key, tuple):
        return tuple(map(_host_keys, key))
    if isinstance(key, slice):
        return slice(*(None if part is None else int(part) for part in (key.start, key.stop, key.step)))
    if isinstance(key, (float, str, bytes, np.generic)) and not isinstance(key, np.bool_):
        return int(key)
    if isinstance(key, complex):
        raise TypeError("int() argument must be a string, a bytes-like object or a real number, not 'complex'")
    return stands_for(key)


def _no_index(key: Any, otherwise: Exception | None = None) -> Exception:
    """Return the error for an index that only this process knows; ``otherwise`` if ``key`` is none."""
    try:
        Encoder(stands_for).encode(key)
    except Unsendable:
        return IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
            "valid indices"
        )
    return otherwise or IndexError("invalid index")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 0


def _is_put_by_mask(array: ArrayCore, mask: ArrayCore, value: ArrayCore) -> bool:
    """Put ``value`` where ``mask`` chooses, if it is a mask and no layout says more; tell whether that was done."""
    if mask._layout.dtype.kind != "b":
        return False
    form = stores.store_of_chosen(array, mask, value)
    if form is not None or _fits_count(array, mask, value):
        if form is None or not stores.store_again(form, array, mask, value):
            dispatch.record(_SETITEM, (array, mask, value))
        return True
    if not selections.is_unknown(value):
        return False
    dispatch.run_proved(_SETITEM, (array, mask, value), {}, _FITS_ON_THE_DEVICE)
    return True


def _fits_count(array: ArrayCore, mask: ArrayCore, value: ArrayCore) -> bool:
    """Tell whether ``array[mask] = value`` surely succeeds, as it is known how many places there are."""
    rows = selections.rows_of(value)
    if rows is not None and rows.known_count is not None:
        value._layout.size  # noqa: B018 (makes it a layout like any other, which waits for nothing here)
    pipeline = array._client.pipeline
    with pipeline.recording:
        count = counts.count(pipeline.mirror, mask._ref)
    layouts = array._layout, mask._layout, value._layout
    if count is None or any(type(one) is not Layout for one in layouts):
        return False
    try:
        return setitem.fill_places(*layouts, count) is None
    except ValueError:  # the device says so, in its own words
        return False


def _is_large(part: Any) -> bool:
    """Tell whether a part of a call holds a NumPy array that does not travel inside the op."""
    if isinstance(part, tuple):
        return any(map(_is_large, part))
    return isinstance(part, np.ndarray) and part.nbytes > wire.INLINE_BYTES


def _call_with_large(qualname: str, array: ArrayCore, key: Any, *values: object) -> Any:
    """Index with large host arrays: they are uploaded first, as CuPy does, and nobody waits for that."""
    proof = dispatch.proved(qualname, (array, key, *values))
    if isinstance(proof, Unproved):
        return dispatch.run_proved(qualname, (array, key, *values), {}, proof)
    stored = [_uploaded(value, array._layout.dtype) for value in values]
    return dispatch.run_proved(qualname, (array, _uploaded(key), *stored), {}, proof)


def _uploaded(part: Any, dtype: DTypeLike = None) -> Any:
    """Return ``part`` with its large host arrays on the GPU: an index as it is, a value as CuPy casts it before."""
    if isinstance(part, tuple) and dtype is None:
        return tuple([_uploaded(one) for one in part])
    return dispatch.upload(np.asarray(part, dtype)) if _is_large(part) else part
