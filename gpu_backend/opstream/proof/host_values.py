"""Values of the host where CuPy wants its own arrays: refused here in its words, whatever device serves.

A device whose memory is the host's could not tell the two, and would make a program work that fails on a GPU.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection
from functools import cache
from inspect import Signature

import numpy as np

from gpu_backend.opstream import surface
from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof.values import is_items
from gpu_backend.opstream.surface.host_values import HostFacts, HostRefusal, host_facts

_NOTHING = HostFacts({}, {}, {})
#: Of outputs that no fact is about.
_OUTPUT = HostRefusal(
    error="TypeError",
    message="Argument 'out' has incorrect type (expected cupy._core.core._ndarray_base, got numpy.ndarray)",
)


def refuse(qualname: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Raise what CuPy raises if one of the arguments is a NumPy array, a list or a tuple that it does not take."""
    if not (any(map(_may_be_refused, args)) or any(map(_may_be_refused, kwargs.values()))):
        return
    described = surface.load()
    name = described.canonical(qualname)
    entry, facts = described.get(name), host_facts().get(name, _NOTHING)
    if isinstance(entry, surface.Ufunc):
        _refuse_output(kwargs.get("out"))
    elif facts is not _NOTHING or "out" in kwargs:
        _refuse_arguments(_bound(entry, args, kwargs), facts)


def _refuse_arguments(given: Collection[tuple[str, object]], facts: HostFacts) -> None:
    arrays = [value for _, value in given if isinstance(value, (np.ndarray, Layout))]
    for parameter, value in given:
        if type(value) in (list, tuple) and parameter in facts.lacking:
            raise AttributeError(f"{type(value).__name__!r} object has no attribute {facts.lacking[parameter]!r}")
        refusal = facts.refusal(parameter, len(given)) or (_OUTPUT if parameter == "out" else None)
        if refusal is not None:
            for refused in filter(lambda one: refusal.is_of(one, arrays), _on_host(value)):
                raise _error(refusal, refused.shape)


def _may_be_refused(value: object) -> bool:
    return isinstance(value, (np.ndarray, list, tuple))


def _refuse_output(out: object) -> None:
    if _on_host(out):
        raise TypeError(f"Unsupported type {np.ndarray}")


def _on_host(value: object) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """Return the NumPy arrays in ``value``."""
    values = value if is_items(value) else (value,)
    return [one for one in values if isinstance(one, np.ndarray)]


def _bound(entry: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Collection[tuple[str, object]]:
    """Return the arguments by parameter. A call that fits no signature is left to who knows what is wrong with it."""
    if isinstance(entry, surface.GeneralizedUfunc):
        return [(str(place), value) for place, value in enumerate(args)]
    signature = _signature(entry) if isinstance(entry, (surface.Function, surface.Method)) else None
    if signature is None:
        return ()
    own = args[1:] if isinstance(entry, surface.Method) else args
    try:
        return signature.bind_partial(*own, **kwargs).arguments.items()
    except TypeError:
        return ()


@cache
def _signature(entry: surface.Function | surface.Method) -> Signature | None:
    return surface.signature_of(entry)


def _error(refusal: HostRefusal, shape: tuple[int, ...]) -> Exception:
    kind = getattr(builtins, refusal.error, np.linalg.LinAlgError)
    error: Exception = kind(refusal.said_of(shape))
    return error
