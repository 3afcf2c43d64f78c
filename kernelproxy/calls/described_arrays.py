"""Arrays that the executor has described: new ones, and windows on what the call was given."""

from __future__ import annotations

from typing import Any

from gpu_backend.wire import values as wire
from kernelproxy.calls import array_core
from kernelproxy.calls.array_core import ArrayCore, from_description, view_of
from kernelproxy.client import Client


def array_of(client: Client, known: dict[int, Any], shown: dict[int, ArrayCore], info: wire.ArrayInfo) -> Any:
    """Return the array that was described: a window, if it shows the memory of an argument that is an owner.

    So it is, in the class of the argument, if that is a user's and itself a window.
    """
    made = from_description(client, info)
    of = shown.get(info.base)
    owner = known.get(info.base) if of is None else of._root
    # An owner that lies otherwise than it was proved to is no measure: then only the executor knows where the array is.
    if isinstance(owner, ArrayCore) and owner._layout.memory_order == info.order:
        start = 0 if of is None else of._ref.offset  # type: ignore[union-attr]
        return view_of(owner if of is None else of, info.offset - start, made._layout)
    return made


def shown_by_users(args: tuple[object, ...], kwargs: dict[str, object]) -> dict[int, ArrayCore]:
    """Return the arguments that are windows of a user's class, by whose memory they show; of lists the items too."""
    given = [*args, *kwargs.values()]
    given += [item for one in given if isinstance(one, (list, tuple)) for item in one]
    arrays = [one for one in given if isinstance(one, ArrayCore)]
    others = {array_core.handle_of(one._ref) for one in arrays if type(one) is array_core.array_class}
    users = [one for one in arrays if type(one) is not array_core.array_class and one._root is not None]
    return {handle: one for one in users if (handle := array_core.handle_of(one._ref)) not in others}
