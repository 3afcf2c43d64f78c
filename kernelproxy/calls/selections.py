"""Calls on arrays of a length that nobody knows yet: recorded without asking for it, where the answer does not matter.

What a mask selects has as many rows as the mask has true elements, and so has what is made of it row by row; a sum over
all rows does not tell how many there were. What is proved of none, of one and of two rows alike holds of any number of
them: of the calls that are served here, which treat each row as the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.opstream import proof
from gpu_backend.opstream.layout import DType, Layout, Shape, SomeRows, contiguous
from gpu_backend.opstream.proof.outcome import Later, Proof, Unproved
from gpu_backend.opstream.surface import Ufunc, load
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.later_layout import LaterLayout, Rows

__all__ = ["KNOWN_LENGTHS", "is_inplace_proved", "is_unknown", "known_as", "prove", "rows_of", "sample"]

#: What is said of all calls that these proofs are not about.
KNOWN_LENGTHS = Unproved("all lengths are known, or must be")

_COUNTS = (0, 1, 2)
#: Calls other than ufuncs that treat each row as the next: they give one for each, or one array of all.
_SERVED = frozenset(
    f"{owner}.{name}"
    for owner in ("cupy", "cupy.ndarray")
    for name in (
        "sum", "prod", "any", "all", "mean", "std", "var", "nansum", "nanprod", "astype", "copy", "clip", "round",
        "around", "nan_to_num", "where", "sort", "argsort", "cumsum", "cumprod", "dot", "matmul", "__getitem__",
        "__setitem__", "__pow__",
    )
)  # fmt: skip
_PLAIN = frozenset({bool, int, float, complex, str, type(None)})


class _Unknown(NamedTuple):
    """An argument of which nobody knows how many rows it has."""

    dtype: DType
    rest: Shape


class _Plain(NamedTuple):
    """An argument that stands for itself. 1, 1.0 and True are equal, and not the same to CuPy."""

    kind: type
    value: Any


class _Same(NamedTuple):
    """A result that has as many rows as the argument."""

    dtype: DType
    rest: Shape


_Argument = _Unknown | _Plain | Layout
_Keywords = tuple[tuple[str, _Argument], ...]


def prove(qualname: str, args: tuple[object, ...], kwargs: dict[str, object] | None = None) -> Proof:
    """Return what is proved of a call on arrays of unknown length; `KNOWN_LENGTHS` for all other calls."""
    places = [place for place, one in enumerate(args) if isinstance(one, ArrayCore) and _is_unknown(one._layout)]
    if not places or not _is_served(qualname, len(args)):
        return KNOWN_LENGTHS
    named = kwargs or {}
    if known_as([one._layout for one in args if isinstance(one, ArrayCore) and _is_unknown(one._layout)]) is None:
        return KNOWN_LENGTHS
    described, keywords = _described(args), _described(tuple(named.values()))
    if described is None or keywords is None or any(isinstance(one, ArrayCore) for one in named.values()):
        return KNOWN_LENGTHS
    found = _for_any_count(qualname, described, tuple(zip(named, keywords, strict=True)))
    if not isinstance(found, _Same):
        return found
    of = args[places[0]]
    assert isinstance(of, ArrayCore)
    kind = _kind_of(of._layout)
    assert kind is not None
    most = kind.most_bytes // _row_bytes(kind)
    return Later(None, most * _row_bytes(found), places[0], None, found.dtype, found.rest)


def known_as(parts: Sequence[object]) -> tuple[object, ...] | None:
    """Return ``parts`` of what a call is known by, with what is known of layouts whose length nobody knows for them.

    None if one of these is not known but for its length, or if they are not surely all as long.
    """
    if LaterLayout not in map(type, parts):
        return tuple(parts)
    first: Rows | None = None
    found: list[object] = []
    for part in parts:
        if type(part) is LaterLayout:
            kind, rows = part.kind, part.rows
            if kind is None or rows is None or (first is not None and not _is_as_long(first, rows)):
                return None
            first = first or rows
            found.append(kind)
        else:
            found.append(part)
    return tuple(found)


def sample(operand: object) -> Any:
    """Return an operand for a rule as it is when the unknown lengths are two: what holds of numbers then holds ever."""
    layout = operand._layout if isinstance(operand, ArrayCore) else operand
    kind = _kind_of(layout)
    return layout if kind is None else kind.with_count(_COUNTS[-1])


def is_inplace_proved(qualname: str, target: Layout, operand: object) -> bool:
    """Tell whether ``target op= operand`` surely succeeds, where the length of ``target`` is not known.

    ``operand`` is a layout or a number.
    """
    if not _is_unknown(target) or known_as((target, operand)) is None:
        return False
    described = _described((target, operand))
    return described is not None and _is_inplace_proved(qualname, *described)


def rows_of(array: object) -> Rows | None:
    """Return what is known of the rows of ``array``, whose length nobody knew when it was made."""
    layout = array._layout if isinstance(array, ArrayCore) else None
    return layout.rows if type(layout) is LaterLayout else None


def is_unknown(array: ArrayCore) -> bool:
    """Tell whether nobody here knows yet how many rows ``array`` has."""
    return _is_unknown(array._layout)


def _kind_of(layout: object) -> SomeRows | None:
    return layout.kind if type(layout) is LaterLayout else None


def _is_unknown(layout: object) -> bool:
    return type(layout) is LaterLayout and not layout.is_known


def _row_bytes(rows: SomeRows | _Same) -> int:
    return rows.dtype.itemsize * max(1, prod(rows.rest))


def _is_served(qualname: str, operands: int) -> bool:
    if qualname in _SERVED:
        return True
    described = load().get(qualname)
    return isinstance(described, Ufunc) and described.nout == 1 and described.nin == operands


def _is_as_long(one: Rows, other: Rows) -> bool:
    """Tell whether both are what one op chose, are known to be as many, or are of one mask that nobody has written."""
    if one is other:
        return True
    if one.known_count is not None and other.known_count is not None:
        return one.known_count == other.known_count
    return one.counted is not None and one.counted is other.counted and one.of == other.of


def _described(values: Sequence[object]) -> tuple[_Argument, ...] | None:
    """Return what a proof depends on of ``values``, arrays or their layouts among them; None if it cannot be said."""
    found: list[_Argument] = []
    for value in values:
        one = value._layout if isinstance(value, ArrayCore) else value
        if _is_unknown(one):
            kind = _kind_of(one)
            if kind is None:
                return None
            found.append(_Unknown(kind.dtype, kind.rest))
        elif type(one) is Layout:
            found.append(one)
        elif _is_plain(one):
            found.append(_Plain(type(one), one))
        else:
            return None
    return tuple(found)


def _is_plain(value: object) -> bool:
    if type(value) in _PLAIN or isinstance(value, (type, np.dtype)):
        return True
    if isinstance(value, np.generic):
        return value.dtype.kind in "biufc"
    return type(value) is tuple and all(type(one) is int for one in value)


def _with_count(described: _Argument, count: int) -> object:
    """Return an argument for a proof, where the unknown lengths are ``count``."""
    if type(described) is _Unknown:
        return contiguous((count, *described.rest), described.dtype)
    return described.value if type(described) is _Plain else described


@lru_cache(maxsize=4_096)
def _for_any_count(qualname: str, args: tuple[_Argument, ...], kwargs: _Keywords) -> Layout | _Same | Unproved | None:
    """Return what is proved for any count; `KNOWN_LENGTHS` if the count matters."""
    try:
        results = [
            proof.prove(
                qualname,
                tuple([_with_count(one, count) for one in args]),
                {name: _with_count(one, count) for name, one in kwargs},
            )
            for count in _COUNTS
        ]
    except Exception:  # what is wrong with it is told of arrays as they are
        return KNOWN_LENGTHS
    return _common(results)


def _common(results: Sequence[Proof]) -> Layout | _Same | Unproved | None:
    first = results[0]
    if all(one is None for one in results):
        return None
    if not isinstance(first, Layout):
        return KNOWN_LENGTHS
    if all(one is first for one in results):
        return first
    same = _Same(first.dtype, first.shape[1:])
    lengths = [contiguous((count, *same.rest), same.dtype) for count in _COUNTS]
    return same if all(one is length for one, length in zip(results, lengths, strict=True)) else KNOWN_LENGTHS


@lru_cache(maxsize=1_024)
def _is_inplace_proved(qualname: str, target: _Argument, operand: _Argument) -> bool:
    for count in _COUNTS:
        into = _with_count(target, count)
        assert isinstance(into, Layout)
        try:
            if proof.infer_inplace(qualname, into, _with_count(operand, count)) is not None:
                return False
        except Exception:  # as above
            return False
    return True
