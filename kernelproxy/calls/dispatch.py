"""From a call on the CuPy surface to an op: recorded if its result can be proved here, else one round trip.

This is the rule that keeps remote CuPy honest: a call returns at once only when success and result are certain;
everything else waits for the executor and raises its error at its own line.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof import prove
from gpu_backend.opstream.proof.outcome import ArrayProof, Later, Made, Proof, Returned, Unproved, View, Warned
from gpu_backend.wire import values as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.errors import WarningRecord
from gpu_backend.wire.messages import Want
from kernelproxy import compiled
from kernelproxy.calls import array_core, brought, reading, repeats, selections, stand_ins, sync_detection, transfer
from kernelproxy.calls.argument_types import HostArray
from kernelproxy.calls.array_core import ArrayCore, fresh, from_description, view_of, window_held
from kernelproxy.calls.callbacks import Conversation, NotebookFunction
from kernelproxy.calls.decoding import Decoder
from kernelproxy.calls.described_arrays import array_of, shown_by_users
from kernelproxy.calls.doubts import doubted
from kernelproxy.calls.elsewhere import FETCHING, is_copied_whole, is_here, reaches_over
from kernelproxy.calls.encoding import Encoder
from kernelproxy.calls.error_state import ErrorState
from kernelproxy.calls.foreign_arrays import Nothing, behind
from kernelproxy.calls.later_layout import most_bytes
from kernelproxy.calls.stand_ins import StandIn, object_from_description
from kernelproxy.calls.unknown_rows import made_again, made_for_later, orders_for_later
from kernelproxy.client import Client, current
from kernelproxy.errors import warn_again

#: Types of most arguments that stand for themselves.
_PLAIN = frozenset({int, float, bool, str, type(None)})
#: Verbs that do what the object they are given does.
_VERBS_OF_OBJECTS = frozenset((".call", ".launch", ".method"))
#: How many frames of ours there are at least between the pipeline and who made a call.
_DEPTH = 4


@partial(compiled.quick, "call")
def call(qualname: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Call the public CuPy function ``qualname``; return what CuPy would, its arrays remote.

    Raises
    ------
    Exception
        What CuPy raises: at once if the call was proved wrong here, else when the executor has said so.
    """
    __tracebackhide__ = True
    if (".linalg." in qualname or ".lapack." in qualname) and (doubt := doubted(whose(args), qualname)) is not None:
        return run_proved(qualname, args, kwargs, doubt)
    known = repeats.known_by(qualname, args, kwargs)
    if known is not None:
        key, client, wire_args, wire_kwargs = known
        form = client.pipeline.forms.get(key)
        if form is not None:
            gives, made, stream = form.gives, form.made, client.streams.current_handle()
            if isinstance(gives, Later):
                if is_sure(client, gives.nbytes):
                    return made_again(client, form, args, wire_args, _DEPTH, wire_kwargs, stream)
            elif made is None or is_sure(client, made.held_bytes):
                if isinstance(gives, View):
                    return view_of(_given(gives, args, kwargs), gives.offset, gives.layout)
                handle = client.pipeline.note(form, wire_args, _DEPTH, wire_kwargs, stream)
                given = gives if made is None else made
                return None if given is None else _realise(client, given, handle, args, kwargs)
    proof: Proof = selections.prove(qualname, args, kwargs)
    is_of_any_length = proof is not selections.KNOWN_LENGTHS
    if not is_of_any_length:
        proof = prove(qualname, layouts(args), layouts(kwargs) if kwargs else {})
    if known is not None:
        repeats.remember(known, proof, largest(args, proof), is_of_any_length)
    return run_proved(qualname, args, kwargs, proof)


def proved(qualname: str, args: tuple[object, ...]) -> Proof:
    """Return what is proved of a call; raises what CuPy raises, if failure is."""
    return prove(qualname, layouts(args), {})


def record(qualname: str, args: tuple[object, ...]) -> None:
    """Record a call that is known to succeed and whose result nobody needs."""
    if brought.carried_out(whose(args), qualname, args, {}, lambda name, given, _: record(name, given)):
        return
    client, sent, *_ = _encode(args, {})
    stream, size = client.streams.current_handle(), largest(args, None)
    client.pipeline.record(qualname, sent, 0, None, stream, None, None, size, _kind(qualname, sent))


