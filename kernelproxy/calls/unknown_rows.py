"""What is noted of arrays whose number of rows nobody knows yet, as they are made: by what their rows were chosen."""

from __future__ import annotations

from typing import NamedTuple

from gpu_backend.opstream.proof.outcome import Later
from gpu_backend.wire import values as wire
from kernelproxy.calls.array_core import ArrayCore, Rows
from kernelproxy.calls.selections import rows_of
from kernelproxy.client import Client
from kernelproxy.mirror import counts
from kernelproxy.mirror.entries import Counted

__all__ = ["Choice", "expect", "made_rows"]


class Choice(NamedTuple):
    """What is about to choose rows: the number of the op, and the mask with what is known of it, if it is one."""

    op: int
    mask: wire.Ref | wire.View | None = None
    counted: Counted | None = None
    known_count: int | None = None


def expect(client: Client, args: tuple[object, ...], proof: Later) -> Choice:
    """Note that the next op of ``client`` is about to choose rows, as ``proof`` says of its ``args``."""
    pipeline = client.pipeline
    place = proof.chosen_by
    mask = None if place is None or place >= len(args) else args[place]  # else it was given by its name
    with pipeline.recording:
        number = pipeline.open_batch.end
        if not isinstance(mask, ArrayCore):
            return Choice(number)
        counted, count = counts.expect(pipeline.mirror, mask._ref), counts.count(pipeline.mirror, mask._ref)
        return Choice(number, mask._ref, counted, count)


def made_rows(made: ArrayCore, args: tuple[object, ...], proof: Later, choice: Choice) -> Rows | None:
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
