"""Whose the arrays are that a function is given, and how those come home that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from gpu_backend.wire.errors import quoted
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.common_client import common
from kernelproxy.calls.stand_ins import StandIn
from kernelproxy.client import Client


def client_of(*given: object) -> Client | None:
    """Return the client whose arrays stand in ``given``, in lists, tuples and dictionaries too; None if none do.

    Raises
    ------
    MixedClients
        If arrays of two clients are among them.
    """
    found: Client | None = None
    for one in _leaves(given):
        found = common(found, getattr(one, "_client", None) if _is_remote(one) else None)
    return found


def brought_home(result: Any) -> Any:
    """Return ``result`` with NumPy arrays for remote ones, in lists, tuples and dictionaries too.

    Raises
    ------
    TypeError
        If something in it means nothing outside of its session.
    """
    if isinstance(result, tuple):
        make: Callable[..., Any] = getattr(type(result), "_make", type(result))  # of a named tuple
        return make([brought_home(one) for one in result])
    if isinstance(result, list | dict):
        made: Any = copy(result)  # of its own class, with whatever that keeps besides
        for key in range(len(result)) if isinstance(result, list) else result:
            made[key] = brought_home(result[key])
        return made
    if not _is_remote(result):
        return result
    if isinstance(result, ArrayCore) or callable(getattr(type(result), "get", None)):  # a sparse matrix has it too
        return result.get()
    kind = getattr(result, "_qualname", type(result).__name__)
    raise TypeError(
        f"The function returned an object of {quoted(kind)}, which means nothing outside of the session that it was "
        "made in. Return arrays or values of the host, or call the function inside of its `kept()`."
    )


def _is_remote(value: object) -> bool:
    return isinstance(value, ArrayCore | StandIn)


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)
    elif isinstance(value, dict):
        yield from _leaves(tuple(value.values()))
    else:
        yield value
