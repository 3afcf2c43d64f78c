"""Polynomials as CuPy has them: ``poly1d``, ``polyfit`` and their kin, highest power first."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpu_backend.devices.cpu.arrays import Array, is_scalar
from gpu_backend.devices.cpu.call import guarded_methods
from gpu_backend.devices.cpu.naming import public_class
from gpu_backend.devices.cpu.power_series import as_series, polycompanion, polyvander
from gpu_backend.devices.cpu.table import define


@public_class("cupy.poly1d", module="cupy.lib._polynomial")
@guarded_methods
class poly1d:
    """A polynomial in one variable.

    Parameters
    ----------
    c_or_r
        Coefficients, highest power first, or with ``r`` the roots.
    variable
        What it is printed with.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, c_or_r: object, r: bool = False, variable: str | None = None) -> None:
        if isinstance(c_or_r, (poly1d, np.poly1d)):
            self._coeffs, self._trimmed = np.asarray(c_or_r.coeffs), True
            self._variable: str = c_or_r.variable if variable is None else variable
            return
        coefficients = np.atleast_1d(poly(np.asarray(c_or_r)) if r else np.asarray(c_or_r))
        if coefficients.ndim > 1:
            raise ValueError("Polynomial must be 1d only.")
        self._coeffs, self._trimmed = coefficients, False
        self._variable = variable or "x"

    @property
    def coeffs(self) -> Array:
        """Coefficients without leading zeros, highest power first."""
        if not self._trimmed:
            trimmed = np.trim_zeros(self._coeffs, "f")
            self._coeffs = trimmed if trimmed.size else np.zeros(1, self._coeffs.dtype)
            self._trimmed = True
        return self._coeffs

    @coeffs.setter
    def coeffs(self, value: Array) -> None:
        if value is not self._coeffs:
            raise AttributeError("Cannot set attribute")

    c = coef = coefficients = coeffs

    @property
    def variable(self) -> str:
        """What it is printed with."""
        return self._variable

    @property
    def order(self) -> int:
        """The degree."""
        return int(self.coeffs.size) - 1

    o = order

    @property
    def roots(self) -> Array:
        """The roots."""
        return roots(self._coeffs)

    r = roots

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __len__(self) -> int:
        return self.order

    def __call__(self, val: object) -> Any:
        return polyval(self.coeffs, val)

    def __neg__(self) -> poly1d:
        return poly1d(-self.coeffs)

    def __pos__(self) -> poly1d:
        return self

    def __mul__(self, other: object) -> Any:
        if is_scalar(other):
            return poly1d(self.coeffs * other)
        return polymul(self, other)

    def __rmul__(self, other: object) -> Any:
        if isinstance(other, np.generic):
            raise TypeError("Numpy scalar and poly1d multiplication is not supported currently.")
        return polymul(self._coeffs.dtype.type(other) if is_scalar(other) else other, self)

    def __add__(self, other: object) -> Any:
        return polyadd(self, other)

    def __radd__(self, other: object) -> Any:
        _refuse_numpy_scalar(other, "addition")
        return polyadd(other, self)

    def __sub__(self, other: object) -> Any:
        return polysub(self, other)

    def __rsub__(self, other: object) -> Any:
        _refuse_numpy_scalar(other, "subtraction")
        return polysub(other, self)

    def __truediv__(self, other: object) -> poly1d:
        if is_scalar(other):
            return poly1d(self.coeffs / other)
        raise NotImplementedError

    def __rtruediv__(self, other: object) -> Any:
        raise NotImplementedError

    def __pow__(self, val: Any, modulo: Any = None) -> poly1d:
        if not is_scalar(val) or int(val) != val or val < 0:
            raise ValueError("Power to non-negative integers only.")
        if not isinstance(val, (int, np.integer)):
            raise TypeError("float object cannot be interpreted as an integer")
        base = self.coeffs
        if base.dtype.kind == "c":
            base = base.astype(np.complex128)
        elif base.dtype.kind == "f" or base.dtype == np.uint64:
            base = base.astype(np.float64)
        else:
            base = base.astype(np.promote_types(base.dtype, int))
        result: Any = 1
        for _ in range(int(val)):
            result = base if isinstance(result, int) else np.convolve(result, base)
        return poly1d(result)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, poly1d):
            raise NotImplementedError
        return self.coeffs.shape == other.coeffs.shape and bool((self.coeffs == other.coeffs).all())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __getitem__(self, val: int) -> Any:
        return self._coeffs[-val - 1, ...] if 0 <= val < self._coeffs.size else 0

    def __setitem__(self, key: int, val: object) -> None:
        if key < 0:
            raise ValueError("Negative powers are not supported.")
        if key >= self._coeffs.size:
            self._coeffs = np.pad(self._coeffs, (key - (self._coeffs.size - 1), 0))
        self._coeffs[-key - 1] = val

    def __iter__(self) -> Iterator[Array]:
        return iter([self.coeffs[place, ...] for place in range(self.coeffs.size)])

    def get(self, stream: object = None) -> np.poly1d:
        """Return a host copy."""
        return np.poly1d(self.coeffs.copy(), variable=self.variable)

    def set(self, polyin: np.poly1d, stream: object = None) -> None:
        """Take over a host polynomial of the same degree."""
        if not isinstance(polyin, np.poly1d):
            raise TypeError("Only numpy.poly1d can be set to cupy.poly1d")
        self._variable = polyin.variable
        if self.coeffs.shape != polyin.coeffs.shape or self.coeffs.dtype != polyin.coeffs.dtype:
            raise ValueError("the polynomials differ in degree or dtype")
        self.coeffs[...] = polyin.coeffs

    def integ(self, m: int = 1, k: object = 0) -> poly1d:
        """Refuse, as CuPy does."""
        raise NotImplementedError

    def deriv(self, m: int = 1) -> poly1d:
        """Refuse, as CuPy does."""
        raise NotImplementedError


