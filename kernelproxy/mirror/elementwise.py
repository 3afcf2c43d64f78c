"""Ufuncs whose results have the same bits on every IEEE machine: CuPy's loops, computed by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.opstream.proof import ufuncs
from gpu_backend.opstream.proof.arguments import native
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.promotion import operand_kind
from kernelproxy.mirror.casts import Array, DType, Unknown, cast, constant, exactly, scalar

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
    if not y.size:
        return
    least, most = (y.min(), y.max()) if y.ndim else (y.item(), y.item())
    if not 0 <= least <= most < 8 * x.dtype.itemsize:
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


class _Plan(NamedTuple):
    """How an op is computed of operands of certain kinds."""

    compute: np.ufunc
    inputs: tuple[DType, ...]
    output: DType
    guard: Guard | None
    takes_nan: bool
    #: Whether all is integers and truths: nothing can be rounded, and no NaN arise.
    is_whole: bool


class _Weak:
    """Stands for numbers of one of Python's types, which take on the type of what they are computed with.

    The type itself will not do: NumPy takes it for the dtype that it would become.
    """

    __slots__ = ("kind",)

    def __init__(self, sample: object) -> None:
        self.kind = operand_kind(sample)


#: By the type.
WEAK = {type(sample): _Weak(sample) for sample in (True, 1, 1.0)}


@cache
def planned(qualname: str, kinds: tuple[DType | _Weak, ...]) -> _Plan | None:
    """Return how the ufunc ``qualname`` is computed of arrays of these dtypes, and such numbers of Python's."""
    known = exact(qualname)
    if known is None:
        return None
    loop = ufuncs.rule_for(qualname).loop(tuple([one.kind if isinstance(one, _Weak) else (one, None) for one in kinds]))
    if loop is None or any(dtype.kind not in known.kinds for dtype in loop.inputs):
        return None
    inputs, output = loop.inputs, loop.outputs[0]
    is_whole = all(dtype.kind in "biu" for dtype in (*inputs, output))
    alike = [one for one in kinds if isinstance(one, np.dtype) and one is kinds[0]]
    if is_whole and known.takes_nan and len(alike) == len(kinds) == len(inputs):
        inputs = tuple(alike)  # integers that are compared as they are give the same truths
    return _Plan(known.compute, inputs, output, known.guard, known.takes_nan, is_whole)


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
    plan = planned(qualname, tuple([one.dtype if type(one) is np.ndarray else _told(one) for one in operands]))
    if plan is None or len(plan.inputs) != len(operands):
        raise Unknown
    if may_be_nan and not plan.takes_nan and any(map(_has_nan, operands)):
        raise Unknown
    if plan.is_whole:
        return _computed(plan, operands)
    with exactly():
        return _computed(plan, operands)


def _computed(plan: _Plan, operands: tuple[Any, ...]) -> Array:
    inputs = [
        one if type(one) is np.ndarray and one.dtype is dtype else _as(one, dtype)
        for one, dtype in zip(operands, plan.inputs, strict=True)
    ]
    if plan.guard is not None:
        plan.guard(*inputs)
    made = np.asarray(plan.compute(*inputs))
    return made if made.dtype == plan.output else cast(made, plan.output)


def _told(operand: Any) -> DType | _Weak:
    """Return what chooses the loop of an operand that is no array."""
    if isinstance(operand, np.generic):
        return _own(operand)
    weak = WEAK.get(type(operand))
    if weak is None or (type(operand) is int and not -(1 << 63) < operand < 1 << 63):
        raise Unknown
    return weak


def _own(number: np.generic) -> DType:
    try:
        return native(number.dtype)
    except CannotProve:
        raise Unknown from None


def _as(operand: Any, dtype: DType) -> Array:
    kind = type(operand)
    if kind is np.ndarray:
        return cast(operand, dtype)
    # Not of a zero, which has a sign and is equal to the other; nor of NaN, which is equal to none.
    is_kept = kind is int or (kind is float and operand == operand and operand != 0)
    return constant(operand, dtype) if is_kept else scalar(operand, dtype)


def _has_nan(operand: Any) -> bool:
    if isinstance(operand, np.ndarray) and operand.dtype.kind not in "fc":
        return False
    return bool(np.isnan(operand).any())
