"""From a call on the CuPy surface to an op: recorded if its result can be proved here, else one round trip.

This is the rule that keeps remote CuPy honest: a call returns at once only when success and result are certain;
everything else waits for the executor and raises its error at its own line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.wire import values as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.messages import Want
from kernelproxy import streams, transfer
from kernelproxy.array_core import ArrayCore, from_description, fresh
from kernelproxy.decoding import Decoder, buffer_to_array
from kernelproxy.encoding import Encoder
from kernelproxy.infer import Unproved, infer
from kernelproxy.layout import Layout, contiguous
from kernelproxy import remote_object
from kernelproxy.session import pipeline

Proof = Layout | tuple[Layout, ...] | None | Unproved

#: Arrays above this share of the memory limit are made synchronously, so that OutOfMemoryError comes at its own line.
_SURE_SHARE = 0.25


def call(qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the public CuPy function ``qualname``; return what CuPy would, its arrays remote.

    Raises
    ------
    Exception
        What CuPy raises. If the call was proved wrong here, without asking.
    """
    proof = infer(qualname, layouts(args), layouts(kwargs) if kwargs else {})
    return run_proved(qualname, args, kwargs, proof)


def record(qualname: str, args: tuple[Any, ...]) -> None:
    """Record a call that is known to succeed and whose result nobody needs."""
    encoder = Encoder()
    wire_args = tuple([encoder.encode(arg) for arg in args])
    pipeline().record(qualname, wire_args, 0, None, streams.current_handle())


def run_proved(qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any], proof: Proof) -> Any:
    """Carry out a call whose result the caller has proved: recorded, unless it carries host data or is large."""
    encoder = Encoder()
    wire_args = tuple([encoder.encode(arg) for arg in args])
    wire_kwargs = {key: encoder.encode(value) for key, value in kwargs.items()} if kwargs else None
    if isinstance(proof, Unproved) or encoder.buffers or not fits(proof):
        return ask(qualname, wire_args, wire_kwargs, encoder.buffers, args, kwargs)
    return _record_proved(qualname, wire_args, wire_kwargs, proof, kwargs)


def _record_proved(
    qualname: str,
    args: tuple[wire.Value, ...],
    kwargs: dict[str, wire.Value] | None,
    proof: Layout | tuple[Layout, ...] | None,
    given: dict[str, Any],
) -> Any:
    stream = streams.current_handle()
    out = given.get("out")
    if proof is None or out is not None:
        pipeline().record(qualname, args, 0, kwargs, stream)
        return out
    if isinstance(proof, tuple):
        handle = pipeline().record(qualname, args, len(proof), kwargs, stream)
        return tuple(fresh(layout, handle + place) for place, layout in enumerate(proof))
    return fresh(proof, pipeline().record(qualname, args, 1, kwargs, stream))


def ask(
    name: str,
    args: tuple[wire.Value, ...],
    kwargs: dict[str, wire.Value] | None,
    buffers: list[Frame],
    given_args: tuple[Any, ...],
    given_kwargs: dict[str, Any],
) -> Any:
    """Carry out an op whose result is not known here: one round trip. Results that can stay remote do."""
    answer = pipeline().call(name, args, Want.DESCRIPTION, kwargs, buffers, streams.current_handle())
    known = {item._wire_value().handle: item for item in _remote_items(given_args, given_kwargs)}
    result = Decoder(answer.buffers, known, from_description, remote_object.object_from_description).decode(
        answer.value
    )
    out = given_kwargs.get("out")
    if isinstance(out, ArrayCore):
        return out
    return result


def ask_object(verb: str, *args: Any, **kwargs: Any) -> Any:
    """Carry out ``verb`` on a remote object, the first of ``args``. One round trip."""
    encoder = Encoder()
    wire_args = tuple([encoder.encode(arg) for arg in args])
    wire_kwargs = {key: encoder.encode(value) for key, value in kwargs.items()} if kwargs else None
    return ask(verb, wire_args, wire_kwargs, encoder.buffers, args, kwargs)


def contents(reference: wire.Value) -> np.ndarray[Any, Any]:
    """Return the contents of the remote array ``reference`` as a NumPy array. Waits for all that computes it."""
    answer = pipeline().call(".same", (reference,), Want.CONTENTS, None, None, streams.current_handle())
    assert isinstance(answer.value, wire.Buffer)
    return buffer_to_array(answer.value, answer.buffers)


def upload(host: np.ndarray[Any, Any]) -> Any:
    """Return a remote array with the contents of ``host``. Costs no round trip unless it is large."""
    layout = contiguous(host.shape, host.dtype)
    if not fits(layout):  # make sure that it can be had before its contents travel
        array = call("cupy.empty", (host.shape, host.dtype), {})
        transfer.write(pipeline(), array, host)
        return array
    return transfer.upload(pipeline(), host)


def write(array: ArrayCore, host: np.ndarray[Any, Any]) -> None:
    """Copy ``host`` into the contiguous remote ``array``."""
    transfer.write(pipeline(), array, host)


def value_of(qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``qualname`` and return its result by value: arrays as NumPy arrays."""
    encoder = Encoder()
    wire_args = tuple([encoder.encode(arg) for arg in args])
    wire_kwargs = {key: encoder.encode(value) for key, value in kwargs.items()} if kwargs else None
    answer = pipeline().call(qualname, wire_args, Want.CONTENTS, wire_kwargs, encoder.buffers, streams.current_handle())
    return Decoder(answer.buffers, {}, from_description, remote_object.object_from_description).decode(answer.value)


def fits(proof: Layout | tuple[Layout, ...] | None) -> bool:
    """Tell whether the result is small enough that its allocation need not be waited for."""
    if proof is None:
        return True
    size = proof.nbytes if isinstance(proof, Layout) else sum(layout.nbytes for layout in proof)
    limit = pipeline().memory_limit_bytes
    return not limit or size <= _SURE_SHARE * limit


def layouts(value: Any) -> Any:
    """Return ``value`` with every remote array in it replaced by its layout."""
    kind = type(value)
    if isinstance(value, ArrayCore):
        return value._layout
    if kind is tuple or kind is list:
        return kind([layouts(item) for item in value])
    if kind is dict:
        return {key: layouts(item) for key, item in value.items()}
    return value


def _remote_items(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    items = [*args, *kwargs.values()]
    return [item for item in items if hasattr(item, "_wire_value") and type(item._wire_value()) is wire.Ref]