def _refuse_numpy_scalar(other: object, what: str) -> None:
    if isinstance(other, np.generic):
        raise TypeError(f"Numpy scalar and poly1d {what} is not supported")


def _coefficients(x: ArrayLike) -> Array:
    if isinstance(x, poly1d):
        return x._coeffs
    if is_scalar(x):
        return np.atleast_1d(x)
    if isinstance(x, np.ndarray):
        x = np.atleast_1d(x)
        if x.ndim == 1:
            return x
        raise ValueError("Multidimensional inputs are not supported")
    raise TypeError("Unsupported type")


def _of_polynomials(function: Callable[[Array, Array], Array]) -> Callable[[Any, Any], Any]:
    """Return ``function`` of coefficients as one that takes polynomials too, and gives one if it took one."""

    @functools.wraps(function)
    def routine(a1: Any, a2: Any) -> Any:
        result = function(_coefficients(a1), _coefficients(a2))
        return poly1d(result) if isinstance(a1, poly1d) or isinstance(a2, poly1d) else result

    return routine


@define("cupy.polyadd")
@_of_polynomials
def polyadd(a1: Array, a2: Array) -> Array:
    size, dtype = max(a1.size, a2.size), np.result_type(a1, a2)
    made: Array = np.pad(a1, (size - a1.size, 0)).astype(dtype) + np.pad(a2, (size - a2.size, 0))
    return made


@define("cupy.polysub")
@_of_polynomials
def polysub(a1: Array, a2: Array) -> Array:
    if a1.dtype.kind == a2.dtype.kind == "b":
        raise TypeError("cupy boolean subtract, the `-` operator, is deprecated")
    size, dtype = max(a1.size, a2.size), np.result_type(a1, a2)
    made: Array = np.pad(a1, (size - a1.size, 0)).astype(dtype) - np.pad(a2, (size - a2.size, 0))
    return made


@define("cupy.polymul")
@_of_polynomials
def polymul(a1: Array, a2: Array) -> Array:
    first, second = np.trim_zeros(a1, "f"), np.trim_zeros(a2, "f")
    first = first if first.size else np.zeros(1, a1.dtype)
    second = second if second.size else np.zeros(1, a2.dtype)
    return np.convolve(first, second)


@define("cupy.poly")
def poly(seq_of_zeros: Array) -> Any:
    x = seq_of_zeros
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.shape[0]:
        if not np.array_equal(x, x.conj().T):
            raise NotImplementedError("Only complex Hermitian and real symmetric 2d arrays are supported currently")
        x = np.linalg.eigvalsh(x.astype(np.float32) if x.dtype.char == "e" else x)
    elif x.ndim == 1:
        x = x.astype(np.mintypecode(x.dtype.char))
    else:
        raise ValueError("Input must be 1d or non-empty square 2d array.")
    if not x.size:
        return 1.0
    result = np.ones(1, x.dtype)
    for root in x:
        result = np.convolve(result, np.array([1, -root], x.dtype))
    return result


