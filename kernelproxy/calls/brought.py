"""Arrays of devices that have sessions of their own: what a call brings from one to another, as CuPy does.

What lies in another executor passes through the notebook: no device reaches it. Everything that would is refused in
CuPy's words, at its own line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpu_backend.opstream.layout import Layout, contiguous
from gpu_backend.wire.messages import Want
from kernelproxy.calls import channels, reading, transfer
from kernelproxy.calls.argument_types import HostArray
from kernelproxy.calls.array_core import ArrayCore, device_of, view_of
from kernelproxy.calls.elsewhere import FETCHING, is_stored_whole, lies_alike
from kernelproxy.client import Client
from kernelproxy.stream.joined import out_of_reach

__all__ = ["Call", "bring", "carried_out", "copy_over", "is_cleared", "on_device"]

#: Carries out a call that has all that it is given on one device.
Call = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]

#: What copies its argument, and what may make a window of it.
_COPYING = frozenset(("cupy.copy", "cupy.ndarray.copy"))
_WINDOWS = frozenset(f"{owner}.{name}" for owner in ("cupy", "cupy.ndarray") for name in ("ravel", "reshape"))
#: What looks only at how its argument lies: to make an array like it, or to tell of it.
_LIKE = frozenset(f"cupy.{name}_like" for name in ("empty", "full", "ones", "zeros"))
_LOOKING = frozenset(
    [
        *("cupy.lib.stride_tricks.as_strided", "cupy.may_share_memory", "cupy.shares_memory", "cupy.squeeze"),
        *(f"cupy.ndarray.{name}" for name in ("diagonal", "squeeze", "swapaxes", "transpose", "view")),
    ]
)
#: What gives its argument back if that has no gaps in this order.
_BACK = {"cupy.ascontiguousarray": "c_contiguous", "cupy.asfortranarray": "f_contiguous"}
#: What fills an array; what may give it back, and how that is called if nothing is said.
_FILL, _ASTYPE = "cupy.ndarray.fill", "cupy.ndarray.astype"
_AS_IT_IS: dict[str, Any] = {"dtype": None, "order": "K", "casting": None, "subok": None, "copy": True}
_COPYTO, _SETITEM = "cupy.copyto", "cupy.ndarray.__setitem__"
#: Where the order of these is said, if that is by its place.
_ORDER_AT = {"cupy.copy": 1, "cupy.ndarray.copy": 1, "cupy.asarray": 2, "cupy.array": 3}


def carried_out(
    client: Client, qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any], call: Call
) -> tuple[Any] | None:
    """Carry out a call of which something is elsewhere by ``call``; return what it gives. None if nothing is.

    Parameters
    ----------
    client
        Of one of the arguments.

    Raises
    ------
    ValueError
        If a kernel would have to reach for what is elsewhere.
    NotImplementedError
        If an array would have to be copied that has gaps, and is to lie as it does.
    """
    if not client.members:
        return None
    here = client.streams.device
    strangers = [one for one in _arrays((args, tuple(kwargs.values()))) if device_of(one) != here]
    if not strangers:
        return None
    given = (*args, *[None] * 4)
    if qualname == _COPYTO and given[3] is kwargs.get("where") is None and isinstance(given[1], ArrayCore):
        copy_over(args[0], given[1], lambda value: call(qualname, (args[0], value, *args[2:]), kwargs))
        return (None,)
    if qualname == _SETITEM and _is_whole(*given[:3]):
        copy_over(args[0], given[2], lambda value: call(qualname, (*args[:2], value), {}))
        return (None,)
    is_of_one = len({device_of(one) for one in strangers}) == 1
    if is_of_one and (qualname in _LOOKING or _starts_nothing(qualname, args, kwargs)):
        with on_device(client, device_of(strangers[0])):
            return (call(qualname, args, kwargs),)
    to = client.members[here]
    if qualname in _LIKE:
        return (call(qualname, *_replaced(args, kwargs, lambda one: _like(to, one))),)
    if qualname in FETCHING or qualname in _COPYING or qualname in _WINDOWS:
        order = "C" if qualname in _WINDOWS else _order(qualname, args, kwargs)
        args, kwargs = _replaced(args, kwargs, lambda one: bring(one, to, order))
        if all(device_of(one) == here for one in _arrays((args, tuple(kwargs.values())))):
            if qualname in _COPYING:
                return (next(_arrays((args, tuple(kwargs.values())))),)
            return (call(qualname, args, {**kwargs, "copy": None} if kwargs.get("copy") else kwargs),)  # it is one
    raise out_of_reach(device_of(strangers[0]), here)


def copy_over(target: ArrayCore, value: ArrayCore, store: Callable[[ArrayCore], object]) -> None:
    """Copy ``value`` into ``target``, on the device of that one, by ``store`` if that takes more than its bytes."""
    client = target._client
    with on_device(client, device_of(target)):
        if value._client is client:
            store(value)
        elif lies_alike(value, target._layout):
            _put(target, value)
        else:
            store(bring(value, client, "C"))


def bring(array: ArrayCore, to: Client, order: str = "K") -> Any:
    """Return a copy of ``array`` on the device of ``to``, which lies in memory ``order``.

    Raises
    ------
    NotImplementedError
        If it has gaps, and is to lie as it does.
    """
    order, layout = order.upper(), array._layout
    with on_device(to, to.number):
        if not layout.nbytes or not _lies_in(layout, order) or reading.known(array) is not None:
            return transfer.upload(to, _host(array, order), is_copied=True)
        is_sure = layout.nbytes <= transfer.CHUNK_BYTES or to.memory.is_sure(layout.nbytes)
        made = transfer.empty(to, layout, "C" if layout.c_contiguous else "F")
        if not is_sure:  # that it can be had, before its contents travel
            to.pipeline.call(".same", (made._ref,), Want.DESCRIPTION)
        _put(made, array)
        return made


def _put(target: ArrayCore, value: ArrayCore) -> None:
    """Put the bytes of ``value`` into ``target`` of another session, which lies alike."""
    if not value._layout.nbytes:
        return
    if reading.known(value) is None and channels.copied(value, target):
        return
    if value._layout.nbytes > transfer.CHUNK_BYTES:
        transfer.pass_on(value, target)
    else:
        transfer.write(target, _host(value, "K"))


def _lies_in(layout: Layout, order: str) -> bool:
    """Tell whether an array of ``layout`` lies without gaps, and in memory ``order``."""
    return bool((layout.c_contiguous and order != "F") or (layout.f_contiguous and order != "C"))


def _host(array: ArrayCore, order: str) -> HostArray:
    """Return the contents of ``array``, in memory ``order``."""
    layout = array._layout
    if order == "K" and not (layout.c_contiguous or layout.f_contiguous):
        raise NotImplementedError("CuPy cannot copy non-contiguous array between devices.")
    is_fortran = order == "F" or (order in ("A", "K") and layout.f_contiguous and not layout.c_contiguous)
    host = reading.contents(array)
    return np.asfortranarray(host) if is_fortran else host


@contextmanager
def on_device(client: Client, device: int) -> Iterator[None]:
    """Return a context in which one of the notebook's devices is this thread's current one."""
    before = client.streams.set_device(device)
    try:
        yield
    finally:
        client.streams.set_device(before)


def _is_whole(target: object, key: object, value: Any) -> bool:
    """Tell whether ``target[key] = value`` copies bytes, and so starts nothing that reads another device."""
    is_all = key is Ellipsis or (isinstance(key, slice) and key == slice(None))
    return is_all and isinstance(target, ArrayCore) and is_stored_whole(value, target._layout)


def _starts_nothing(qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether a call starts no kernel: it gives its first argument back, or clears its memory."""
    if not args or not isinstance(args[0], ArrayCore):
        return False
    layout = args[0]._layout
    if qualname in _BACK:
        return len(args) == 1 and getattr(layout, _BACK[qualname]) is True
    if qualname == _ASTYPE:
        said = {**_AS_IT_IS, **dict(zip(_AS_IT_IS, args[1:], strict=False)), **kwargs}
        is_so = {"C": layout.c_contiguous, "F": layout.f_contiguous}.get(said["order"], True)
        return not said["copy"] and is_so and np.dtype(said["dtype"]) == layout.dtype
    is_filling = (qualname == _FILL and len(args) == 2) or (qualname == _SETITEM and args[1] is Ellipsis)
    if qualname == _COPYTO and (*args, None, None)[3] is kwargs.get("where") is None:
        return is_cleared(args[0], args[1])
    return is_filling and is_cleared(args[0], args[-1])


