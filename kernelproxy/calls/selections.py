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
from gpu_backend.opstream.layout import DType, Layout, Shape, contiguous
from gpu_backend.opstream.proof.outcome import Later, Proof, Unproved
from gpu_backend.opstream.surface import Ufunc, load
from kernelproxy.calls.array_core import ArrayCore, LaterLayout, Rows

__all__ = ["KNOWN_LENGTHS", "is_inplace_proved", "is_unknown", "prove", "rows_of"]

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
    unknown, named = [rows_of(args[place]) for place in places], kwargs or {}
    first = unknown[0]
    if first is None or not all(_is_as_long(first, one) for one in unknown[1:]):
        return KNOWN_LENGTHS
    described, keywords = _described(args), _described(tuple(named.values()))
    if described is None or keywords is None or any(isinstance(one, ArrayCore) for one in named.values()):
        return KNOWN_LENGTHS
    found = _for_any_count(qualname, described, tuple(zip(named, keywords, strict=True)))
    if not isinstance(found, _Same):
        return found
    of = args[places[0]]
    assert isinstance(of, ArrayCore)
    most = _layout_bytes(of._layout) // _row_bytes(first)
    return Later(None, most * _row_bytes(found), places[0], None, found.dtype, found.rest)


def is_inplace_proved(qualname: str, target: Layout, operand: object) -> bool:
    """Tell whether ``target op= operand`` surely succeeds, where the length of ``target`` is not known.

    ``operand`` is a layout or a number.
    """
    rows = _rows_in(target) if _is_unknown(target) else None
    if rows is None or (_is_unknown(operand) and not _is_as_long(rows, _rows_in(operand))):
        return False
    described = _described((target, operand))
    return described is not None and _is_inplace_proved(qualname, *described)


def rows_of(array: object) -> Rows | None:
    """Return what is known of the rows of ``array``, whose length nobody knew when it was made."""
    return _rows_in(array._layout) if isinstance(array, ArrayCore) else None


def is_unknown(array: ArrayCore) -> bool:
    """Tell whether nobody here knows yet how many rows ``array`` has."""
    return _is_unknown(array._layout)


def _rows_in(layout: object) -> Rows | None:
    return layout.rows if type(layout) is LaterLayout else None


def _is_unknown(layout: object) -> bool:
    return type(layout) is LaterLayout and not layout.is_known


def _layout_bytes(layout: Layout) -> int:
    assert isinstance(layout, LaterLayout)
    return layout.most_bytes


def _row_bytes(rows: Rows | _Same) -> int:
    return rows.dtype.itemsize * max(1, prod(rows.rest))


def _is_served(qualname: str, operands: int) -> bool:
    if qualname in _SERVED:
        return True
    described = load().get(qualname)
    return isinstance(described, Ufunc) and described.nout == 1 and described.nin == operands


def _is_as_long(one: Rows, other: Rows | None) -> bool:
    """Tell whether both are what one op chose, or are chosen by one mask, which nobody has written in between."""
    if other is None or one.of != other.of:
        return False
    return (one.op > 0 and one.op == other.op) or (one.counted is not None and one.counted is other.counted)


def _described(values: Sequence[object]) -> tuple[_Argument, ...] | None:
    """Return what a proof depends on of ``values``, arrays or their layouts among them; None if it cannot be said."""
    found: list[_Argument] = []
    for value in values:
        one = value._layout if isinstance(value, ArrayCore) else value
        if _is_unknown(one):
            rows = _rows_in(one)
            if rows is None:
                return None
            found.append(_Unknown(rows.dtype, rows.rest))
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
