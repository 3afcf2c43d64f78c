"""Decorators that call a test with CuPy and with NumPy as ``xp``, and compare what it returns."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelproxy.namespace.host_functions import asnumpy
from kernelproxy.testing import assertions
from kernelproxy.testing.both_sides import Both, Check, Names
from kernelproxy.testing.loops import FLOATS, SIGNED, UNSIGNED
from kernelproxy.testing.signatures import Decorator, Test, wraps_without


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """What is compared of the arrays that a test returns on both sides."""

    names: Names
    check: Check
    accept: Any
    dtypes: bool
    layouts: bool = False
    sparse_formats: bool = True

    def __call__(self, test: Test) -> Test:
        """Return what runs ``test`` on both sides."""

        @wraps_without(test, *self.names.given())
        def runner(*args: Any, **kw: Any) -> None:
            both = Both.of(self.names, test, args, kw)
            if both.raised:
                both.check_errors(self.accept)
                return
            found = _several(both.cupy.value), _several(both.numpy.value)
            if len(found[0]) != len(found[1]):
                raise _differ("different numbers of results", len(found[0]), len(found[1]))
            pairs = [self._arrays(*pair) for pair in zip(*found, strict=True)]
            for pair in pairs:
                self._check_dtypes(*pair)
            for returned in zip(*found, strict=True):
                self._check_layouts(*returned)
            for cupy, numpy in pairs:
                if cupy.shape != numpy.shape:
                    raise _differ("ndarrays of different shapes", cupy.shape, numpy.shape)
            for pair, mask in zip(pairs, self._masks(test, args, kw, pairs), strict=True):
                self._check_values(*pair, mask)

        return runner

    def _arrays(self, cupy: Any, numpy: Any) -> tuple[Any, Any]:
        remote = importlib.import_module("cupy")
        if self.names.sp is not None and importlib.import_module("cupyx.scipy.sparse").issparse(cupy):
            return self._dense(cupy, numpy)
        if isinstance(cupy, remote.ndarray) and isinstance(numpy, (np.ndarray, np.generic)):
            return cupy, numpy
        if isinstance(cupy, remote.poly1d) and isinstance(numpy, np.poly1d):
            if cupy.variable != numpy.variable:
                raise _differ("polynomials of different variables", cupy.variable, numpy.variable)
            return cupy.coeffs, numpy.coeffs
        if isinstance(cupy, np.generic) and isinstance(numpy, np.generic):
            return cupy, numpy
        if np.isscalar(cupy) and np.isscalar(numpy):
            return remote.array(cupy), np.array(numpy)
        raise AssertionError(
            f"numpy and cupy returns different type of return value:\ncupy: {type(cupy)}\nnumpy: {type(numpy)}"
        )

    def _dense(self, cupy: Any, numpy: Any) -> tuple[Any, Any]:
        if not importlib.import_module("scipy.sparse").issparse(numpy):
            raise _differ("a sparse matrix and something else", type(cupy), type(numpy))
        if self.sparse_formats and cupy.format != numpy.format:
            raise _differ("sparse matrices of different formats", cupy.format, numpy.format)
        return cupy.toarray(), numpy.toarray()

    def _check_dtypes(self, cupy: Any, numpy: Any) -> None:
        if self.dtypes and cupy.dtype != numpy.dtype:
            raise _differ("ndarrays of different dtypes", cupy.dtype, numpy.dtype)

    def _check_layouts(self, cupy: Any, numpy: Any) -> None:
        if not self.layouts or not isinstance(numpy, np.ndarray):
            return
        for flag in ("c_contiguous", "f_contiguous"):
            here, there = getattr(cupy.flags, flag), getattr(numpy.flags, flag)
            if there and not here:
                raise AssertionError(f"The state of {flag} flag is false. (cupy_result:{here} numpy_result:{there})")

    def _masks(self, test: Test, args: tuple[Any, ...], kw: dict[str, Any], pairs: list[Any]) -> list[Any]:
        """Return, for each result, which of its elements are defined; None for all.

        Where signed and unsigned dtypes meet, a negative number may have been cast to an unsigned one, and processors
        differ in what comes of it. The signs are found out by another call with signed dtypes throughout.
        """
        dtypes = {name: value for name, value in kw.items() if isinstance(value, type)}
        signed = {name: np.dtype(np.dtype(kind).char.lower()).type for name, kind in dtypes.items() if kind in UNSIGNED}
        doubtful = [cupy.dtype.type in UNSIGNED for cupy, _ in pairs]
        if not _contains_signed_and_unsigned(kw) or not any(doubtful):
            return [None] * len(pairs)
        outcome = self.names.call("cupy", test, args, {**kw, **signed})
        if outcome.error is not None:
            raise outcome.error
        results = _several(outcome.value)
        return [asnumpy(one) >= 0 if masked else None for one, masked in zip(results, doubtful, strict=True)]

    def _check_values(self, cupy: Any, numpy: Any, mask: Any) -> None:
        if mask is None:
            self.check(cupy, numpy)
        elif cupy.shape != ():
            self.check(asnumpy(cupy)[mask], numpy[mask])
        elif mask.all():
            self.check(cupy, numpy)


def _contains_signed_and_unsigned(kw: Mapping[str, Any]) -> bool:
    dtypes = [value for value in kw.values() if isinstance(value, type)]
    return any(kind in UNSIGNED for kind in dtypes) and any(kind in FLOATS + SIGNED for kind in dtypes)


def _several(value: Any) -> tuple[Any, ...]:
    if value is None:
        raise AssertionError("The test returned None: it must return what is to be compared.")
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _differ(what: str, cupy: Any, numpy: Any) -> AssertionError:
    return AssertionError(f"{what} are returned.\ncupy: {cupy}\nnumpy: {numpy}")


# --- the decorators --------------------------------------------------------------------------------------------------


def numpy_cupy_allclose(
    rtol: Any = 1e-7, atol: Any = 0, err_msg: str = "", verbose: bool = True, name: str = "xp", type_check: bool = True,
    accept_error: Any = False, sp_name: str | None = None, scipy_name: str | None = None, contiguous_check: bool = True,
    *, _check_sparse_format: bool = True,
) -> Decorator:  # fmt: skip
    """Compare within tolerances.

    Parameters
    ----------
    rtol, atol : float or dict
        A dict has types, such as ``cupy.float32``, as keys, and "default" for all others; with ``type_check`` only.
    name, sp_name, scipy_name : str
        The arguments by which the test takes ``cupy`` or ``numpy``, the module of sparse matrices, and SciPy.
    type_check : bool
        Whether the dtypes must be equal.
    accept_error : bool or class or tuple of classes
        Errors that both sides may raise instead of returning something.
    contiguous_check : bool
        Whether results must be contiguous where NumPy's are.

    Raises
    ------
    TypeError
        If the tolerances are dicts of something else.
    """
    for given in (rtol, atol):
        _check_tolerance(given, type_check)

    def check(cupy: Any, numpy: Any) -> None:
        tolerances = _tolerance(rtol, cupy.dtype), _tolerance(atol, cupy.dtype)
        assertions.assert_allclose(cupy, numpy, *tolerances, err_msg=err_msg, verbose=verbose)

    return _Comparison(
        names=Names(name, sp_name, scipy_name), check=check, accept=accept_error, dtypes=type_check,
        layouts=contiguous_check, sparse_formats=_check_sparse_format,
    )  # fmt: skip


def _check_tolerance(given: Any, type_check: bool) -> None:
    if not isinstance(given, Mapping):
        return
    if not all(type(key) is type or key == "default" for key in given):
        raise TypeError(
            "Keys of the tolerance dictionary need to be type objects as `numpy.float32` and `cupy.float32` or "
            "`'default'` string."
        )
    if not type_check:
        raise TypeError("When `type_check` is `False`, `rtol` and `atol` must be supplied as float.")


def _tolerance(given: Any, dtype: np.dtype[Any]) -> Any:
    if not isinstance(given, Mapping):
        return given
    found = given.get(dtype.type, given.get("default"))
    if found is None:
        raise TypeError(f"Can not find tolerance for {dtype.type}")
    return found


def numpy_cupy_array_almost_equal(
    decimal: int = 6, err_msg: str = "", verbose: bool = True, name: str = "xp", type_check: bool = True,
    accept_error: Any = False, sp_name: str | None = None, scipy_name: str | None = None,
) -> Decorator:  # fmt: skip
    """Compare up to so many decimals."""

    def check(cupy: Any, numpy: Any) -> None:
        assertions.assert_array_almost_equal(cupy, numpy, decimal, err_msg, verbose)

    return _Comparison(names=Names(name, sp_name, scipy_name), check=check, accept=accept_error, dtypes=type_check)


def numpy_cupy_array_almost_equal_nulp(
    nulp: int = 1, name: str = "xp", type_check: bool = True, accept_error: Any = False, sp_name: str | None = None,
    scipy_name: str | None = None,
) -> Decorator:  # fmt: skip
    """Compare up to so many spacings."""

    def check(cupy: Any, numpy: Any) -> None:
        assertions.assert_array_almost_equal_nulp(cupy, numpy, nulp)

    return _Comparison(names=Names(name, sp_name, scipy_name), check=check, accept=accept_error, dtypes=type_check)


def numpy_cupy_array_max_ulp(
    maxulp: int = 1, dtype: Any = None, name: str = "xp", type_check: bool = True, accept_error: Any = False,
    sp_name: str | None = None, scipy_name: str | None = None,
) -> Decorator:  # fmt: skip
    """Compare up to so many units in the last place."""

    def check(cupy: Any, numpy: Any) -> None:
        assertions.assert_array_max_ulp(cupy, numpy, maxulp, dtype)

    return _Comparison(names=Names(name, sp_name, scipy_name), check=check, accept=accept_error, dtypes=type_check)


def numpy_cupy_array_equal(
    err_msg: str = "", verbose: bool = True, name: str = "xp", type_check: bool = True, accept_error: Any = False,
    sp_name: str | None = None, scipy_name: str | None = None, strides_check: bool = False,
) -> Decorator:  # fmt: skip
    """Compare for equality, with ``strides_check`` of the strides too."""

    def check(cupy: Any, numpy: Any) -> None:
        assertions.assert_array_equal(cupy, numpy, err_msg, verbose, strides_check=strides_check)

    return _Comparison(names=Names(name, sp_name, scipy_name), check=check, accept=accept_error, dtypes=type_check)


def numpy_cupy_array_list_equal(
    err_msg: str = "", verbose: bool = True, name: str = "xp", sp_name: str | None = None, scipy_name: str | None = None
) -> Decorator:
    """Compare lists of arrays for equality, whatever their dtypes. Deprecated in CuPy."""
    warnings.warn(
        "numpy_cupy_array_list_equal is deprecated. Use numpy_cupy_array_equal instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return numpy_cupy_array_equal(err_msg, verbose, name, False, False, sp_name, scipy_name)


def numpy_cupy_array_less(
    err_msg: str = "", verbose: bool = True, name: str = "xp", type_check: bool = True, accept_error: Any = False,
    sp_name: str | None = None, scipy_name: str | None = None,
) -> Decorator:  # fmt: skip
    """Demand that every element of CuPy's be smaller than NumPy's."""

    def check(cupy: Any, numpy: Any) -> None:
        assertions.assert_array_less(cupy, numpy, err_msg, verbose)

    return _Comparison(names=Names(name, sp_name, scipy_name), check=check, accept=accept_error, dtypes=type_check)


def numpy_cupy_equal(name: str = "xp", sp_name: str | None = None, scipy_name: str | None = None) -> Decorator:
    """Compare objects that are not arrays with ``==``."""
    names = Names(name, sp_name, scipy_name)

    def decorator(test: Test) -> Test:
        @wraps_without(test, *names.given())
        def runner(*args: Any, **kw: Any) -> None:
            both = Both.of(names, test, args, kw)
            if both.raised:
                both.check_errors(False)
            elif both.cupy.value != both.numpy.value:
                raise AssertionError(f"Results are not equal:\ncupy: {both.cupy.value}\nnumpy: {both.numpy.value}")

        return runner

    return decorator


def numpy_cupy_raises(
    name: str = "xp", sp_name: str | None = None, scipy_name: str | None = None, accept_error: Any = Exception
) -> Decorator:
    """Demand that both raise an error of one kind. Deprecated in CuPy."""
    warnings.warn("cupy.testing.numpy_cupy_raises is deprecated.", DeprecationWarning, stacklevel=2)
    names = Names(name, sp_name, scipy_name)

    def decorator(test: Test) -> Test:
        @wraps_without(test, *names.given())
        def runner(*args: Any, **kw: Any) -> None:
            Both.of(names, test, args, kw).check_errors(accept_error)

        return runner

    return decorator
