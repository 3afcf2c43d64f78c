"""CuPy's choice of a ufunc's loop from the types of its arguments."""

from __future__ import annotations

import numpy as np

from gpu_backend.devices.cpu.arrays import DType

#: Ufuncs whose loops differ in nothing that can be seen: each compares any two numbers exactly.
COMPARISONS = frozenset({"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"})

#: Those that treat a Python int beside an integer array as an int64, so that no value is out of range.
STRONG_INTS = COMPARISONS | {"logical_and", "logical_or"}


def select_loop(name: str, types: tuple[str, ...], args: tuple[object, ...]) -> str | None:
    """Return the first signature of ``types`` that takes ``args``, or None.

    Python scalars are weak: they follow the arrays, unless all arguments are scalars or a scalar is of a higher
    kind than every array.
    """
    dtypes = tuple(_dtype_of(arg) for arg in args)
    weak = tuple(_weak_type(arg) for arg in args)
    if not _weak_scalars_follow(dtypes, weak):
        weak = (None,) * len(args)
    elif name in STRONG_INTS and int in weak:
        other = dtypes[1 - weak.index(int)]
        if other.kind in "iu":
            weak = (None, None)
    for signature in types:
        if all(_fits(d, w, np.dtype(c)) for d, w, c in zip(dtypes, weak, signature.split("->")[0], strict=True)):
            return signature
    return None


def select_loop_by_dtype(types: tuple[str, ...], dtype: DType) -> str | None:
    """Return the first signature of ``types`` whose results are all ``dtype``, or None."""
    for signature in types:
        if all(np.dtype(char) == dtype for char in signature.split("->")[1]):
            return signature
    return None


def _dtype_of(arg: object) -> DType:
    if isinstance(arg, (np.ndarray, np.generic)):
        return arg.dtype
    if type(arg) is int and arg >= 2**63:
        return np.dtype(np.uint64)
    return np.dtype(type(arg))


def _weak_type(arg: object) -> type | None:
    if isinstance(arg, (np.ndarray, np.generic)):
        return None
    kind = type(arg)
    return kind if kind in (int, float, complex) else None


def _kind_score(dtype: DType) -> int:
    return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 2}.get(dtype.kind, 3)


def _weak_scalars_follow(dtypes: tuple[DType, ...], weak: tuple[type | None, ...]) -> bool:
    arrays = [_kind_score(d) for d, w in zip(dtypes, weak, strict=True) if w is None]
    scalars = [_kind_score(d) for d, w in zip(dtypes, weak, strict=True) if w is not None]
    return bool(arrays) and bool(scalars) and max(arrays) >= max(scalars)


def _fits(dtype: DType, weak: type | None, wanted: DType) -> bool:
    if dtype.kind == "V" or wanted.kind == "V":
        return bool(dtype.kind == wanted.kind)
    if np.can_cast(dtype, wanted):
        return True
    if weak is None:
        return False
    try:
        return bool(np.result_type(weak(0), wanted) == wanted)
    except TypeError:
        return False
