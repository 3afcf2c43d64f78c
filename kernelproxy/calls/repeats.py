"""Calls that are found again: what a call is known by, and what is remembered of it.

A call is known by its name, the layouts of its arrays, and the types and values of all else that it is given. That is
what its proof depends on, so a call that is known by the same has the same form: it is recorded after one look-up.
What the op carries is always what this call was given: numbers may be equal and differ in their bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpu_backend.opstream.layout import Layout, SomeRows, SparseLayout
from gpu_backend.opstream.proof.outcome import Later, Proof, Returned, View
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls import array_core, selections
from kernelproxy.calls.encoding import DTYPE_KINDS, DTYPES
from kernelproxy.calls.scalars import MOST_FLOAT, SCALARS, sent_scalar
from kernelproxy.calls.unknown_rows import form_for_later
from kernelproxy.client import Client, current
from kernelproxy.stream.forms import OpKind

Key = tuple[object, ...]
Values = list[wire.Value]
#: What a call is known by, who carries it out, and its arguments as they travel.
Known = tuple[Key, Client, tuple[wire.Value, ...], dict[str, wire.Value] | None]

#: What keys of calls begin with, and no other forms' keys do.
_CALL = 0
#: Functions that only put numbers somewhere, and how many arguments say no more: what they give is the same for all
#: floats that fit into the smallest type, so that a loop over ever new ones is found again.
_ANY_FLOAT = {"cupy.full": 2, "cupy.where": 3, "cupy.clip": 3, "cupy.ndarray.clip": 3}
#: Types whose values travel as they are.
_PLAIN = frozenset({float, bool, type(None)})
#: CuPy's classes of objects that draw random numbers: calls are known by the class, for rules know nothing else of one.
GENERATORS: set[type] = set()
#: CuPy's classes of objects of which something is known (`SparseLayout`): calls are known by that, beside the class.
DESCRIBED: set[type] = set()
#: The verb of methods. Whose method it is says what it will take, so calls are known by that as well.
METHOD = ".method"
#: Most items of one list, and most parts of a key, of calls that are found again: keys are kept by the thousand.
_MOST_ITEMS, _MOST_PARTS = 32, 128
#: Most letters of an argument.
_MOST_LETTERS = 128


def known_by(qualname: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Known | None:
    """Return what the call is known by; None if it is given what nothing is remembered of, or no session is open.

    Nor is anything remembered once several devices are in use: what becomes of a call depends on where its arrays are.

    Keywords are known in their order: it is the one in which they travel.
    """
    key: list[object] = [_CALL, qualname]
    is_any_float = not kwargs and len(args) <= _ANY_FLOAT.get(qualname, -1)
    found = _noted(key, args, None, is_any_float)
    if found is None:
        return None
    items, client = found
    wire_kwargs = None
    if kwargs:
        key += kwargs  # untagged, and so no value of any argument
        found = _noted(key, kwargs.values(), client)
        if found is None:
            return None
        wire_kwargs, client = dict(zip(kwargs, found[0], strict=True)), found[1]
    if qualname is METHOD:
        key.append(items[0].handle if type(items[0]) is wire.Ref else None)
    if client is None:
        client = current()
    if client.opened is None or (client.streams.is_used and client.pipeline.has_several):
        return None
    known_as = selections.known_as(key)
    return None if known_as is None else (known_as, client, tuple(items), wire_kwargs)


def _noted(
    key: list[object], values: Iterable[Any], client: Client | None, is_any_float: bool = False
) -> tuple[Values, Client | None] | None:
    """Add to ``key`` what ``values`` are known by; return them as they travel, and whose they and others are.

    Types stand beside values: 1, 1.0 and True are equal, and not the same to CuPy. None if a value has to be looked at
    more closely, or if they are of several clients.
    """
    items: Values = []
    of_array = array_core.array_class
    for one in values:
        kind = type(one)
        if kind is of_array or kind in GENERATORS or kind in DESCRIBED:
            if one._client is not client:
                if client is not None:
                    return None
                client = one._client
            if kind in DESCRIBED and not _note_what_is_known(key, one):
                return None
            key.append(one._layout if kind is of_array else kind)
            items.append(one._ref if kind is of_array else one._wire_value())
        elif is_any_float and kind is float and -MOST_FLOAT <= one <= MOST_FLOAT:
            key += (kind, None)
            items.append(one)
        elif kind in _PLAIN or (kind is int and -(1 << 63) <= one < 1 << 64) or (kind is str and _is_short(one)):
            key += (kind, one)
            items.append(one)
        elif kind in SCALARS:
            items.append(sent := sent_scalar(one))
            key += (kind, sent.data)
        elif kind is tuple or kind is list:
            key += (kind, len(one))
            if len(one) > _MOST_ITEMS or len(key) > _MOST_PARTS or (found := _noted(key, one, client)) is None:
                return None
            inner, client = found
            items.append(wire.Tuple(tuple(inner)) if kind is tuple else wire.List(tuple(inner)))
        else:
            named = DTYPES.get(one) if kind is type or kind in DTYPE_KINDS else None
            if named is None:
                return None
            key += (kind, one)
            items.append(named)
    return items, client


def _note_what_is_known(key: list[object], one: Any) -> bool:
    """Add to ``key`` what is known of an object; False if that is nothing, or if it may call the notebook."""
    known = one._known
    if type(known) is not SparseLayout or one._functions:
        return False
    key += (known.shape, known.dtype)
    return True


def _is_short(text: str) -> bool:
    return len(text) <= _MOST_LETTERS


compiled.learn(
    current=current, dtypes=DTYPES, dtype_kinds=DTYPE_KINDS, Window=View, Returned=Returned, Later=Later,
    any_float=_ANY_FLOAT, most_float=MOST_FLOAT, generators=GENERATORS, described=DESCRIBED, method=METHOD,
    SparseLayout=SparseLayout,
)  # fmt: skip


def remember(known: Known, proof: Proof, size: int, is_of_any_length: bool, what: object = None) -> None:
    """Have a call found again of which ``proof`` holds; its largest array's ``size``, and ``what``, are as of `OpKind`.

    Of arrays whose length was not known, only what holds of any length: not what was proved once it had been asked for.

    Only what gives one array or nothing, or arrays of shapes that depend on values: what gives several others takes
    long beside its recording.
    """
    key, client, _, _ = known
    forms = client.pipeline.forms
    if len(key) > _MOST_PARTS or not (is_of_any_length or SomeRows not in map(type, key)):
        return
    name = str(key[1])
    if isinstance(proof, Layout):
        forms.keep(key, forms[name, 1, proof.orders, size, what, proof, False])
    elif proof is None:
        forms.keep(key, forms[name, 0, None, size, None, None, False])
    elif type(proof) is Later:
        forms.keep(key, form_for_later(forms, name, proof, size))
    elif isinstance(proof, (View, Returned)):
        forms.keep(key, forms.of(OpKind(name, 0, None, size), gives=proof))
