"""Rules of ``cupyx.scipy.fft``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_backend.opstream.proof.arguments import COMPLEX64, FLOAT32, FLOAT64, as_index, as_items
from gpu_backend.opstream.proof.fft import C2C, C2R, R2C, along, check_norm, check_swapped_norm, many, one_axis
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, like, new, ufunc


def _check_plain(overwrite_x: object, plan: object) -> None:
    if overwrite_x or plan is not None:
        raise CannotProve("a plan, or a transform in place")


def _in_sequence(value: object) -> object:
    return (value,) if isinstance(value, (int, np.integer)) else value


def _single(kind: str) -> Callable[..., Array]:
    def transform(
        x: object, n: object = None, axis: object = -1, norm: object = None, overwrite_x: object = False, *,
        plan: object = None,
    ) -> Array:  # fmt: skip
        _check_plain(overwrite_x, plan)
        return one_axis(x, n, axis, norm, kind)

    return transform


def _several(kind: str, default_axes: object) -> Callable[..., Array]:
    def transform(
        x: Array, s: object = None, axes: object = default_axes, norm: object = None, overwrite_x: object = False, *,
        plan: object = None,
    ) -> Array:  # fmt: skip
        _check_plain(overwrite_x, plan)
        check_norm(norm)
        return _of_several(x, s, axes, kind)

    return transform


def _of_several(given: Array, s: object, axes: object, kind: str) -> Array:
    if given.ndim == 0:
        raise CannotProve("no axes")
    return many(given, _in_sequence(s), _in_sequence(axes), kind)


for _name, _kind in (("fft", C2C), ("ifft", C2C), ("rfft", R2C), ("irfft", C2R)):
    rule(f"cupyx.scipy.fft.{_name}")(_single(_kind))
    rule(f"cupyx.scipy.fft.{_name}2")(_several(_kind, (-2, -1)))
    rule(f"cupyx.scipy.fft.{_name}n")(_several(_kind, None))


def _conjugated(x: object) -> Array:
    return ufunc("conjugate", x) if array(x).dtype.kind == "c" else array(x)


def _single_hermitian(*, inverse: bool) -> Callable[..., Array]:
    def transform(
        x: object, n: object = None, axis: object = -1, norm: object = None, overwrite_x: object = False, *,
        plan: object = None,
    ) -> Array:  # fmt: skip
        _check_plain(overwrite_x, plan)
        check_swapped_norm(norm)
        if inverse:
            return _conjugated(one_axis(x, n, axis, norm, R2C))
        return one_axis(_conjugated(x), n, axis, norm, C2R)

    return transform


rule("cupyx.scipy.fft.hfft")(_single_hermitian(inverse=False))
rule("cupyx.scipy.fft.ihfft")(_single_hermitian(inverse=True))


def _several_hermitian(default_axes: object, *, inverse: bool) -> Callable[..., Array]:
    def transform(
        x: Array, s: object = None, axes: object = default_axes, norm: object = None, overwrite_x: object = False, *,
        plan: object = None,
    ) -> Array:  # fmt: skip
        _check_plain(overwrite_x, plan)
        check_swapped_norm(norm)
        if inverse:
            return _conjugated(_of_several(x, s, axes, R2C))
        return _of_several(_conjugated(x), s, axes, C2R)

    return transform


for _suffix, _axes in (("2", (-2, -1)), ("n", None)):
    rule(f"cupyx.scipy.fft.hfft{_suffix}")(_several_hermitian(_axes, inverse=False))
    rule(f"cupyx.scipy.fft.ihfft{_suffix}")(_several_hermitian(_axes, inverse=True))


def _cosine(x: Array, inner: int, axis: int, norm: object, sine: bool) -> Array:
    """Return the transform of type ``inner``, 2 or 3, of a real array; one of a complex array is two."""
    if x.dtype.kind == "c":
        parts = [_cosine(part, inner, axis, norm, sine) for part in (x.real, x.imag)]
        return ufunc("add", parts[0], ufunc("multiply", parts[1], 1j))
    wanted = FLOAT64 if x.dtype.kind in "bui" else np.promote_types(x.dtype, FLOAT32)
    real = x.astype(wanted, copy=False)
    if not -real.ndim <= axis < real.ndim or real.shape[axis] < 1:
        raise CannotProve("an axis that is not there, or no data points")
    return _cosine_2(real, axis, sine) if inner == 2 else _cosine_3(real, axis, norm, sine)


def _reversed(x: Array, axis: int) -> Array:
    return x[tuple([slice(None, None, -1) if place == axis % x.ndim else slice(None) for place in range(x.ndim)])]


def _cosine_2(x: Array, axis: int, sine: bool) -> Array:
    made = along(new(x.shape, np.promote_types(x.dtype, COMPLEX64)), axis, C2C).real
    return _reversed(made, axis) if sine else made


def _cosine_3(x: Array, axis: int, norm: object, sine: bool) -> Array:
    if sine:
        x = _reversed(x, axis)
        x = x.copy() if norm == "ortho" else x
    factors = [1] * x.ndim
    factors[axis] = x.shape[axis]
    turned = ufunc("multiply", x, new(tuple(factors), np.promote_types(x.dtype, COMPLEX64)))
    made = along(turned, axis, C2C).real
    return Array(like(made.layout, made.dtype, "K"))


def _cosine_rule(*, inverse: bool, sine: bool) -> Callable[..., Array]:
    def transform(
        x: Array,
        type: object = 2,
        n: object = None,
        axis: object = -1,
        norm: object = None,
        overwrite_x: object = False,
    ) -> Array:
        if n is not None:
            raise CannotProve("another length")
        inner = _cosine_type(type, norm, overwrite_x, inverse=inverse)
        return _cosine(x, inner, as_index(axis), norm, sine)

    return transform


def _cosine_type(kind: object, norm: object, overwrite_x: object, *, inverse: bool) -> int:
    """Return the type of the transform that is computed: the inverse of type 2 is one of type 3."""
    if kind not in (2, 3) or overwrite_x or norm not in (None, "ortho", "forward", "backward"):
        raise CannotProve("another type, or a transform in place")
    return as_index(5 - kind if inverse else kind)


def _cosines_rule(*, inverse: bool, sine: bool) -> Callable[..., Array]:
    def transform(
        x: Array,
        type: object = 2,
        s: object = None,
        axes: object = None,
        norm: object = None,
        overwrite_x: object = False,
    ) -> Array:
        if s is not None:
            raise CannotProve("other lengths")
        inner = _cosine_type(type, norm, overwrite_x, inverse=inverse)
        places = list(range(x.ndim)) if axes is None else [as_index(one) for one in as_items(_in_sequence(axes))]
        if not places or 0 in x.shape or len({place % x.ndim for place in places}) != len(places):
            raise CannotProve("no axes, or one twice, or no data points")
        if x.dtype.kind == "c":
            raise CannotProve("a transform of complex numbers")
        for place in places:
            x = _cosine(x, inner, place, norm, sine)
        return x

    return transform


for _sine, _name in ((False, "dct"), (True, "dst")):
    for _inverse, _prefix in ((False, ""), (True, "i")):
        rule(f"cupyx.scipy.fft.{_prefix}{_name}")(_cosine_rule(inverse=_inverse, sine=_sine))
        rule(f"cupyx.scipy.fft.{_prefix}{_name}n")(_cosines_rule(inverse=_inverse, sine=_sine))
