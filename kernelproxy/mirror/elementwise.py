"""Ufuncs whose results have the same bits on every IEEE machine: CuPy's loops, computed by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.opstream.proof import ufuncs
from gpu_backend.opstream.proof.promotion import Loop, operand_kind
from kernelproxy.mirror.casts import Array, DType, Unknown, cast, scalar

#: Looks at the operands, cast to the loop, and ends with `Unknown` where machines or CuPy's and NumPy's rules differ.
Guard = Callable[..., None]


class _Exact(NamedTuple):
    compute: np.ufunc
    kinds: str = "biuf"
    guard: Guard | None = None
    #: Whether operands that are NaN have the same result everywhere.
    takes_nan: bool = False

    @property
    def operands(self) -> int:
        return self.compute.nin


def _no_zero(x: Array, y: Array) -> None:
    """Integer division: by zero it is CuPy's own, and the lowest number by -1 is no number."""
    if not y.all() or (y.dtype.kind == "i" and bool((y == -1).any())):
        raise Unknown


def _within_width(x: Array, y: Array) -> None:
    if y.size and (int(y.min()) < 0 or int(y.max()) >= 8 * x.dtype.itemsize):
        raise Unknown


def _has_absolute(x: Array) -> None:
    if x.dtype.kind == "i" and bool((x == np.iinfo(x.dtype).min).any()):
        raise Unknown


def _one_zero(x: Array, y: Array) -> None:
    """Of 0.0 and -0.0 machines choose differently."""
    if x.dtype.kind == "f" and bool(((x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))).any()):
        raise Unknown


_EXACT: dict[str, _Exact] = {
    **{name: _Exact(getattr(np, name)) for name in ("add", "subtract", "multiply", "negative", "square", "positive")},
    **{name: _Exact(getattr(np, name), "f") for name in ("sqrt", "rint", "floor", "ceil", "trunc")},
    "divide": _Exact(np.true_divide),
    "absolute": _Exact(np.absolute, guard=_has_absolute),
    "floor_divide": _Exact(np.floor_divide, "iu", _no_zero),
    "remainder": _Exact(np.remainder, "iu", _no_zero),
    "maximum": _Exact(np.maximum, guard=_one_zero),
    "minimum": _Exact(np.minimum, guard=_one_zero),
    **{name: _Exact(getattr(np, name), "biu") for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "invert")},
    **{name: _Exact(getattr(np, name), "iu", _within_width) for name in ("left_shift", "right_shift")},
    **{
        name: _Exact(getattr(np, name), takes_nan=True)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    },
    **{
        name: _Exact(getattr(np, name), takes_nan=True)
        for name in ("logical_and", "logical_or", "logical_xor", "logical_not")
    },
    **{name: _Exact(getattr(np, name), "f", takes_nan=True) for name in ("isnan", "isinf", "isfinite")},
}


def names() -> list[str]:
    """Return the ufuncs of ``cupy`` that are computed."""
    return list(_EXACT)


@cache
def exact(qualname: str) -> _Exact | None:
    """Return how NumPy computes the ufunc ``qualname``; None if its bits may differ."""
    try:
        rule = ufuncs.rule_for(qualname)
    except KeyError:
        return None
    name = rule.name.removeprefix("cupy_")
    return _EXACT.get({"true_divide": "divide", "conjugate": ""}.get(name, name))


@cache
def _loop(qualname: str, kinds: tuple[tuple[DType, Any], ...]) -> Loop | None:
    return ufuncs.rule_for(qualname).loop(kinds)


def compute(qualname: str, operands: tuple[Any, ...], may_be_nan: bool) -> Array:
    """Return the result of CuPy's loop for arrays and numbers, a new array.

    ``may_be_nan`` says whether any of them may hold NaN.

    Raises
    ------
    Unknown
        If the bits of the result may differ between machines.
    FloatingPointError
        If a NaN came of numbers, or a number too small to be exact.
    """
    known = exact(qualname)
    if known is None:
        raise Unknown
    kinds = tuple([(one.dtype, None) if isinstance(one, np.ndarray) else _kind(one) for one in operands])
    loop = _loop(qualname, kinds)
    if loop is None or any(dtype.kind not in known.kinds for dtype in loop.inputs):
        raise Unknown
    if may_be_nan and not known.takes_nan and any(map(_has_nan, operands)):
        raise Unknown
    inputs = [_as(one, dtype) for one, dtype in zip(operands, loop.inputs, strict=True)]
    if known.guard is not None:
        known.guard(*inputs)
    made = np.asarray(known.compute(*inputs))
    return made if made.dtype == loop.outputs[0] else cast(made, loop.outputs[0])


def _kind(value: object) -> tuple[DType, Any]:
    if type(value) is int and not -(1 << 63) < value < 1 << 63:
        raise Unknown
    return operand_kind(value)


def _as(operand: Any, dtype: DType) -> Array:
    return cast(operand, dtype) if isinstance(operand, np.ndarray) else scalar(operand, dtype)


def _has_nan(operand: Any) -> bool:
    if isinstance(operand, np.ndarray) and operand.dtype.kind not in "fc":
        return False
    return bool(np.isnan(operand).any())
