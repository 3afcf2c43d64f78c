"""Launches of a user's kernels that are found again, by one look-up: what one is known by, and how it is recorded.

A launch is known by its kernel, the layouts of its arrays, and of each number by the type and how large it is at most:
that decides whether CuPy takes it, and what comes out. Numbers themselves are new each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof.outcome import Returned
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls import array_core
from kernelproxy.calls.later_layout import LaterLayout
from kernelproxy.calls.scalars import MOST_FLOAT, SCALARS, sent_scalar
from kernelproxy.client import Client
from kernelproxy.stream.forms import OpKind

__all__ = ["Launch", "known_launch", "launched", "remember_launch"]

#: What keys of launches begin with, and no other forms' keys do.
_LAUNCH = 1
#: How many frames of ours there are at least between the pipeline and who launched a kernel.
_DEPTH = 5
#: The length of integers of which some do not go into the least type of floats.
_UNSURE_BITS = 16


class Launch(NamedTuple):
    """What a launch is known by, who carries it out, and its arguments as they travel, but for the kernel."""

    key: tuple[object, ...]
    client: Client
    args: tuple[wire.Value, ...]


def known_launch(client: Client, handle: int, shape: tuple[object, ...], args: Sequence[Any]) -> Launch | None:
    """Return what a launch of the kernel ``handle`` is known by; None if it is given what has to be looked at closely.

    Parameters
    ----------
    shape
        The grid and the block, where they are given.
    """
    key: list[object] = [_LAUNCH, handle, *shape]
    sent: list[wire.Value] = []
    of_array = array_core.array_class
    for one in args:
        kind = type(one)
        if kind is of_array:
            if one._client is not client:
                return None
            key.append(one._layout)
            sent.append(one._ref)
            continue
        number = one.item() if kind in SCALARS else one
        size = _size(number)
        if size is None:
            return None
        key += (kind, size)
        sent.append(one if number is one else sent_scalar(one))
    return Launch(tuple(key), client, tuple(sent))


def _size(number: Any) -> object:
    """Return what stands for a number and all that go into the same types as it; None for what is none."""
    kind = type(number)
    if kind is float:
        return True if -MOST_FLOAT <= number <= MOST_FLOAT else number
    if kind is int:
        bits = (~number if number < 0 else number).bit_length()
        return number if bits == _UNSURE_BITS else (number < 0, bits)
    return True if kind is bool else None


@partial(compiled.quick, "launched")
def launched(
    client: Client, handle: int, ref: wire.Value, shape: tuple[object, ...], given: tuple[Any, ...],
    sent_shape: tuple[wire.Value, ...],
) -> tuple[Any] | Launch | None:  # fmt: skip
    """Record a launch if it was remembered, and return what it gives in a tuple.

    If it was not, return what it is to be remembered by; None if it is given what has to be looked at closely.

    Parameters
    ----------
    handle, ref
        Of the kernel.
    shape, sent_shape
        The grid and the block, where they are given, and how they travel: the arguments behind them travel as one.
    given
        Its arguments.
    """
    launch = known_launch(client, handle, shape, given)
    if launch is None:
        return None
    again = _launch_again(launch, ref, given, sent_shape)
    return launch if again is None else again


def _launch_again(
    launch: Launch, ref: wire.Value, given: Sequence[Any], shape: tuple[wire.Value, ...]
) -> tuple[Any] | None:
    pipeline = launch.client.pipeline
    form = pipeline.forms.get(launch.key)
    if form is None or not pipeline.memory.is_sure(form.size) or launch.client.streams.is_used:
        return None
    args = (ref, *shape, wire.Tuple(launch.args)) if shape else (ref, *launch.args)
    handle = pipeline.note(form, args, _DEPTH)
    if form.made is not None:
        return (array_core.fresh(launch.client, form.made, handle),)
    return (given[int(form.gives.of) - 1] if type(form.gives) is Returned else None,)  # the kernel comes first


def remember_launch(launch: Launch, handle: int, proof: object, size: int) -> None:
    """Have a launch found again that gives one new array, one of its arguments, or nothing."""
    given = proof if type(proof) is Returned and type(proof.of) is int else None
    if LaterLayout in map(type, launch.key) or not (proof is None or given is not None or type(proof) is Layout):
        return
    forms, made = launch.client.pipeline.forms, proof if type(proof) is Layout else None
    if made is None or made.orders is None:
        count = int(made is not None)
        forms.keep(launch.key, forms.of(OpKind(".call", count, None, size, handle, made), gives=given))
