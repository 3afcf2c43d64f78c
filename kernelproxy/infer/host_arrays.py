"""Arrays of NumPy where CuPy wants its own: refused here in its words, whatever device serves.

A device whose memory is the host's could not tell the two, and would make a program work that fails on a GPU.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpu_backend import surface
from gpu_backend.surface.host_arrays import HostRefusal, host_refusals

#: Of outputs that no fact is about.
_OUTPUT = HostRefusal(
    "TypeError", "Argument 'out' has incorrect type (expected cupy._core.core._ndarray_base, got numpy.ndarray)"
)


def refuse(qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise what CuPy raises if one of the arguments is an array of NumPy that it does not take."""
    if not (any(map(_is_on_host, args)) or any(map(_is_on_host, kwargs.values()))):
        return
    described = surface.load()
    name = described.canonical(qualname)
    entry, refusals = described.get(name), host_refusals().get(name, {})
    if isinstance(entry, surface.Ufunc):
        _refuse_output(kwargs.get("out"))
        return
    for parameter, value in _bound(entry, args, kwargs):
        refusal = refusals.get(parameter) or (_OUTPUT if parameter == "out" else None)
        if refusal is not None and _largest_on_host(value) >= refusal.least:
            raise _error(refusal)


def _refuse_output(out: Any) -> None:
    if _is_on_host(out):
        raise TypeError(f"Unsupported type {np.ndarray}")


def _is_on_host(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (
        isinstance(value, (list, tuple)) and any(isinstance(one, np.ndarray) for one in value)
    )


def _largest_on_host(value: Any) -> int:
    """Return the size of the largest NumPy array in ``value``; -1 if there is none."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    return max((one.size for one in values if isinstance(one, np.ndarray)), default=-1)


def _bound(entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """Return the arguments by parameter. A call that fits no signature is left to who knows what is wrong with it."""
    if isinstance(entry, surface.GeneralizedUfunc):
        return [(str(place), value) for place, value in enumerate(args)]
    signature = surface.signature_of(entry) if isinstance(entry, (surface.Function, surface.Method)) else None
    if signature is None:
        return ()
    own = args[1:] if isinstance(entry, surface.Method) else args
    try:
        return signature.bind_partial(*own, **kwargs).arguments.items()
    except TypeError:
        return ()


def _error(refusal: HostRefusal) -> Exception:
    kind = getattr(builtins, refusal.error, np.linalg.LinAlgError)
    error: Exception = kind(refusal.message)
    return error
