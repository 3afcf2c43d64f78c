"""Arrays whose number of rows nobody knows yet, as they are made; and what is noted of each: by what they were chosen.

They are asked for their shapes when those are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gpu_backend.opstream.proof.outcome import Later
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls import array_core
from kernelproxy.calls.array_core import ArrayCore, pending
from kernelproxy.calls.later_layout import Rows
from kernelproxy.calls.selections import rows_of
from kernelproxy.client import Client
from kernelproxy.mirror import counts
from kernelproxy.mirror.entries import Counted
from kernelproxy.stream.forms import Form, Forms, OpKind, rows_of_each
from kernelproxy.stream.pipeline import Pipeline

__all__ = ["form_for_later", "made_again", "made_for_later", "orders_for_later"]


def orders_for_later(proof: Later) -> tuple[str, ...]:
    """Return in which memory order each result must lie: that of which nothing is known is left as it lies."""
    return ("" if proof.dtype is None else "C",) * (proof.several or 1)


def form_for_later(forms: Forms, name: str, proof: Later, size: int, low: float = 0, high: float = 0) -> Form:
    """Return the form of an op that makes what ``proof`` says, and whose largest operand has ``size`` bytes.

    Where an operand is a number, it is of this form between ``low`` and ``high``.
    """
    kind = OpKind(name, proof.several or 1, orders_for_later(proof), max(size, proof.nbytes))
    return forms.of(kind, low, high, proof)


def made_for_later(client: Client, args: tuple[object, ...], proof: Later, record: Callable[[], int]) -> Any:
    """Return what the op makes that ``record`` records, which returns the handle of the first: as ``proof`` says."""
    kind = rows_of_each(proof)
    if kind is None:
        first, rows = record(), None
    elif proof.as_many_as is not None:
        rows = rows_of(args[proof.as_many_as])
        first = record()
    else:
        first, rows = _chosen(client, args, proof, record)
    found = [pending(client, first + place, proof.nbytes, kind, rows) for place in range(proof.several or 1)]
    return found[0] if proof.several is None else tuple(found)


def made_again(
    client: Client, form: Form, given: tuple[object, ...], args: tuple[wire.Value, ...], depth: int,
    kwargs: dict[str, wire.Value] | None = None, stream: int = 0,
) -> Any:  # fmt: skip
    """Record an op of ``form``, which gives one new array or what is known later, and return that.

    ``given`` are the op's arguments, which travel as ``args`` and ``kwargs``. The rest is as of `Recorder.note`.
    """
    note = partial(client.pipeline.note, form, args, depth, kwargs, stream)
    if type(form.gives) is Later:
        return made_for_later(client, given, form.gives, note)
    assert form.made is not None
    return array_core.fresh(client, form.made, note())


def _chosen(client: Client, args: tuple[object, ...], proof: Later, record: Callable[[], int]) -> tuple[int, Rows]:
    """Record an op that chooses rows, as ``proof`` says of its ``args``; return its handle, and what says how many."""
    pipeline = client.pipeline
    place = proof.chosen_by
    mask = None if place is None or place >= len(args) else args[place]  # else it was given by its name
    number, counted, count = _expected(pipeline, mask._ref if isinstance(mask, ArrayCore) else None)
    first = record()
    if pipeline.open_batch.end != number + 1:  # another thread came between, and may have written it
        return first, Rows(None, 0, [])
    if not isinstance(mask, ArrayCore):
        return first, Rows(None, number, [])
    return first, Rows(mask._ref, number, [], counted, count)


def _expected(pipeline: Pipeline, mask: wire.Ref | wire.View | None) -> tuple[int, Counted | None, int | None]:
    """Return the number of the next op, by which ``mask`` is about to choose rows.

    Beside it, where to say how many they are and how many, as far as there is such a place and that is known.
    """
    with pipeline.recording:
        number, mirror = pipeline.open_batch.end, pipeline.mirror
        if mask is None:
            return number, None, None
        return number, counts.expect(mirror, mask), counts.count(mirror, mask)


compiled.learn(expected=_expected)
