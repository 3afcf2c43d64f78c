"""Assertions on arrays, remote or not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernelproxy.namespace.host_functions import asnumpy


def assert_allclose(
    actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0, equal_nan: bool = True, err_msg: str = "",
    verbose: bool = True, *, strict: bool = False,
) -> None:  # fmt: skip
    """Raise AssertionError unless the arrays are equal within the tolerances."""
    np.testing.assert_allclose(
        _host(actual), _host(desired), rtol, atol, equal_nan=equal_nan, err_msg=err_msg, verbose=verbose, strict=strict
    )


def assert_array_almost_equal(
    actual: Any, desired: Any, decimal: int = 6, err_msg: str = "", verbose: bool = True
) -> None:
    """Raise AssertionError unless the arrays are equal up to so many decimals."""
    np.testing.assert_array_almost_equal(
        _host(actual), _host(desired), decimal=decimal, err_msg=err_msg, verbose=verbose
    )


def assert_array_almost_equal_nulp(x: Any, y: Any, nulp: int = 1) -> None:
    """Raise AssertionError unless the arrays are equal up to so many spacings."""
    np.testing.assert_array_almost_equal_nulp(_host(x), _host(y), nulp=nulp)


def assert_array_max_ulp(a: Any, b: Any, maxulp: int = 1, dtype: Any = None) -> None:
    """Raise AssertionError unless the arrays are equal up to so many units in the last place."""
    np.testing.assert_array_max_ulp(_host(a), _host(b), maxulp=maxulp, dtype=dtype)


def assert_array_equal(
    actual: Any, desired: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False,
    strides_check: bool = False,
) -> None:  # fmt: skip
    """Raise AssertionError unless the arrays are equal; with ``strides_check`` they must lie alike too."""
    np.testing.assert_array_equal(_host(actual), _host(desired), err_msg=err_msg, verbose=verbose, strict=strict)
    if strides_check and actual.strides != desired.strides:
        values = [f" x: {actual.strides}", f" y: {desired.strides}"] if verbose else []
        raise AssertionError("\n".join([f"Strides are not equal: {err_msg}".rstrip(), *values]))


def assert_array_list_equal(xlist: Any, ylist: Any, err_msg: str = "", verbose: bool = True) -> None:
    """Raise AssertionError unless both are lists, or both tuples, of equal arrays in order."""
    kinds = type(xlist), type(ylist)
    if kinds[0] is not kinds[1]:
        raise AssertionError(
            "Matching types of list or tuple are expected, but were different types "
            f"(xlist:{kinds[0]} ylist:{kinds[1]})"
        )
    if kinds[0] not in (list, tuple):
        raise AssertionError(f"List or tuple is expected, but was {kinds[0]}")
    if len(xlist) != len(ylist):
        raise AssertionError(f"List size is different: {len(xlist)} and {len(ylist)}")
    for x, y in zip(xlist, ylist, strict=True):
        assert_array_equal(x, y, err_msg, verbose)


def assert_array_less(x: Any, y: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False) -> None:
    """Raise AssertionError unless every element of ``x`` is smaller than that of ``y``."""
    np.testing.assert_array_less(_host(x), _host(y), err_msg=err_msg, verbose=verbose, strict=strict)


@contextmanager
def assert_warns(expected: Any) -> Iterator[None]:
    """Raise AssertionError unless the block warns of ``expected``, a class or a tuple of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    if not any(isinstance(warning.message, expected) for warning in caught):
        raise AssertionError(f"{getattr(expected, '__name__', expected)} not triggerred")  # CuPy's own spelling


def _host(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_host, value))
    return value.get() if hasattr(value, "get") else asnumpy(value)
