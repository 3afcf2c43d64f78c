"""Stores that surely succeed: recorded by the form that they have, with nothing to be proved or encoded."""

from __future__ import annotations

from math import copysign
from types import NoneType
from typing import Any

import numpy as np

from gpu_backend.opstream.layout import DType, Layout
from gpu_backend.opstream.proof.scalars import fills_quietly, quiet_bounds
from gpu_backend.opstream.proof.setitem import fills_chosen, mask_over
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls.array_core import ArrayCore, device_of, view_of
from kernelproxy.calls.brought import copy_over, is_cleared, on_device
from kernelproxy.calls.common_client import common
from kernelproxy.calls.elsewhere import is_stored_whole
from kernelproxy.calls.later_layout import LaterLayout, Rows
from kernelproxy.client import Client
from kernelproxy.mirror import counts
from kernelproxy.stream.forms import Form, Forms, OpKind

#: How many frames of ours there are at least between the pipeline and who stores something.
_DEPTH = 4
#: The minor version of executors from which on they put values by masks.
_KNOWS_MASKS = 1
#: What is larger is no zero in any type.
_SURELY_SOME = 1e-7
#: The key of a whole array.
_ALL = wire.Ellipsis()
compiled.learn(whole=_ALL, knows_masks=_KNOWS_MASKS, surely_some=_SURELY_SOME)
_STORE, _STORE_WHERE, _FILL = ".store", ".store_where", "cupy.ndarray.__setitem__"
#: Stands in keys for a store, by a mask, of what the mask has chosen.
_STORE_CHOSEN = ".store_chosen"


def store(target: ArrayCore, value: ArrayCore) -> None:
    """Record that ``value`` is put into ``target``, which has its shape and dtype. Raises as `common` does."""
    client = target._client
    if value._client is not client:
        if value._client not in client.members or not is_stored_whole(value, target._layout):
            common(client, value._client)
        copy_over(target, value, lambda _: None)  # bytes, and no more
        return
    forms, key = client.pipeline.forms, (target._layout, _STORE, value._layout)
    form = forms.get(key) or _remembered(forms, key, target._layout)
    if client.streams.is_used and is_stored_whole(value, target._layout):
        client.pipeline.note_copy(form, (target._ref, value._ref), _DEPTH, client.streams.current_handle())
    else:
        client.pipeline.note(form, (target._ref, value._ref), _DEPTH, None, client.streams.current_handle())


def fill(target: ArrayCore, value: float) -> None:
    """Record that ``value``, which fits and travels as it is, is put into all of ``target``."""
    client = target._client
    if client.members and device_of(target) != client.streams.device and is_cleared(target, value):
        with on_device(client, device_of(target)):
            fill(target, value)
        return
    forms, key = client.pipeline.forms, (target._layout, _FILL, type(value))
    form = forms.get(key) or _remembered(forms, key, target._layout, quiet_bounds(type(value), target._layout.dtype))
    client.pipeline.note(form, (target._ref, _ALL, value), _DEPTH, None, client.streams.current_handle())


def store_where(target: ArrayCore, mask: ArrayCore, value: object) -> bool:
    """Record ``target[mask] = value``, if that surely puts ``value`` wherever ``mask`` is true; tell whether it does.

    CuPy counts what the mask chooses first, and waits for the number. Here nobody needs it. Raises `MixedClients`.
    """
    lies, chosen, given = target._layout, mask._layout, value._layout if isinstance(value, ArrayCore) else None
    if type(lies) is not Layout or type(chosen) is not Layout or type(given) not in (Layout, NoneType):
        return False
    client = target._client
    if chosen.dtype.kind != "b" or client.pipeline.connection.welcome.minor < _KNOWS_MASKS:
        return False
    if given is None and (not fills_quietly(value, lies.dtype) or _may_be_put_otherwise(value, lies.dtype)):
        return False
    for other in (mask, value):
        if isinstance(other, ArrayCore) and other._client is not client:
            common(client, other._client)
    forms, key = client.pipeline.forms, (lies, _STORE_WHERE, chosen, given or type(value))
    form = forms.get(key)
    if form is None or chosen.ndim != lies.ndim:
        if (over := mask_over(lies, chosen, given)) is None:
            return False
        if form is None:
            low, high = _bounds_where(value, lies.dtype) if given is None else (0.0, 0.0)
            form = forms.keep(key, forms.of(OpKind(_STORE_WHERE, 0, None, lies.nbytes), low, high))
        mask = view_of(mask, 0, over)
    stored: Any = value._ref if isinstance(value, ArrayCore) else value
    client.pipeline.note(form, (target._ref, mask._ref, stored), _DEPTH, None, client.streams.current_handle())
    return True