def is_cleared(target: ArrayCore, value: object) -> bool:
    """Tell whether CuPy clears the bytes of ``target`` to fill it with ``value``."""
    is_number = isinstance(value, (bool, int, float, complex, np.generic))
    return is_number and not value and target._layout.c_contiguous and target._layout.dtype.kind != "V"


def _order(qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    at = _ORDER_AT.get(qualname, len(args))
    said = kwargs.get("order", args[at] if at < len(args) else None)
    return said if isinstance(said, str) else "C" if qualname == "cupy.ndarray.copy" else "K"


def _like(to: Client, array: ArrayCore) -> Any:
    """Return an array of ``to`` that lies as ``array`` does, and holds anything."""
    layout = array._layout
    if any(stride < 0 for stride in layout.strides):
        return transfer.empty(to, contiguous(layout.shape, layout.dtype))
    return view_of(transfer.empty(to, contiguous((layout.held_bytes,), np.dtype("u1"))), 0, layout)


def _replaced(
    args: tuple[Any, ...], kwargs: dict[str, Any], bring: Callable[[ArrayCore], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with each of the arrays that stands there by itself replaced."""

    def one(value: Any) -> Any:
        return (
            bring(value) if isinstance(value, ArrayCore) and device_of(value) != value._client.streams.device else value
        )

    return tuple(map(one, args)), {name: one(value) for name, value in kwargs.items()}


def _arrays(values: Iterable[Any]) -> Iterator[ArrayCore]:
    for one in values:
        if isinstance(one, ArrayCore):
            yield one
        elif isinstance(one, (tuple, list)):
            yield from _arrays(one)