@define("cupy.polyval")
def polyval(p: object, x: object) -> Any:
    p = p.coeffs if isinstance(p, poly1d) else p
    if not isinstance(p, np.ndarray) or p.ndim == 0:
        raise TypeError("p must be 1d ndarray or poly1d object")
    if p.ndim > 1:
        raise ValueError("p must be 1d array")
    if isinstance(x, poly1d):
        dtype = np.result_type(x.coeffs, 1)
        value, power = poly1d(np.zeros(1, dtype)), poly1d(np.ones(1, dtype))
        for coefficient in p[::-1]:
            value, power = value + power * coefficient, power * x
        return value
    x = np.asarray(x)
    dtype = np.result_type(p.dtype.type(0), x)
    if not p.size:
        return np.zeros(x.shape, dtype)
    if dtype == np.bool_:
        return p.any() * x + p[-1]
    powers = x.astype(dtype)[..., None] ** np.arange(p.size, dtype=dtype)
    return (p.astype(dtype)[::-1] * powers).sum(axis=-1, dtype=dtype)


@define("cupy.roots")
def roots(p: Any) -> Array:
    p = p.coeffs if isinstance(p, poly1d) else p
    if p.dtype.kind == "b":
        raise NotImplementedError("boolean inputs are not supported")
    if p.ndim == 0:
        raise TypeError("0-dimensional input is not allowed")
    if p.size < 2:
        return np.array([])
    (p,) = as_series([p[::-1]])
    if p.size < 2:
        return np.array([])
    if p.size == 2:
        single = np.asarray(-p[0] / p[1])[None]
        return single.real.astype(np.float64) if p[0] == 0 else single
    companion = polycompanion(p)
    if not np.array_equal(companion, companion.conj().T):
        raise NotImplementedError("Only complex Hermitian and real symmetric 2d arrays are supported currently")
    return np.linalg.eigvalsh(companion).astype(p.dtype)


def _double(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _check_fit(x: Array, y: Array, w: Array | None) -> None:
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not x.size:
        raise TypeError("expected non-empty vector for x")
    if not 1 <= y.ndim <= 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.size != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if w is not None and w.ndim != 1:
        raise TypeError("expected a 1-d array for weights")
    if w is not None and w.size != x.size:
        raise TypeError("expected w and y to have the same length")


@define("cupy.polyfit")
def polyfit(
    x: Array, y: Array, deg: int, rcond: Any = None, full: bool = False, w: Array | None = None, cov: object = False
) -> Any:
    if x.dtype.char == "e" and y.dtype.kind == "b":
        raise NotImplementedError("float16 x and bool y are not currently supported")
    if y.dtype == np.float16:
        raise TypeError("float16 y are not supported")
    x, y, deg = _double(x), _double(y), int(deg)
    if deg < 0:
        raise ValueError("expected deg >= 0")
    _check_fit(x, y, w)
    left, right = polyvander(x, deg)[:, ::-1], y
    if w is not None:
        w = _double(w)
        if w.dtype.kind == "c" and not x.dtype.kind == y.dtype.kind == "c":
            raise TypeError("Cannot cast output from dtype('complex128') to dtype('float64') by the rule 'same_kind'")
        left, right = left * w[:, None], right * (w[:, None] if y.ndim == 2 else w)
    rcond = x.size * np.finfo(x.dtype).eps if rcond is None else rcond
    scale = np.sqrt(np.square(left).sum(axis=0))
    left = left / scale
    c, residuals, rank, singular = np.linalg.lstsq(left, right, rcond)
    c = c / (scale.reshape(-1, 1) if y.ndim > 1 else scale)
    if rank != deg + 1 and not full:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=4)
    if full:
        return c, np.abs(residuals) if residuals.dtype.kind == "c" else residuals, np.asarray(rank), singular, rcond
    if not cov:
        return c
    return c, _covariance(left, scale, residuals, x.size - deg - 1, y.ndim, cov)


def _covariance(left: Array, scale: Array, residuals: Array, freedom: int, ndim: int, cov: object) -> Array:
    base = np.linalg.inv(left.T @ left) / np.outer(scale, scale)
    if cov == "unscaled":
        factor: Any = 1
    elif freedom > 0:
        factor = residuals / freedom
    else:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    made: Array = (base if ndim == 1 else base[..., None]) * factor
    return made
