"""Stores that surely succeed: recorded by the form that they have, with nothing to be proved or encoded."""

from __future__ import annotations

from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof.scalars import quiet_bounds
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls.array_core import ArrayCore, LaterLayout
from kernelproxy.calls.common_client import common
from kernelproxy.calls.elsewhere import is_stored_whole
from kernelproxy.stream.forms import Form, Forms, OpKind

#: How many frames of ours there are at least between the pipeline and who stores something.
_DEPTH = 4
#: The key of a whole array.
_ALL = wire.Ellipsis()
_STORE, _FILL = ".store", "cupy.ndarray.__setitem__"
compiled.learn(whole=_ALL)


def store(target: ArrayCore, value: ArrayCore) -> None:
    """Record that ``value`` is put into ``target``, which has its shape and dtype. Raises `MixedClients`."""
    client = target._client
    if value._client is not client:
        common(client, value._client)
    forms, key = client.pipeline.forms, (target._layout, _STORE, value._layout)
    form = forms.get(key) or _remembered(forms, key, target._layout)
    if client.streams.is_used and is_stored_whole(value, target._layout):
        client.pipeline.note_copy(form, (target._ref, value._ref), _DEPTH, client.streams.current_handle())
    else:
        client.pipeline.note(form, (target._ref, value._ref), _DEPTH, None, client.streams.current_handle())


def fill(target: ArrayCore, value: float) -> None:
    """Record that ``value``, which fits and travels as it is, is put into all of ``target``."""
    client = target._client
    forms, key = client.pipeline.forms, (target._layout, _FILL, type(value))
    form = forms.get(key) or _remembered(forms, key, target._layout, quiet_bounds(type(value), target._layout.dtype))
    client.pipeline.note(form, (target._ref, _ALL, value), _DEPTH, None, client.streams.current_handle())


def _remembered(
    forms: Forms, key: tuple[Layout, str, object], target: Layout, bounds: tuple[float, float] | None = (0, 0)
) -> Form:
    """Return the form of a store into ``target``, which is found at once from now on, for numbers within ``bounds``."""
    form = forms.of(OpKind(key[1], 0, None, target.nbytes), *bounds or (0, 0))
    return forms.keep(key, form) if bounds is not None and LaterLayout not in map(type, key) else form
