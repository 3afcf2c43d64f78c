"""Rules of the Fourier transforms, while no plan of the user's is in force and one GPU computes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from gpu_backend.opstream.proof.arguments import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, as_index, as_items
from gpu_backend.opstream.proof.manipulation import roll
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.promotion import result_type
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, new, ufunc

#: What a transform makes of what: complex of complex, complex of real, real of complex.
C2C, R2C, C2R = "C2C", "R2C", "C2R"
#: How many points to transform along each axis; None for as many as there are.
Lengths: TypeAlias = tuple[int | None, ...]


def _converted(a: Array, kind: str) -> Array:
    """Return the array in the dtype that cuFFT takes."""
    if kind == R2C:
        if a.dtype.kind == "c":
            raise CannotProve("a ComplexWarning")
        wanted = a.dtype if a.dtype.char in "fd" else FLOAT32 if a.dtype.char == "e" else FLOAT64
    else:
        wanted = a.dtype if a.dtype.kind == "c" else COMPLEX64 if a.dtype.char in "ef" else COMPLEX128
    return a if wanted == a.dtype else a.astype(wanted)


def _cut(a: Array, s: Lengths | None, axes: tuple[int, ...], kind: str, order: str = "C") -> Array:
    """Return the array cut or padded to the wanted lengths."""
    if s is None or s == a.shape:
        return a
    lengths = list(s)
    last = lengths[-1]
    if kind == C2R and last is not None:
        lengths[-1] = last // 2 + 1
    for length, axis in zip(lengths, axes, strict=True):
        if length is None or length == a.shape[axis]:
            continue
        place = axis % a.ndim
        if a.shape[place] > length:
            a = a[(slice(None),) * place + (slice(0, length),)]
        else:
            a = new((*a.shape[:place], length, *a.shape[place + 1 :]), a.dtype, order)
    return a


def along(a: Array, axis: int, kind: str, out_size: int | None = None) -> Array:
    """Return the transform along one axis."""
    place = axis % a.ndim
    swapped = a.window((0, _swapped(a, place).layout)) if place != a.ndim - 1 else a
    n = swapped.shape[-1]
    if n < 1:
        raise refusal(ValueError, f"Invalid number of FFT data points ({n}) specified.")
    if kind == C2C:
        made = new(swapped.shape, a.dtype)
    elif kind == R2C:
        made = new((*swapped.shape[:-1], n // 2 + 1), COMPLEX64 if a.dtype == FLOAT32 else COMPLEX128)
    else:
        if out_size is None or out_size < 1:
            raise CannotProve("a transform to nothing")
        made = new((*swapped.shape[:-1], out_size), FLOAT32 if a.dtype == COMPLEX64 else FLOAT64)
    return _swapped(made, place) if place != a.ndim - 1 else made


def _swapped(a: Array, place: int) -> Array:
    order = list(range(a.ndim))
    order[place], order[-1] = order[-1], order[place]
    return a.transpose(tuple(order))


def _fft(a: Array, s: Lengths | None, axes: tuple[int, ...], kind: str) -> Array:
    """Transform along one axis after the other."""
    a = _cut(_converted(a, kind), s, axes, kind)
    if kind == R2C:
        a = along(a, axes[-1], kind)
    for axis in axes if kind == C2C else axes[:-1]:
        a = along(a, axis, C2C)
    if kind == C2R:
        last = None if s is None else s[-1]
        a = along(a, axes[-1], kind, 2 * (a.shape[axes[-1]] - 1) if last is None else last)
    return a


def _fftn(a: Array, s: Lengths | None, axes: tuple[int, ...], kind: str) -> Array:
    """Transform along neighbouring axes at once; the result keeps the memory order."""
    a = _converted(a, kind)
    order = "F" if a.layout.f_contiguous else "C"
    if not a.layout.f_contiguous and not a.layout.c_contiguous:
        a = new(a.shape, a.dtype)
    a = _cut(a, s, axes, kind, order)
    if 0 in a.shape:
        raise refusal(ValueError, "Invalid number of FFT data points (0) specified.")
    if not (a.layout.c_contiguous if order == "C" else a.layout.f_contiguous):
        a = new(a.shape, a.dtype, order)
    last = _sorted_axes(a.ndim, axes, kind)[-1]
    shape = list(a.shape)
    made = a.dtype
    if kind == R2C:
        shape[last] = shape[last] // 2 + 1
        made = COMPLEX64 if a.dtype == FLOAT32 else COMPLEX128
    elif kind == C2R:
        shape[last] = 2 * (shape[last] - 1) if s is None or s[-1] is None else s[-1]
        made = FLOAT32 if a.dtype == COMPLEX64 else FLOAT64
        if shape[last] < 1:
            raise CannotProve("a transform to nothing")
    return new(tuple(shape), made, "C" if a.layout.c_contiguous else "F")


def _sorted_axes(ndim: int, axes: tuple[int, ...], kind: str) -> tuple[int, ...]:
    places = [axis % ndim for axis in axes]
    return tuple(sorted(places)) if kind == C2C else (*sorted(places[:-1]), places[-1])


def many(a: Array, s: object, axes: object, kind: str) -> Array:
    """Transform along several axes, in the way that CuPy chooses."""
    lengths = None if s is None else tuple([None if one is None else as_index(one) for one in as_items(s)])
    named = None if axes is None else as_items(axes)
    if lengths is not None and any(one is not None and one < 1 for one in lengths):
        raise CannotProve("no data points")
    if lengths is not None and named is not None and len(lengths) != len(named):
        raise refusal(ValueError, "Shape and axes have different lengths.")
    if named is None:
        count = a.ndim if lengths is None else len(lengths)
        places = tuple(range(-count, 0))
    else:
        places = tuple([as_index(axis) for axis in named])
    if not places or len(places) > a.ndim or any(not -a.ndim <= axis < a.ndim for axis in places):
        raise CannotProve("axes that are not there")
    if a.ndim == 1 or (a.layout.f_contiguous and kind != C2C):
        return _fft(a, lengths, places, kind)
    ordered = _sorted_axes(a.ndim, places, kind)
    if len(ordered) > 1 and _at_once(ordered, a.ndim):
        if named is None:
            places = tuple([axis + a.ndim for axis in places])
        return _fftn(a, lengths, places, kind)
    return _fft(a, lengths, places, kind)


def _at_once(axes: tuple[int, ...], ndim: int) -> bool:
    joined = all(after - before == 1 for before, after in pairwise(axes))
    return 0 < len(axes) <= 3 and (0 in axes or ndim - 1 in axes) and joined


def check_norm(norm: object) -> None:
    """Refuse an unknown norm."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise refusal(ValueError, f'Invalid norm value {norm}, should be "backward", "ortho", or "forward".')


