"""Rules of ``cupyx.scipy.fft``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.opstream.proof.arguments import COMPLEX64, FLOAT32, FLOAT64, as_index
from gpu_backend.opstream.proof.fft import C2C, C2R, R2C, along, check_norm, check_swapped_norm, many, one_axis
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Shadow, array, like, new, ufunc


def _check_plain(overwrite_x: Any, plan: Any) -> None:
    if overwrite_x or plan is not None:
        raise CannotProve("a plan, or a transform in place")


def _in_sequence(value: Any) -> Any:
    return (value,) if isinstance(value, (int, np.integer)) else value


def _single(kind: str) -> Callable[..., Shadow]:
    def transform(
        x: Any, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False, *, plan: Any = None
    ) -> Shadow:
        _check_plain(overwrite_x, plan)
        return one_axis(x, n, axis, norm, kind)

    return transform


def _several(kind: str, default_axes: Any) -> Callable[..., Shadow]:
    def transform(
        x: Any, s: Any = None, axes: Any = default_axes, norm: Any = None, overwrite_x: Any = False, *,
        plan: Any = None,
    ) -> Shadow:  # fmt: skip
        _check_plain(overwrite_x, plan)
        check_norm(norm)
        return _of_several(array(x), s, axes, kind)

    return transform


def _of_several(given: Shadow, s: Any, axes: Any, kind: str) -> Shadow:
    if given.ndim == 0:
        raise CannotProve("no axes")
    return many(given, _in_sequence(s), _in_sequence(axes), kind)


for _name, _kind in (("fft", C2C), ("ifft", C2C), ("rfft", R2C), ("irfft", C2R)):
    rule(f"cupyx.scipy.fft.{_name}")(_single(_kind))
    rule(f"cupyx.scipy.fft.{_name}2")(_several(_kind, (-2, -1)))
    rule(f"cupyx.scipy.fft.{_name}n")(_several(_kind, None))


def _conjugated(x: Any) -> Shadow:
    return ufunc("conjugate", x) if array(x).dtype.kind == "c" else array(x)


@rule("cupyx.scipy.fft.hfft")
def hfft(
    x: Any, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False, *, plan: Any = None
) -> Shadow:
    """As CuPy."""
    _check_plain(overwrite_x, plan)
    check_swapped_norm(norm)
    return one_axis(_conjugated(x), n, axis, norm, C2R)


@rule("cupyx.scipy.fft.ihfft")
def ihfft(
    x: Any, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False, *, plan: Any = None
) -> Shadow:
    """As CuPy."""
    _check_plain(overwrite_x, plan)
    check_swapped_norm(norm)
    return _conjugated(one_axis(x, n, axis, norm, R2C))


def _hermitian(default_axes: Any, *, inverse: bool) -> Callable[..., Shadow]:
    def transform(
        x: Any, s: Any = None, axes: Any = default_axes, norm: Any = None, overwrite_x: Any = False, *,
        plan: Any = None,
    ) -> Shadow:  # fmt: skip
        _check_plain(overwrite_x, plan)
        check_swapped_norm(norm)
        if inverse:
            return _conjugated(_of_several(array(x), s, axes, R2C))
        return _of_several(_conjugated(x), s, axes, C2R)

    return transform


for _suffix, _axes in (("2", (-2, -1)), ("n", None)):
    rule(f"cupyx.scipy.fft.hfft{_suffix}")(_hermitian(_axes, inverse=False))
    rule(f"cupyx.scipy.fft.ihfft{_suffix}")(_hermitian(_axes, inverse=True))


def _cosine(x: Shadow, inner: int, axis: int, norm: Any, sine: bool) -> Shadow:
    """Return the transform of type ``inner``, 2 or 3, of a real array; one of a complex array is two."""
    if x.dtype.kind == "c":
        parts = [_cosine(part, inner, axis, norm, sine) for part in (x.real, x.imag)]
        return ufunc("add", parts[0], ufunc("multiply", parts[1], 1j))
    wanted = FLOAT64 if x.dtype.kind in "bui" else np.promote_types(x.dtype, FLOAT32)
    real = x.astype(wanted, copy=False)
    if not -real.ndim <= axis < real.ndim or real.shape[axis] < 1:
        raise CannotProve("an axis that is not there, or no data points")
    return _cosine_2(real, axis, sine) if inner == 2 else _cosine_3(real, axis, norm, sine)


def _reversed(x: Shadow, axis: int) -> Shadow:
    return x[tuple([slice(None, None, -1) if place == axis % x.ndim else slice(None) for place in range(x.ndim)])]


def _cosine_2(x: Shadow, axis: int, sine: bool) -> Shadow:
    made = along(new(x.shape, np.promote_types(x.dtype, COMPLEX64)), axis, C2C).real
    return _reversed(made, axis) if sine else made


def _cosine_3(x: Shadow, axis: int, norm: Any, sine: bool) -> Shadow:
    if sine:
        x = _reversed(x, axis)
        x = x.copy() if norm == "ortho" else x
    factors = [1] * x.ndim
    factors[axis] = x.shape[axis]
    turned = ufunc("multiply", x, new(tuple(factors), np.promote_types(x.dtype, COMPLEX64)))
    made = along(turned, axis, C2C).real
    return Shadow(like(made.layout, made.dtype, "K"))


def _cosine_rule(*, inverse: bool, sine: bool) -> Callable[..., Shadow]:
    def transform(
        x: Any, type: Any = 2, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False
    ) -> Shadow:
        _check_cosine(type, n, norm, overwrite_x)
        return _cosine(array(x), 5 - type if inverse else type, as_index(axis), norm, sine)

    return transform


def _check_cosine(kind: Any, lengths: Any, norm: Any, overwrite_x: Any) -> None:
    if kind not in (2, 3) or lengths is not None or overwrite_x or norm not in (None, "ortho", "forward", "backward"):
        raise CannotProve("another type or length, or a transform in place")


def _cosines_rule(*, inverse: bool, sine: bool) -> Callable[..., Shadow]:
    def transform(
        x: Any, type: Any = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: Any = False
    ) -> Shadow:
        _check_cosine(type, s, norm, overwrite_x)
        given = array(x)
        places = list(range(given.ndim)) if axes is None else [as_index(one) for one in _in_sequence(axes)]
        if not places or 0 in given.shape or len({place % given.ndim for place in places}) != len(places):
            raise CannotProve("no axes, or one twice, or no data points")
        if given.dtype.kind == "c":
            raise CannotProve("a transform of complex numbers")
        for place in places:
            given = _cosine(given, 5 - type if inverse else type, place, norm, sine)
        return given

    return transform


for _sine, _name in ((False, "dct"), (True, "dst")):
    for _inverse, _prefix in ((False, ""), (True, "i")):
        rule(f"cupyx.scipy.fft.{_prefix}{_name}")(_cosine_rule(inverse=_inverse, sine=_sine))
        rule(f"cupyx.scipy.fft.{_prefix}{_name}n")(_cosines_rule(inverse=_inverse, sine=_sine))