def store_of_chosen(target: ArrayCore, mask: ArrayCore, value: ArrayCore) -> Form | None:
    """Return the form of ``target[mask] = value`` if the same mask has chosen the rows of ``value``; else None."""
    layout, client = value._layout, target._client
    if type(layout) is not LaterLayout or (kind := layout.kind) is None or (rows := layout.rows) is None:
        return None
    if rows.of != mask._ref or not _is_unwritten(client, rows):
        return None
    forms, key = client.pipeline.forms, (target._layout, _STORE_CHOSEN, mask._layout, kind)
    form = forms.get(key)
    if form is None:
        if not fills_chosen(target._layout, mask._layout, kind):
            return None
        size = max(target._layout.nbytes, mask._layout.nbytes, kind.most_bytes)
        form = forms.of(OpKind(_FILL, 0, None, size))
        if LaterLayout not in map(type, key):
            forms.keep(key, form)
    return form


def store_again(form: Form, target: ArrayCore, mask: ArrayCore, value: ArrayCore) -> bool:
    """Record ``target[mask] = value``, of that form, if all of it is of one client; tell whether it is."""
    client = target._client
    if client.members or mask._client is not client or value._client is not client:
        return False
    args = (target._ref, mask._ref, value._ref)
    client.pipeline.note(form, args, _DEPTH, None, client.streams.current_handle())
    return True


def _is_unwritten(client: Client, rows: Rows) -> bool:
    """Tell whether the mask is what it was when it chose these rows."""
    pipeline = client.pipeline
    if rows.op and rows.op == pipeline.open_batch.end - 1:  # nothing was recorded since
        return True
    if rows.of is None or rows.counted is None:
        return False
    with pipeline.recording:
        return counts.holds(pipeline.mirror, rows.of, rows.counted)


def _bounds_where(value: object, dtype: DType) -> tuple[float, float]:
    """Return between which numbers those of the type of ``value`` are put by a mask as they are, but for small ones.

    Those between `_SURELY_SOME` below zero and zero may be put otherwise.
    """
    bounds = None if type(value) is float and dtype == np.float16 else quiet_bounds(type(value), dtype)
    return bounds or (1.0, 0.0)  # none is within


def _may_be_put_otherwise(value: object, dtype: DType) -> bool:
    """Tell whether CuPy may make another number of ``value`` than a copy on the device does.

    It makes an array of one element of it on the host, and takes the sign away from a zero.
    """
    if type(value) is not float:
        return False
    loses_sign = -_SURELY_SOME < value <= 0 and copysign(1, value) < 0
    return loses_sign or (dtype == np.float16 and np.float16(value) != value)  # a device may round it twice


def _remembered(
    forms: Forms, key: tuple[Layout, str, object], target: Layout, bounds: tuple[float, float] | None = (0, 0)
) -> Form:
    """Return the form of a store into ``target``, which is found at once from now on, for numbers within ``bounds``."""
    form = forms.of(OpKind(key[1], 0, None, target.nbytes), *bounds or (0, 0))
    return forms.keep(key, form) if bounds is not None and LaterLayout not in map(type, key) else form
