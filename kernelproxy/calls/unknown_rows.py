"""Arrays whose number of rows nobody knows yet, as they are made; and what is noted of each: by what they were chosen.

They are asked for their shapes when those are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gpu_backend.opstream.proof.outcome import Later
from gpu_backend.wire import values as wire
from kernelproxy.calls.array_core import ArrayCore, Rows, pending
from kernelproxy.calls.selections import rows_of
from kernelproxy.client import Client
from kernelproxy.mirror import counts
from kernelproxy.mirror.entries import Counted

__all__ = ["made_for_later", "orders_for_later"]


class _Choice(NamedTuple):
    """What is about to choose rows: the number of the op, and the mask with what is known of it, if it is one."""

    op: int
    mask: wire.Ref | wire.View | None = None
    counted: Counted | None = None
    known_count: int | None = None


def orders_for_later(proof: Later) -> tuple[str, ...]:
    """Return in which memory order each result must lie: that of which nothing is known is left as it lies."""
    return ("" if proof.dtype is None else "C",) * (proof.several or 1)


def made_for_later(client: Client, args: tuple[object, ...], proof: Later, record: Callable[[], int]) -> Any:
    """Return what the op makes that ``record`` records, which returns the handle of the first: as ``proof`` says."""
    choice = _expect(client, args, proof)
    first = record()
    found = [pending(client, first + place, proof.nbytes) for place in range(proof.several or 1)]
    for one in found:
        one._layout.rows = _rows_made(one, args, proof, choice)
    return found[0] if proof.several is None else tuple(found)


def _expect(client: Client, args: tuple[object, ...], proof: Later) -> _Choice:
    """Note that the next op of ``client`` is about to choose rows, as ``proof`` says of its ``args``."""
    pipeline = client.pipeline
    place = proof.chosen_by
    mask = None if place is None or place >= len(args) else args[place]  # else it was given by its name
    with pipeline.recording:
        number = pipeline.open_batch.end
        if not isinstance(mask, ArrayCore):
            return _Choice(number)
        counted, count = counts.expect(pipeline.mirror, mask._ref), counts.count(pipeline.mirror, mask._ref)
        return _Choice(number, mask._ref, counted, count)


def _rows_made(made: ArrayCore, args: tuple[object, ...], proof: Later, choice: _Choice) -> Rows | None:
    """Return what is known of the rows of ``made``, which the op of ``choice`` makes; None if nothing is."""
    if proof.dtype is None:
        return None
    if proof.as_many_as is not None:
        rows = rows_of(args[proof.as_many_as])
        return None if rows is None else rows._replace(dtype=proof.dtype, rest=proof.rest)
    if made._client.pipeline.open_batch.end != choice.op + 1:  # another thread came between, and may have written it
        return Rows(made._ref, 0, proof.rest, proof.dtype)
    of = made._ref if choice.mask is None else choice.mask
    return Rows(of, choice.op, proof.rest, proof.dtype, choice.counted, choice.known_count)