def run_proved(qualname: str, args: tuple[object, ...], kwargs: dict[str, object], proof: Proof) -> Any:
    """Carry out a call whose result the caller has proved: recorded, unless it carries host data or is large."""
    __tracebackhide__ = True
    is_unproved = False
    if not isinstance(proof, Layout):  # what nearly all results are
        if isinstance(proof, View) and (qualname not in FETCHING or is_here(args[0])):
            return view_of(_given(proof, args, kwargs), proof.offset, proof.layout)
        if isinstance(proof, Warned):
            return _warned(qualname, args, kwargs, proof)
        if isinstance(proof, Unproved):
            is_unproved, args = True, _as_themselves(args)
    if (given := brought.carried_out(whose(args), qualname, args, kwargs, call)) is not None:
        return given[0]
    encoded = _encode(args, kwargs)
    is_plain = encoded.is_plain or is_copied_whole(qualname, args, proof)
    if is_unproved or not (is_plain and is_sure(encoded.client, _made_bytes(proof))):
        return ask(qualname, encoded, args, kwargs)
    if isinstance(proof, Layout):
        client, wire_args, orders = encoded.client, encoded.args, proof.orders
        stream, size, kind = client.streams.current_handle(), largest(args, proof), _kind(qualname, wire_args)
        handle = client.pipeline.record(qualname, wire_args, 1, encoded.kwargs, stream, None, orders, size, kind, proof)
        return fresh(client, proof, handle)
    return _recorded(qualname, encoded, args, kwargs, proof)


def _recorded(
    qualname: str, encoded: _Encoded, args: tuple[object, ...], kwargs: dict[str, object], proof: Proof
) -> Any:
    """Record a call that gives something else than one new array."""
    client, wire_args, wire_kwargs = encoded.client, encoded.args, encoded.kwargs
    record, stream = client.pipeline.record, client.streams.current_handle()
    several = _several(proof)
    if several is not None:
        if all(isinstance(one, View) for one in several):  # nothing to compute
            return type(several)(_realise(client, one, 0, args, kwargs) for one in several)
        orders = _orders(several)
        size, kind = largest(args, proof), _kind(qualname, wire_args)
        first = record(qualname, wire_args, len(several), wire_kwargs, stream, None, orders, size, kind)
        return type(several)(_realise(client, one, first + place, args, kwargs) for place, one in enumerate(several))
    if isinstance(proof, Later):
        return _recorded_for_later(qualname, encoded, args, proof)
    count, size, kind = int(isinstance(proof, Made)), largest(args, proof), _kind(qualname, wire_args)
    handle = record(qualname, wire_args, count, wire_kwargs, stream, None, None, size, kind)
    if isinstance(proof, Made):
        return stand_ins.fresh(client, proof, handle)
    return None if proof is None else _realise(client, proof, handle, args, kwargs)  # type: ignore[arg-type]


def _recorded_for_later(qualname: str, encoded: _Encoded, args: tuple[object, ...], proof: Later) -> Any:
    """Record a call whose results have shapes that depend on values: each is asked for its own when that is needed."""
    client, count, orders = encoded.client, proof.several or 1, orders_for_later(proof)
    stream, size = client.streams.current_handle(), max(largest(args, None), proof.nbytes)
    given = qualname, encoded.args, count, encoded.kwargs, stream, None, orders, size, _kind(qualname, encoded.args)
    return made_for_later(client, args, proof, partial(client.pipeline.record, *given))


def _warned(qualname: str, args: tuple[object, ...], kwargs: dict[str, object], proof: Warned) -> Any:
    """Carry out a call that surely warns: here, unless it is waited for and the executor tells of it."""
    __tracebackhide__ = True
    if not _encode(args, kwargs).is_plain:
        return run_proved(qualname, args, kwargs, Unproved("host data"))
    warn_again((WarningRecord(proof.kind, proof.message),))
    return run_proved(qualname, args, kwargs, proof.proof)


def largest(args: tuple[object, ...], proof: Proof) -> int:
    """Return the bytes of the largest array among ``args``, or of the result that was proved."""
    found = proof.nbytes if type(proof) is Layout else 0
    for one in args:
        if isinstance(one, ArrayCore):
            found = max(found, most_bytes(one._layout))
    return found


def _kind(verb: str, args: tuple[wire.Value, ...]) -> object:
    """Return what tells what ``verb`` does, if its own name does not: whose call or method it is."""
    return args[0].handle if verb in _VERBS_OF_OBJECTS and type(args[0]) is wire.Ref else None


def _as_themselves(args: tuple[object, ...]) -> tuple[Any, ...]:
    """Return ``args`` with a handle for each of several equal views: CuPy's functions may ask whether ``y is x``."""
    views = [arg for arg in args if isinstance(arg, ArrayCore) and type(arg._ref) is wire.View]
    places = [view._ref for view in views]
    if len(set(places)) == len(places):
        return args
    held = {id(view): _held(view) for view in views if places.count(view._ref) > 1}
    return tuple([held.get(id(arg), arg) for arg in args])


