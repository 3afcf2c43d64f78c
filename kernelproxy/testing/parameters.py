"""Classes of tests for several sets of attributes."""

from __future__ import annotations

import itertools
import sys
import types
import unittest
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from kernelproxy.testing import pytest_part

Parameters = Mapping[str, Any]
_LONGEST_VALUE = 100
_LONGEST_NAME = 5000


def product(parameter: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Return all choices of one value for each key."""
    names = sorted(parameter)
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(parameter[name] for name in names))]


def product_dict(*parameters: Iterable[Parameters]) -> list[dict[str, Any]]:
    """Return the unions of one dict of each list, for all choices."""
    return [{key: value for one in chosen for key, value in one.items()} for chosen in itertools.product(*parameters)]


def parameterize(*params: Parameters, **kwargs: Any) -> Callable[[type], Any]:
    """Run the tests of a class once for each of ``params``, the attributes of its instances.

    A `unittest.TestCase` is replaced by a class for each of them; of another class pytest makes the tests.

    Raises
    ------
    RuntimeError
        If pytest is needed and not installed, or a class is decorated twice.
    """

    def decorator(decorated: type) -> Any:
        if issubclass(decorated, unittest.TestCase):
            if kwargs:
                raise TypeError(f"A unittest.TestCase takes no options: {', '.join(kwargs)}")
            return _parameterized_case(decorated, params)
        return _parameterized_class(decorated, params, **kwargs)

    return decorator


def _parameterized_case(base: type, params: Iterable[Parameters]) -> None:
    module = sys.modules[base.__module__]
    for place, given in enumerate(params):
        name = _name(base.__name__, place, given)
        setattr(module, name, type(name, (base,), {**_attributes(base, given), "__module__": base.__module__}))


def _attributes(base: Any, given: Parameters) -> dict[str, Any]:
    def representation(self: Any) -> str:
        return f"<{base.__repr__(self)}  parameter: {given}>"

    # a function among the values is called as it is, without the instance
    values = {name: staticmethod(v) if isinstance(v, types.FunctionType) else v for name, v in given.items()}
    return {"__repr__": representation, **values}


def _parameterized_class(base: type, params: Iterable[Parameters], _ids: bool = True) -> Any:
    pytest = pytest_part.needed("parameterize")
    mixin = _mixin()
    if issubclass(base, mixin):
        raise RuntimeError("do not `@testing.parameterize` twice")
    cases = [pytest.param(given, id=_name("", i, given) if _ids else str(i)) for i, given in enumerate(params)]
    made = type(base.__name__, (mixin, base), {"__module__": base.__module__, "__doc__": base.__doc__})
    return pytest.mark.parametrize("_cupy_testing_param", cases)(made)


@cache
def _mixin() -> type:
    pytest = pytest_part.needed("parameterize")

    class Parameterized:
        def __repr__(self) -> str:
            return f"<{super().__repr__()}  parameter: {self.__dict__}>"

        @pytest.fixture(autouse=True)  # type: ignore[untyped-decorator]
        def _cupy_testing_parameterize(self, _cupy_testing_param: Parameters) -> None:
            if self.__dict__:
                raise RuntimeError(f"Parameters would replace attributes that are there already: {self.__dict__}")
            self.__dict__.update(_cupy_testing_param)

    return Parameterized


def _name(base: str, place: int, given: Parameters) -> str:
    values = (f"{name}={_shortened(_text(value), _LONGEST_VALUE)}" for name, value in sorted(given.items()))
    return f"{base}_param_{place}_{{{_shortened(', '.join(values), _LONGEST_NAME)}}}"


def _text(value: Any) -> str:
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else repr(value)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    kept = longest - 3
    return f"{text[: kept // 2]}...{text[-(kept - kept // 2) :]}"
