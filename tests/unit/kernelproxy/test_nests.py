"""Nests that may hold remote arrays: found wherever they are, and nests of numbers are not gone through in Python."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.dispatch import stands_for
from kernelproxy.namespace import creation
from kernelproxy.namespace.creation import is_remote
from kernelproxy.namespace.names import make
from tests.unit.kernelproxy.conftest import played_client


class _Items(list[Any]):
    """A user's list, which goes through its items in its own way."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self[::-1])


class _Pair(NamedTuple):
    first: Any
    second: Any


class _Wrapper:
    """Stands for a remote array."""

    def __cupy_get_ndarray__(self) -> Any:
        return make("cupy.zeros")(2)


class _Refusing:
    """Says that nobody can have its array."""

    def __cupy_get_ndarray__(self) -> Any:
        raise TypeError("not this one")


_HOST = st.sampled_from(
    [1.5, 2, True, None, "a", 1j, np.float32(2), np.int8(1), np.zeros(2), np.zeros(()), np.ma.zeros(2), Decimal(1),
     range(3), (x for x in "ab"), np.void(b"a")]
)  # fmt: skip
_REMOTE = st.sampled_from([lambda: make("cupy.zeros")(2), lambda: make("cupy.ones")(()), _Wrapper, _Refusing])


def _nest(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(items, max_size=4)
    return several | several.map(tuple) | several.map(_Items) | st.tuples(items, items).map(lambda pair: _Pair(*pair))


def _is_remote_one_by_one(obj: object) -> bool:
    if isinstance(obj, (list, tuple)):
        return any(map(_is_remote_one_by_one, obj))
    return isinstance(obj, ArrayCore) or isinstance(stands_for(obj), ArrayCore)


def _told(of: Any, obj: object) -> object:
    try:
        return of(obj)
    except TypeError as error:
        return str(error)


@given(st.recursive(_HOST | _HOST | _REMOTE, _nest, max_leaves=12))
def test_a_remote_array_is_found_wherever_it_is(described: Any) -> None:
    def made(one: Any) -> Any:
        if isinstance(one, _Pair):
            return _Pair(*map(made, one))
        if isinstance(one, (list, tuple)):
            return type(one)([made(item) for item in one])
        return one() if callable(one) else one

    with played_client():
        nest = made(described)
        assert _told(is_remote, nest) == _told(_is_remote_one_by_one, nest)


@pytest.mark.parametrize(
    "nest",
    [[1.5] * 1_000, tuple(range(50)), [np.float32(1)] * 9, [[1, 2.5]] * 300, [(1,), [2], []], np.zeros(3), 2.0, []],
    ids=str,
)
def test_numbers_are_not_asked_one_by_one(nest: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation, "is_remote", None)
    monkeypatch.setattr(creation, "stands_for", None)
    assert not is_remote(nest)


@pytest.mark.parametrize("times", [1, 2])
def test_a_list_that_holds_itself_is_refused(times: int) -> None:
    nest: list[Any] = []
    nest += [nest] * times
    with pytest.raises(RecursionError):
        is_remote(nest)
