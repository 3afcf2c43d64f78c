"""``cupy.testing``: the assertions and the arrays that a user's own tests are made of."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernelproxy.namespace.host_functions import asnumpy


def assert_allclose(
    actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0, err_msg: str = "", verbose: bool = True
) -> None:
    """Raise AssertionError unless the arrays, remote or not, are equal within the tolerances."""
    np.testing.assert_allclose(_host(actual), _host(desired), rtol=rtol, atol=atol, err_msg=err_msg, verbose=verbose)


def assert_array_almost_equal(x: Any, y: Any, decimal: int = 6, err_msg: str = "", verbose: bool = True) -> None:
    """Raise AssertionError unless the arrays are equal up to so many decimals."""
    np.testing.assert_array_almost_equal(_host(x), _host(y), decimal=decimal, err_msg=err_msg, verbose=verbose)


def assert_array_almost_equal_nulp(x: Any, y: Any, nulp: int = 1) -> None:
    """Raise AssertionError unless the arrays are equal up to so many spacings."""
    np.testing.assert_array_almost_equal_nulp(_host(x), _host(y), nulp=nulp)


def assert_array_max_ulp(a: Any, b: Any, maxulp: int = 1, dtype: Any = None) -> None:
    """Raise AssertionError unless the arrays are equal up to so many units in the last place."""
    np.testing.assert_array_max_ulp(_host(a), _host(b), maxulp=maxulp, dtype=dtype)


def assert_array_equal(
    x: Any, y: Any, err_msg: str = "", verbose: bool = True, strides_check: bool = False, *, strict: bool = False,
    **kwargs: Any,
) -> None:  # fmt: skip
    """Raise AssertionError unless the arrays are equal; with ``strides_check`` they must lie alike too."""
    np.testing.assert_array_equal(_host(x), _host(y), err_msg=err_msg, verbose=verbose, strict=strict)
    if strides_check and x.strides != y.strides:
        raise AssertionError(f"strides are not equal: {err_msg}\n x: {x.strides}\n y: {y.strides}")


def assert_array_list_equal(xlist: Any, ylist: Any, err_msg: str = "", verbose: bool = True) -> None:
    """Raise AssertionError unless the lists hold equal arrays, in order."""
    kinds = type(xlist), type(ylist)
    if kinds[0] not in (list, tuple) or kinds[1] not in (list, tuple):
        raise AssertionError(f"list or tuple expected, got {kinds[0]} and {kinds[1]}: {err_msg}")
    if len(xlist) != len(ylist):
        raise AssertionError(f"List size is different: {len(xlist)} and {len(ylist)}")
    for x, y in zip(xlist, ylist, strict=True):
        assert_array_equal(x, y, err_msg, verbose)


def assert_array_less(x: Any, y: Any, err_msg: str = "", verbose: bool = True) -> None:
    """Raise AssertionError unless every element of ``x`` is smaller than that of ``y``."""
    np.testing.assert_array_less(_host(x), _host(y), err_msg=err_msg, verbose=verbose)


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


# --- arrays ----------------------------------------------------------------------------------------------------------


def _xp(xp: Any) -> Any:
    # By name: what is imported here is the remote CuPy, never the library.
    return importlib.import_module("cupy") if xp is None else xp


def _counted(shape: Iterable[int], dtype: Any, first: int, step: int) -> np.ndarray[Any, Any]:
    size = int(np.prod(tuple(shape)))
    numbers = np.arange(first, first + step * size, step, dtype=np.int64)
    kind = np.dtype(dtype).kind
    if kind == "c":
        return numbers + numbers * 1j
    return numbers % 2 == 0 if kind == "b" else numbers


def shaped_arange(shape: Any, xp: Any = None, dtype: Any = np.float32, order: str = "C") -> Any:
    """Return 1, 2, 3, ... in ``shape``; alternating for bool, with an equal imaginary part for complex."""
    made = _counted(shape, dtype, 1, 1).astype(dtype).reshape(shape)
    return _xp(xp).array(made, dtype=dtype, order=order)


def shaped_reverse_arange(shape: Any, xp: Any = None, dtype: Any = np.float32) -> Any:
    """Return ..., 3, 2, 1 in ``shape``; alternating for bool, with an equal imaginary part for complex."""
    made = _counted(shape, dtype, int(np.prod(tuple(shape))), -1).astype(dtype).reshape(shape)
    return _xp(xp).array(made, dtype=dtype)


def shaped_random(
    shape: Any, xp: Any = None, dtype: Any = np.float32, scale: float = 10, seed: int = 0, order: str = "C"
) -> Any:
    """Return random numbers in [0, scale), the same for the same seed; complex ones in both parts."""
    state = np.random.RandomState(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        made = state.randint(2, size=shape).astype(bool)
    elif kind == "c":
        made = state.rand(*shape) + 1j * state.rand(*shape)
    else:
        made = state.rand(*shape)
    return _xp(xp).array(made * scale if kind != "b" else made, dtype=dtype, order=order)


def shaped_linspace(start: Any, stop: Any, shape: Any, xp: Any = None, dtype: Any = np.float32) -> Any:
    """Return evenly spaced numbers in ``shape``."""
    made = np.linspace(start, stop, int(np.prod(tuple(shape)))).astype(dtype).reshape(shape)
    return _xp(xp).array(made, dtype=dtype)
