"""Ops that write into arrays: what they put where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.wire import values as wire
from kernelproxy.mirror import elementwise
from kernelproxy.mirror.casts import Array, Unknown
from kernelproxy.mirror.operands import Operands
from kernelproxy.mirror.operations import as_dtype

#: Gives what a window holds afterwards; it broadcasts to the window and has its dtype.
Writer = Callable[[Operands, Array], Array]


def _store(given: Operands, window: Array) -> Array:
    return _filled(_as_stored(given.value(1), window))


def _as_stored(value: Any, window: Array) -> Array:
    """Return ``value`` in the type of ``window``, unless both are the same bytes by two types.

    CuPy leaves what is stored where it already lies as it is, and does not ask of which type it is taken to be.
    """
    if isinstance(value, np.ndarray) and value.dtype != window.dtype and np.may_share_memory(value, window):
        raise Unknown
    return as_dtype(value, window.dtype)


def _filled(value: Array) -> Array:
    """Return ``value``, unless it is one zero with a sign, which CuPy takes away from most: it clears memory for it."""
    if not value.ndim and value.dtype.kind == "f" and not value and np.signbit(value):
        raise Unknown
    return value


def _setitem(given: Operands, window: Array) -> Array:
    _, key, value = given.args
    stored = _filled(_as_stored(given.known_value(value), window))
    if type(key) is wire.Ellipsis:
        return stored
    mask = given.known_value(key)
    if not isinstance(mask, np.ndarray) or mask.dtype.kind != "b" or mask.shape != window.shape or stored.ndim:
        raise Unknown
    return np.where(mask, stored, window)


def _copyto(given: Operands, window: Array) -> Array:
    where = given.args[3] if len(given.args) > 3 else None
    if where is not None or given.kwargs:
        raise Unknown
    return _as_stored(given.value(1), window)


_WRITERS: dict[str, Writer] = {
    ".store": _store,
    ".store_where": _setitem,
    "cupy.ndarray.__setitem__": _setitem,
    "cupy.ndarray.fill": _store,
    "cupy.copyto": _copyto,
}


#: Those that put their last argument everywhere into the first, unless one between says where.
FILLING = frozenset((".store", "cupy.ndarray.__setitem__", "cupy.ndarray.fill"))


class _Targets(dict[str, int | None]):
    """Where the one argument stands that an op without results and keywords writes; None if it may be any."""

    def __missing__(self, name: str) -> int | None:
        known = elementwise.exact(name)
        found = self[name] = 0 if name in _WRITERS else -1 if known is not None else None
        return found


TARGETS = _Targets()


def stored(name: str, given: Operands, window: Array) -> Array:
    """Return what the op ``name`` puts into ``window``, its target.

    Raises
    ------
    Unknown
        If its bits may differ between machines.
    """
    writer = _WRITERS.get(name)
    if writer is not None:
        return writer(given, window)
    operands = tuple([given.known_value(one) for one in given.args[:-1]])
    return as_dtype(elementwise.compute(name, operands, given.may_be_nan), window.dtype)