def _held(view: ArrayCore) -> Any:
    """Return a view of ``view`` that the executor holds, under a handle of its own."""
    client = view._client
    handle = client.pipeline.record(".window", (view._ref,), 1, None, client.streams.current_handle(), None, ("",))
    return window_held(client, view._layout, handle)


def _realise(
    client: Client, proof: ArrayProof, handle: int, args: tuple[object, ...], kwargs: dict[str, object]
) -> Any:
    """Return the array that was proved: new under the ``handle`` of ``client``, or made of an argument."""
    if isinstance(proof, Layout):
        return fresh(client, proof, handle)
    given = _given(proof, args, kwargs)
    if handle:
        client.dropped.append((handle, None))  # the executor keeps each item of a result that has several
    if isinstance(proof, View):
        return view_of(given, proof.offset, proof.layout)
    return given[0] if isinstance(given, tuple) else given


def _given(proof: View | Returned, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Return the argument that the result is made of."""
    return kwargs[proof.of] if isinstance(proof.of, str) else args[proof.of]


def _several(proof: Proof) -> tuple[ArrayProof, ...] | list[ArrayProof] | None:
    """Return the parts of a proof of several results; None for one of a single result, which may be a tuple too."""
    return proof if type(proof) in (tuple, list) else None  # type: ignore[return-value]


def _orders(several: tuple[ArrayProof, ...] | list[ArrayProof]) -> tuple[str, ...] | None:
    """Return in which memory order each result must lie: what shows an argument's memory must be left there."""
    if all(type(one) is Layout and one.orders is None for one in several):
        return None
    return tuple([(one.memory_order or "C") if isinstance(one, Layout) else "" for one in several])


def _made_bytes(proof: Proof) -> int:
    """Return how many bytes of new memory the result needs."""
    if isinstance(proof, Layout):
        return proof.held_bytes
    if isinstance(proof, (Made, Later)):
        return proof.nbytes
    return sum(one.held_bytes for one in _several(proof) or () if isinstance(one, Layout))


def is_sure(client: Client, nbytes: int) -> bool:
    """Tell whether ``client`` is sure to have a result of ``nbytes``, so that nobody need wait for it."""
    pipeline = client.pipeline
    memory = pipeline.memory
    return nbytes <= memory.small_bytes or memory.is_sure(nbytes, [handle for handle, _ in list(pipeline.dropped)])


class _Encoded(NamedTuple):
    """The arguments of one op, ready for the wire, and who carries it out."""

    client: Client
    args: tuple[wire.Value, ...]
    kwargs: dict[str, wire.Value] | None
    buffers: list[Frame]
    functions: list[NotebookFunction]
    stand_ins: list[Any]

    @property
    def is_plain(self) -> bool:
        return not (self.buffers or self.functions or reaches_over(self.client, self.args, self.kwargs))


def _encode(args: tuple[object, ...], kwargs: dict[str, object]) -> _Encoded:
    encoder = Encoder(stands_for)
    wire_args = tuple([encoder.encode(arg) for arg in args])
    wire_kwargs = {key: encoder.encode(value) for key, value in kwargs.items()} if kwargs else None
    client = current() if encoder.client is None else encoder.client
    return _Encoded(client, wire_args, wire_kwargs, encoder.buffers, encoder.functions, encoder.stand_ins)


def ask(name: str, encoded: _Encoded, given_args: tuple[object, ...], given_kwargs: dict[str, object]) -> Any:
    """Carry out an op whose result is not known here: one round trip. Results that can stay remote do."""
    __tracebackhide__ = True
    carry_out = _converse if encoded.functions else _answered
    result = carry_out(name, encoded, given_args, given_kwargs)
    out = given_kwargs.get("out")
    if isinstance(out, ArrayCore):
        return out
    if isinstance(out, tuple) and isinstance(result, tuple):  # of a ufunc with several results, some may be given
        return tuple(made if given is None else given for made, given in zip(result, out, strict=True))
    return result


def _answered(name: str, encoded: _Encoded, given_args: tuple[object, ...], given_kwargs: dict[str, object]) -> Any:
    __tracebackhide__ = True
    client, stream = encoded.client, encoded.client.streams.current_handle()
    with client.part(ErrorState).told():
        answer = client.pipeline.call(name, encoded.args, Want.DESCRIPTION, encoded.kwargs, encoded.buffers, stream)
    known = {item._wire_value().handle: item for item in _remote_items(given_args, given_kwargs)}
    shown = shown_by_users(given_args, given_kwargs) if array_core.is_subclassed else {}
    make_array, make_object = partial(array_of, client, known, shown), partial(object_from_description, client)
    result = Decoder(answer.buffers, known, make_array, make_object).decode(answer.value)
    client.pipeline.note_described(name, answer.value)
    if answer.warnings:
        warn_again(answer.warnings)
    return result


def _converse(name: str, encoded: _Encoded, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Carry out an op that calls functions of the notebook: one round trip for each of their calls."""
    __tracebackhide__ = True
    conversation = Conversation(encoded.functions)
    task, *said = _answered(".begin", encoded._replace(args=(name, *encoded.args)), args, kwargs)
    while task is not None:
        number, call_args, call_kwargs = said
        with encoded.client:  # what the function makes is to be used with what it is given
            returned, value = conversation.called(number, call_args, call_kwargs)
        try:
            task, *said = ask_object(".resume", task, returned, value)
        except Exception:  # whatever the call here became of it, the notebook's own error is the cause
            if conversation.raised is not None:
                raise conversation.release() from None
            raise
    result = said[0]
    if isinstance(result, StandIn):
        stand_ins.keep_functions(result, encoded.functions)
    return result


def ask_object(verb: str, *args: object, **kwargs: object) -> Any:
    """Carry out ``verb`` on a remote object, the first of ``args``. One round trip."""
    __tracebackhide__ = True
    return ask(verb, _encode(args, kwargs), args, kwargs)


def tell(verb: str, *args: object) -> None:
    """Carry out ``verb`` for its effect. One round trip; what it warns of, the caller has said already."""
    __tracebackhide__ = True
    client, wire_args, *_ = _encode(args, {})
    client.pipeline.call(verb, wire_args, Want.DESCRIPTION, None, None, client.streams.current_handle())


def contents(array: ArrayCore, into: HostArray | None = None) -> np.ndarray[Any, Any]:
    """Return the contents of the remote ``array`` as a NumPy array. Waits for all that computes it.

    It may be ``into``, if that is like it: what is large is not copied once more.
    """
    __tracebackhide__ = True
    sync_detection.check()
    return reading.contents(array, into)


def upload(host: HostArray) -> Any:
    """Return a remote array with the contents of ``host``. Costs no round trip unless it is large."""
    client = current()
    if not is_sure(client, host.nbytes):  # make sure that it can be had before its contents travel
        array = call("cupy.empty", (host.shape, host.dtype), {})
        transfer.write(array, host)
        return array
    return transfer.upload(client, host)


def value_of(qualname: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Call ``qualname`` and return its result by value: arrays as NumPy arrays."""
    __tracebackhide__ = True
    given = _encode(args, kwargs)
    client, stream = given.client, given.client.streams.current_handle()
    answer = client.pipeline.call(qualname, given.args, Want.CONTENTS, given.kwargs, given.buffers, stream)
    if answer.warnings:
        warn_again(answer.warnings)
    make_array, make_object = partial(from_description, client), partial(object_from_description, client)
    return Decoder(answer.buffers, {}, make_array, make_object).decode(answer.value)


def stands_for(value: object) -> Any:
    """Return the array that ``value`` stands for; else itself. Raises what `foreign_arrays.behind` does."""
    found = behind(value)
    return call("cupy.empty", (found.shape, found.dtype), {}) if type(found) is Nothing else found


def layouts(value: Any) -> Any:
    """Return ``value`` with every remote array in it replaced by its layout, and sparse ones by what is known."""
    kind = type(value)
    if isinstance(value, ArrayCore):
        return value._layout
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return kind([layouts(item) for item in value])
    if kind is dict:
        return {key: layouts(item) for key, item in value.items()}
    if isinstance(value, StandIn) and value._known is not None:
        return value._known
    return value


def whose(args: tuple[object, ...] | list[object]) -> Client:
    """Return the client of the first of ``args`` that is somebody's; of none, the current one."""
    for one in args:
        if isinstance(one, (tuple, list)):
            return whose(one)
        if isinstance(one, (ArrayCore, StandIn)) and one._client is not None:
            return one._client
    return current()


def _remote_items(args: tuple[object, ...], kwargs: dict[str, object]) -> list[Any]:
    items = [*args, *kwargs.values()]
    return [item for item in items if hasattr(item, "_wire_value") and type(item._wire_value()) is wire.Ref]
