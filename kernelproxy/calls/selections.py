"""Calls on what a mask has selected: recorded without asking how much that is, where the answer does not matter.

Whatever goes element by element gives as many elements as it is given, and a sum is one number. What is proved of none,
of one and of several elements alike holds of any number of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from gpu_backend.opstream import proof
from gpu_backend.opstream.layout import Layout, contiguous
from gpu_backend.opstream.proof.outcome import Later
from gpu_backend.opstream.surface import Ufunc, load
from kernelproxy.calls.array_core import ArrayCore, LaterLayout, SelectedByMask

__all__ = ["prove", "selected_by"]

_COUNTS = (0, 1, 2)
#: Reductions of all elements that there may be none of.
_WHOLE = frozenset(f"{owner}.{name}" for owner in ("cupy", "cupy.ndarray") for name in ("sum", "prod", "any", "all"))
_NUMBERS = frozenset({bool, int, float, complex})


def prove(qualname: str, args: tuple[object, ...], kwargs: dict[str, object] | None = None) -> Layout | Later | None:
    """Return what is proved of a call on arrays of a length that nobody knows yet; None for all other calls."""
    places = [place for place, one in enumerate(args) if isinstance(one, ArrayCore) and _is_unknown(one)]
    if not places or kwargs or not _is_served(qualname, args, places):
        return None
    selected = [selected_by(args[place]) for place in places]
    first = selected[0]
    if first is None or first.rest or not all(_is_as_long(first, one) for one in selected[1:]):
        return None
    try:
        results = [proof.prove(qualname, _with_count(args, places, selected, count)) for count in _COUNTS]
    except Exception:  # what is wrong with it is told of arrays as they are
        return None
    return _common(results, args[places[0]], places[0], first)


def selected_by(array: object) -> SelectedByMask | None:
    """Return by what the elements of ``array``, whose length nobody knows yet, were selected; None if by no mask."""
    layout = array._layout if isinstance(array, ArrayCore) else None
    return layout.selected if type(layout) is LaterLayout else None


def _is_unknown(array: ArrayCore) -> bool:
    layout = array._layout
    return type(layout) is LaterLayout and not layout.is_known


def _is_served(qualname: str, args: tuple[object, ...], places: Sequence[int]) -> bool:
    if qualname in _WHOLE:
        return len(args) == 1
    others = [one for place, one in enumerate(args) if place not in places]
    return len(args) == _operands(qualname) and all(type(one) in _NUMBERS for one in others)


@cache
def _operands(qualname: str) -> int:
    described = load().get(qualname)
    return described.nin if isinstance(described, Ufunc) and described.nout == 1 else -1


def _is_as_long(one: SelectedByMask, other: SelectedByMask | None) -> bool:
    """Tell whether two selections are by one mask, which nobody has written in between."""
    return other is not None and one.mask == other.mask and one.counted is not None and one.counted is other.counted


def _with_count(
    args: tuple[object, ...], places: Sequence[int], selected: Sequence[SelectedByMask | None], count: int
) -> tuple[object, ...]:
    """Return ``args`` for a proof, where the selections have so many elements."""
    given = list(args)
    for place, one in zip(places, selected, strict=True):
        assert one is not None
        given[place] = contiguous((count,), one.dtype)
    return tuple(given)


def _common(results: Sequence[object], of: object, place: int, selected: SelectedByMask) -> Layout | Later | None:
    """Return what is proved for any count, where ``results`` are for `_COUNTS`; None if the count matters."""
    if not all(type(one) is Layout for one in results):
        return None
    first = results[0]
    assert isinstance(first, Layout)
    if all(one is first for one in results):
        return first
    if any(one is not contiguous((count,), first.dtype) for one, count in zip(results, _COUNTS, strict=True)):
        return None
    assert isinstance(of, ArrayCore)
    assert isinstance(of._layout, LaterLayout)
    most = of._layout.most_bytes // selected.dtype.itemsize
    return Later(None, most * first.itemsize, place, first.dtype)
