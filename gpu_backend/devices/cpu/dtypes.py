"""Which dtypes CuPy has, and how it casts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array, Casting, DType
from gpu_backend.opstream.layout import NUMBERS


def require_supported(dtype: DType) -> DType:
    """Return ``dtype`` if CuPy can hold it.

    Raises
    ------
    ValueError
        If it cannot: objects, strings, dates, long doubles, big-endian numbers, sub-arrays.
    """
    if dtype.char in NUMBERS and dtype.byteorder != ">":
        return dtype
    if dtype.byteorder == ">":
        raise ValueError(f"Unsupported dtype {dtype} with big-endian byte-order")
    if dtype.kind == "V" and dtype.subdtype is None and dtype.itemsize and not dtype.hasobject:
        return dtype
    if dtype.name == "bfloat16":
        return dtype
    raise ValueError(f"Unsupported dtype {dtype}")


def as_dtype(spec: Any) -> DType:
    """Return ``spec`` as a dtype that CuPy supports; None means float64.

    Raises
    ------
    TypeError
        For a list or dictionary of fields: CuPy looks dtypes up by what names them. `numpy.dtype` of it is taken.
    """
    hash(spec)
    return require_supported(np.dtype(spec))


def require_64_bits(value: object) -> None:
    """Raise CuPy's ``OverflowError`` for a Python int that fits neither int64 nor uint64, whatever it would become."""
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        raise OverflowError("Python int too large to convert to C long")


def require_castable(source: DType, target: DType, casting: Casting, what: str = "array data") -> None:
    """Raise CuPy's ``TypeError`` if the cast breaks the rule; warn if it drops imaginary parts."""
    if source is target or (casting == "same_kind" and source.kind == target.kind):
        return
    if np.can_cast(source, target, casting):
        if casting == "unsafe" and source.kind == "c" and target.kind in "iuf":
            warn_complex()
        return
    raise TypeError(f"Cannot cast {what} from {source!r} to {target!r} according to the rule '{casting}'")


def warn_complex() -> None:
    """Warn that imaginary parts are dropped."""
    message = "Casting complex values to real discards the imaginary part"
    warnings.warn(message, np.exceptions.ComplexWarning, stacklevel=2)


def store(target: Array, source: Array) -> None:
    """Write ``source``, broadcast, into ``target`` as `cast_into` does, and warn if imaginary parts are dropped."""
    if source.dtype.kind == "c" and target.dtype.kind in "iuf":
        warn_complex()
    cast_into(target, source)


def cast_into(target: Array, source: Array) -> None:
    """Write ``source`` into ``target`` by the conversions of a GPU: floats saturate at the ends of an integer type.

    The fraction is cut off; for NaN see `saturated`. Complex numbers lose their imaginary part without a word.
    """
    source_kind, kind = source.dtype.kind, target.dtype.kind
    if source_kind == "c" and kind != "c":
        source = (source != 0) if kind == "b" else source.real
        source_kind = source.dtype.kind
    if source_kind == "f" and kind in "iu":
        source = saturated(source, target.dtype)
    np.copyto(target, source, casting="unsafe")


def saturated(source: Array, dtype: DType) -> Array:
    """Return the floats ``source`` as the integers ``dtype``, saturated; a new array in C order.

    A GPU has no conversion to fewer than 32 bits: it saturates at 32, and keeps the lower ones. NaN becomes 0 where
    both sides have 32 bits, and where one has 64 the highest bit alone: measured on an H200.
    """
    if dtype.itemsize < 4:
        return saturated(source, np.dtype("i" if dtype.kind == "i" else "I")).astype(dtype)
    info = np.iinfo(dtype)
    wide = source if source.dtype.itemsize >= 4 else source.astype(np.float32)
    result: Array = np.asarray(wide).astype(dtype)
    # The limits as floats: the upper one may round up to a power of two, which itself is out of range.
    too_high = wide >= np.asarray(
        float(info.max) if dtype.itemsize < 8 else 2.0 ** (dtype.itemsize * 8 - (dtype.kind == "i"))
    )
    too_low = wide < np.asarray(float(info.min))
    if too_high.any() or too_low.any() or np.isnan(wide).any():
        result = np.asarray(result)
        result[too_high] = info.max
        result[too_low] = info.min
        is_wide = max(wide.dtype.itemsize, dtype.itemsize) == 8
        result[np.isnan(wide)] = np.array(1 << 8 * dtype.itemsize - 1).astype(dtype) if is_wide else 0
    return result


def on_host(value: object, dtype: DType) -> Array:
    """Return a value of the host as an array of ``dtype``; NumPy converts it, and warns of what does not fit."""
    with np.errstate(invalid="warn", over="warn"):
        return np.array(value, dtype)


def fill_value(value: object, dtype: DType) -> Array:
    """Return what an array of ``dtype`` is filled with.

    Raises
    ------
    ValueError
        If ``value`` is more than one number.
    """
    scalar = on_host(value, dtype)
    if scalar.shape != ():
        raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
    return scalar


def clear_zeros(filled: Array) -> None:
    """Take the sign from the zeros that an array was filled with, as CuPy does: it clears memory in one piece."""
    if filled.dtype.kind in "fc" and filled.flags.c_contiguous and filled.size and not filled.flat[0]:
        filled[...] = 0
