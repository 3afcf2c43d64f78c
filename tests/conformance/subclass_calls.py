"""Calls with one array of a program's own class, and of which class the results are; on any CuPy."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tests.conformance.infer_calls import TEMPLATES, Array, Call, Made, calls
from tests.conformance.infer_judge import layout_of

#: Given to functions in every number up to three, beside numbers.
_ARRAYS = (
    Array((3, 3), "d"),
    Array((4,), "d"),
    Array((3, 3), "i"),
    Array((2, 2), "D"),
    Array((4,), "?"),
    Array((), "d"),
)


class Library(NamedTuple):
    """The CuPy that is asked."""

    resolve: Callable[[str], Any]
    ndarray: type[Any]
    #: Makes an array that lies as it is wanted.
    array: Callable[[Array], Any]


class Asked(NamedTuple):
    """A call, and which of the arrays in it is of a program's own class, counted from the left."""

    call: Call
    which: int


def asked(names: list[str], seed: int, count: int) -> Iterator[Asked]:
    """Yield ``count`` drawn calls of each template of ``names``, or what can be tried where there is no template."""
    for name in names:
        some = calls(seed, count, [name]) if name in TEMPLATES else list(_plain_calls(name))
        for call in some:
            yield from (Asked(call, which) for which in range(_arrays_in((call.args, tuple(call.kwargs.values())))))


def _plain_calls(name: str) -> Iterator[Call]:
    for array in _ARRAYS:
        for args in ((array,), (array, array), (array, array, array), (array, 1), (array, 0, 1), ([array, array],)):
            yield Call(name, args, {})


def _arrays_in(value: Any) -> int:
    if isinstance(value, Array):
        return 1
    is_list = isinstance(value, (list, tuple)) and not isinstance(value, Made)
    return sum(map(_arrays_in, value)) if is_list else 0


def told(library: Library, one: Asked) -> Any:
    """Return the class of each result, with what its ``__array_finalize__`` was told; "!" and the name of an error."""

    class Marked(library.ndarray):
        def __array_finalize__(self, obj: Any) -> None:
            self.mark = getattr(obj, "mark", None)

    def described(result: Any) -> Any:
        if isinstance(result, Marked):
            return f"own, {result.mark}"
        if isinstance(result, library.ndarray):
            return "plain"
        return [described(item) for item in result] if isinstance(result, (list, tuple)) else type(result).__name__

    arguments = _Arguments(library, Marked, one.which)
    with warnings.catch_warnings(), contextlib.redirect_stdout(None):
        warnings.simplefilter("ignore")
        try:
            function = library.resolve(one.call.qualname)
            args = arguments.made(one.call.args)
            kwargs = {name: arguments.made(value) for name, value in one.call.kwargs.items()}
            return described((function if callable(function) else function.__get__)(*args, **kwargs))
        except Exception as error:
            return f"!{type(error).__name__}"


class _Arguments:
    def __init__(self, library: Library, kind: type[Any], which: int) -> None:
        self._library, self._kind, self._left = library, kind, which

    def made(self, value: Any) -> Any:
        if isinstance(value, Array):
            array = self._library.array(value)
            if self._left == 0:
                array = array.view(self._kind)
                array.mark = "marked"
            self._left -= 1
            return array
        if isinstance(value, Made):
            return self._library.resolve(value.qualname)(*value.args)
        return type(value)(map(self.made, value)) if isinstance(value, (list, tuple)) else value


def host_memory(spec: Array) -> tuple[np.ndarray[Any, Any], Any, int]:
    """Return bytes for an array of the calls, how it lies in them, and where it starts."""
    layout, offset, size = layout_of(spec)
    if layout.dtype.kind in "fc":
        return np.arange(1, size // layout.itemsize + 2, dtype=layout.dtype).view(np.uint8), layout, offset
    return (np.arange(size) % (2 if layout.dtype.kind == "b" else 4)).astype(np.uint8), layout, offset