def check_swapped_norm(norm: object) -> None:
    """Refuse an unknown norm, in the words of the transforms that turn it round."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise refusal(ValueError, f'Invalid norm value {norm}; should be "backward", "ortho", or "forward".')


def one_axis(a: object, n: object, axis: object, norm: object, kind: str) -> Array:
    """Transform along one axis."""
    given, place = array(a), as_index(axis)
    length = None if n is None else as_index(n)
    if given.ndim == 0 or not -given.ndim <= place < given.ndim or (length is not None and length < 1):
        raise CannotProve("an axis that is not there, or no data points")
    check_norm(norm)
    return _fft(given, (length,), (place,), kind)


def _real_result(made: Array, a: Array) -> Array:
    """Return the result of an inverse real transform in the precision of its input."""
    source = np.dtype(a.dtype.char.lower()) if a.dtype.kind == "c" else a.dtype
    return made.astype(result_type(source, 1.0), copy=False)


def _single(kind: str) -> Callable[..., Array]:
    def transform(a: Array, n: object = None, axis: object = -1, norm: object = None) -> Array:
        made = one_axis(a, n, axis, norm, kind)
        return _real_result(made, a) if kind == C2R else made

    return transform


def _several(kind: str, default_axes: object) -> Callable[..., Array]:
    def transform(a: Array, s: object = None, axes: object = default_axes, norm: object = None) -> Array:
        check_norm(norm)
        if a.ndim == 0:
            raise CannotProve("no axes")
        made = many(a, s, axes, kind)
        return _real_result(made, a) if kind == C2R and axes is not None and len(as_items(axes)) == 1 else made

    return transform


for _name, _kind in (("fft", C2C), ("ifft", C2C), ("rfft", R2C), ("irfft", C2R)):
    rule(f"cupy.fft.{_name}")(_single(_kind))
    rule(f"cupy.fft.{_name}2")(_several(_kind, (-2, -1)))
    rule(f"cupy.fft.{_name}n")(_several(_kind, None))


@rule("cupy.fft.hfft")
def hfft(a: Array, n: object = None, axis: object = -1, norm: object = None) -> Array:
    """As CuPy."""
    check_swapped_norm(norm)
    given = ufunc("conjugate", a) if a.dtype.kind == "c" else a
    return _real_result(one_axis(given, n, axis, norm, C2R), given)


@rule("cupy.fft.ihfft")
def ihfft(a: object, n: object = None, axis: object = -1, norm: object = None) -> Array:
    """As CuPy."""
    check_swapped_norm(norm)
    return ufunc("conjugate", one_axis(a, n, axis, norm, R2C))


@rule("cupy.fft.fftfreq")
def fftfreq(n: object, d: object = 1.0) -> Array:
    """As CuPy."""
    return new((_count(n, d),), FLOAT64)


@rule("cupy.fft.rfftfreq")
def rfftfreq(n: object, d: object = 1.0) -> Array:
    """As CuPy."""
    return new((_count(n, d) // 2 + 1,), FLOAT64)


def _count(n: object, d: object) -> int:
    if type(n) is not int or n < 1 or type(d) not in (int, float) or d == 0:
        raise CannotProve("no data points")
    return n


@rule("cupy.fft.fftshift", "cupy.fft.ifftshift")
def fftshift(x: Array, axes: object = None) -> Array:
    """As CuPy."""
    if x.ndim == 0:
        raise CannotProve("no axes")
    places = list(range(x.ndim)) if axes is None else [axes] if isinstance(axes, int) else list(as_items(axes))
    if any(not -x.ndim <= as_index(place) < x.ndim for place in places):
        raise refusal(IndexError, "tuple index out of range")
    return roll(x, [1] * len(places), places)
