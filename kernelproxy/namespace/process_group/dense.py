"""What a group does with arrays, of exchanges and of ordinary operations. Nothing of it is waited for.

Arrays are taken as NCCL takes them: as so many elements that lie one behind the other. What is reduced is reduced in
the order of the ranks, each element at one place or everywhere alike, so all ranks have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gpu_backend.opstream.layout import DType, contiguous
from kernelproxy.array.remote_array import ndarray
from kernelproxy.calls import dispatch
from kernelproxy.calls.array_core import view_of
from kernelproxy.namespace.process_group.exchange import Call, Exchange

__all__ = [
    "OPERATIONS", "all_gather", "all_reduce", "all_to_all", "broadcast", "copy", "flat", "gather", "reduce",
    "reduce_scatter", "room", "scatter",
]  # fmt: skip

#: What puts two arrays together, by the names that users say.
OPERATIONS = {"sum": "cupy.add", "prod": "cupy.multiply", "min": "cupy.minimum", "max": "cupy.maximum"}
#: Up to so many bytes each rank is sent all of an array, and reduces it by itself: one way there, and not two.
_DIRECT_BYTES = 64 << 10
#: What is reduced at a time has so many bytes at most: that is what others' parts take beside the array itself.
_AT_ONCE_BYTES = 64 << 20


def flat(array: ndarray, dtype: DType, count: int, first: int = 0) -> Any:
    """Return the window on ``count`` elements of the contiguous ``array``, taken as of ``dtype``, from ``first`` on.

    Raises
    ------
    ValueError
        If the array has fewer.
    """
    if (first + count) * dtype.itemsize > array._layout.nbytes:
        raise ValueError(
            f"{first + count} elements of {dtype} do not fit into an array of {array._layout.nbytes} bytes."
        )
    return view_of(array, first * dtype.itemsize, contiguous((count,), dtype), ndarray)


def room(count: int, dtype: DType | str) -> Any:
    """Return an array for what others send: of the current device, as used by the current stream."""
    return dispatch.call("cupy.empty", (count, dtype), {})


def broadcast(exchange: Exchange, array: ndarray, root: int) -> None:
    """Send ``array`` of ``root`` to all others, into theirs."""
    call = exchange.of_all()
    if exchange.rank == root:
        call.exchange({peer: [array] for peer in exchange.others}, {})
    else:
        call.exchange({}, {root: [array]})


def all_gather(exchange: Exchange, own: ndarray, parts: Sequence[ndarray]) -> None:
    """Put what each rank has into one of the ``parts``, on all ranks."""
    call = exchange.of_all()
    copy(own, parts[exchange.rank])
    call.exchange({peer: [own] for peer in exchange.others}, {peer: [parts[peer]] for peer in exchange.others})


def all_to_all(exchange: Exchange, outgoing: Sequence[ndarray], incoming: Sequence[ndarray]) -> None:
    """Send each rank a part, and get one from each."""
    call = exchange.of_all()
    copy(outgoing[exchange.rank], incoming[exchange.rank])
    going, coming = ({peer: [parts[peer]] for peer in exchange.others} for parts in (outgoing, incoming))
    call.exchange(going, coming)


def scatter(exchange: Exchange, parts: Sequence[ndarray], out: ndarray, root: int) -> None:
    """Send each rank one of the ``parts`` that ``root`` has."""
    call = exchange.of_all()
    if exchange.rank == root:
        copy(parts[root], out)
        call.exchange({peer: [parts[peer]] for peer in exchange.others}, {})
    else:
        call.exchange({}, {root: [out]})


def gather(exchange: Exchange, own: ndarray, parts: Sequence[ndarray], root: int) -> None:
    """Put what each rank has into one of the ``parts`` of ``root``."""
    call = exchange.of_all()
    if exchange.rank == root:
        copy(own, parts[root])
        call.exchange({}, {peer: [parts[peer]] for peer in exchange.others})
    else:
        call.exchange({root: [own]}, {})


def reduce(exchange: Exchange, own: ndarray, out: ndarray, op: str, root: int) -> None:
    """Put the arrays of all ranks together, into that of ``root``; the others' ``out`` stays."""
    call = exchange.of_all()
    for part in _parts(own.size, own.dtype, _AT_ONCE_BYTES):
        if exchange.rank == root:
            _reduced(call, own[part], out[part], op, {})
        else:
            call.exchange({root: [own[part]]}, {})


def reduce_scatter(exchange: Exchange, own: ndarray, out: ndarray, op: str) -> None:
    """Put the arrays of all ranks together, each rank the part that is its own."""
    call = exchange.of_all()
    count = out.size
    for part in _parts(count, own.dtype, _AT_ONCE_BYTES // exchange.size):
        pieces = [own[rank * count + part.start : rank * count + part.stop] for rank in range(exchange.size)]
        _reduced(call, pieces[exchange.rank], out[part], op, dict(enumerate(pieces)))


def all_reduce(exchange: Exchange, own: ndarray, out: ndarray, op: str) -> None:
    """Put the arrays of all ranks together, on all of them.

    What is small each rank gets from all others. Of what is not, each rank gets and reduces a part, which it sends to
    all others then: so each sends and gets the array twice, however many ranks there are.
    """
    call = exchange.of_all()
    if own.nbytes <= _DIRECT_BYTES:
        _reduced(call, own, out, op, dict.fromkeys(range(exchange.size), own))
        return
    for part in _parts(own.size, own.dtype, _AT_ONCE_BYTES):
        mine, whole = own[part], out[part]
        shares = [slice(mine.size * rank // exchange.size, mine.size * (rank + 1) // exchange.size)
                  for rank in range(exchange.size)]  # fmt: skip
        share = shares[exchange.rank]
        _reduced(call, mine[share], whole[share], op, {rank: mine[one] for rank, one in enumerate(shares)})
        others = exchange.others
        call.exchange({peer: [whole[share]] for peer in others}, {peer: [whole[shares[peer]]] for peer in others})


def _reduced(call: Call, own: ndarray, out: ndarray, op: str, outgoing: dict[int, ndarray]) -> None:
    """Get what is ``own`` of all others as well and put all of it together into ``out``, which may be the same memory.

    ``outgoing`` is what others get for their part at the same time.
    """
    others = call.whole.others
    theirs = {peer: room(own.size, own.dtype) for peer in others}
    going = {peer: [outgoing[peer]] for peer in others} if outgoing else {}
    call.exchange(going, {peer: [one] for peer, one in theirs.items()})
    in_order = [theirs.get(rank, own) for rank in range(call.whole.size)]
    if not others:
        copy(own, out)
    elif own.size:
        _put_together(partial(dispatch.call, OPERATIONS[op]), in_order, own, out)


def _put_together(operation: Callable[..., Any], in_order: list[ndarray], own: ndarray, out: ndarray) -> None:
    """Put the arrays together from the first to the last; but for the last step in memory of others, never our own."""
    total = in_order[0]
    for one in in_order[1:-1]:
        into = one if total is own else total
        operation((total, one), {"out": into})
        total = into
    operation((total, in_order[-1]), {"out": out})


def _parts(count: int, dtype: DType, most_bytes: int) -> list[slice]:
    """Return so many elements in parts of at most so many bytes; one part of none where there are none."""
    step = max(1, most_bytes // dtype.itemsize)
    return [slice(first, min(first + step, count)) for first in range(0, max(count, 1), step)]


def copy(source: ndarray, target: ndarray) -> None:
    """Copy what a rank has for itself."""
    if source.size:
        target[...] = source
