"""Single numbers of known memory: read, put and computed with as Python does, where NumPy's way has the same outcome.

An array for each number takes several times as long as the number. Whatever is not plain is declined, and goes that
way: other dtypes, what may be rounded or wrapped, what is no number, what leads out of the memory.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import copysign
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire import values as wire
from gpu_backend.wire.dtypes import text_to_dtype
from gpu_backend.wire.values import Ref, View
from kernelproxy.mirror import elementwise
from kernelproxy.mirror.casts import EXACT_IN_DOUBLE, LIMITS
from kernelproxy.mirror.entries import Number
from kernelproxy.mirror.memory import PLAIN, Memory

#: Python's numbers, which travel as they are.
_NUMBERS = frozenset((bool, int, float))
#: Rules that are remembered: programs have few.
_MOST_RULES = 1024
#: Beyond it nothing of Python's is taken for a 64-bit integer: see `elementwise`.
_LEAST_INT, _MOST_INT = 1 - (1 << 63), (1 << 63) - 1
#: Smaller products and quotients may have lost bits: NumPy tells.
_LEAST_FLOAT = 2 * sys.float_info.min

_SIMPLE: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.equal: operator.eq,
    np.not_equal: operator.ne, np.less: operator.lt, np.less_equal: operator.le, np.greater: operator.gt,
    np.greater_equal: operator.ge,
}  # fmt: skip
_OF_INTEGERS = {**_SIMPLE, np.minimum: lambda x, y: int(min(x, y)), np.maximum: lambda x, y: int(max(x, y))}
_OF_FLOATS = {**_SIMPLE, np.true_divide: operator.truediv}
#: The names of ops that may be computed here, so that others are not looked at.
NAMES = frozenset(f"cupy.{one.__name__}" for one in _OF_INTEGERS) | {"cupy.divide", "cupy.true_divide"}


class _Rule(NamedTuple):
    """How an op is computed of two numbers."""

    compute: Callable[[Any, Any], Any]
    is_float: bool
    #: Between these the operands must be, and between those the result, or that is not the whole truth.
    least: float
    most: float
    least_made: float
    most_made: float
    #: Whether a result may have lost bits for being small.
    may_vanish: bool


@lru_cache(_MOST_RULES)
def _rule(name: str, one: str | type, other: str | type, made: Layout) -> _Rule | None:
    """Return how ``name`` gives ``made`` of operands of these dtypes, by their texts, or of types of Python's."""
    plan = elementwise.planned(name, (_kind(one), _kind(other)))
    if plan is None or len(plan.inputs) != 2 or plan.inputs[0] != plan.inputs[1] or plan.output != made.dtype:
        return None
    loop, output = plan.inputs[0], plan.output
    if loop.kind in "iu" and output.kind in "iub" and (compute := _OF_INTEGERS.get(plan.compute)) is not None:
        least, most = LIMITS[loop.char]
        least_made, most_made = LIMITS.get(output.char, (0, 1))
        return _Rule(compute, False, max(least, _LEAST_INT), min(most, _MOST_INT), least_made, most_made, False)
    is_plain = loop == np.float64 and output.kind in "fb" and plan.guard is None
    if is_plain and (compute := _OF_FLOATS.get(plan.compute)) is not None:
        may_vanish = compute in (operator.mul, operator.truediv)
        return _Rule(compute, True, -EXACT_IN_DOUBLE, EXACT_IN_DOUBLE, 0, 0, may_vanish)
    return None


def _kind(operand: str | type) -> Any:
    return text_to_dtype(operand) if isinstance(operand, str) else elementwise.WEAK[operand]


def computed(known: Mapping[int, object], name: str, args: tuple[wire.Value, ...], made: Layout) -> Number | None:
    """Return the number that an op of two numbers makes; None where NumPy is to compute it."""
    first, second = args
    one, x, is_one_nan = _operand(known, first)
    other, y, is_other_nan = _operand(known, second)
    if one is None or other is None or (rule := _rule(name, one, other, made)) is None:
        return None
    found = _of_floats(rule, x, y) if rule.is_float else _of_integers(rule, x, y)
    if found is None:
        return None
    return Number(made, found, (is_one_nan or is_other_nan) and made.dtype.kind == "f")


def _operand(known: Mapping[int, object], value: wire.Value) -> tuple[Any, Any, bool]:
    """Return the dtype of a number, as text, or its type; the number; and whether its memory may hold NaN."""
    kind = type(value)
    if kind in _NUMBERS:
        return kind, value, False
    if kind is View:
        memory = known.get(value.root)  # type: ignore[union-attr]
        if type(memory) is Memory and (place := memory.place(value)) >= 0:  # type: ignore[arg-type]
            return value.dtype, memory.cells.item(place), memory.may_be_nan  # type: ignore[union-attr]
    elif kind is Ref:
        number = known.get(value.handle)  # type: ignore[union-attr]
        if type(number) is Number:
            return number.layout.dtype_text, number.value, number.may_be_nan
        if type(number) is Memory and not number.layout.shape and number.layout.dtype_text in PLAIN:
            return number.layout.dtype_text, number.array.item(), number.may_be_nan
    return None, None, False


def _of_integers(rule: _Rule, x: int, y: int) -> int | None:
    _, _, least, most, least_made, most_made, _ = rule
    if not (least <= x <= most and least <= y <= most):
        return None
    found: int = rule.compute(x, y)
    return found if least_made <= found <= most_made else None


def _of_floats(rule: _Rule, x: float, y: float) -> float | None:
    if (type(x) is not float and not rule.least <= x <= rule.most) or (
        type(y) is not float and not rule.least <= y <= rule.most
    ):
        return None
    x, y = float(x), float(y)  # Python compares integers with floats as they are
    if x != x or y != y or (rule.may_vanish and not y):
        return None
    found: float = rule.compute(x, y)
    return None if found != found or (rule.may_vanish and abs(found) < _LEAST_FLOAT) else found


def fitting(known: Mapping[int, object], memory: Memory, value: wire.Value) -> Any:
    """Return the number ``value`` as elements of ``memory`` hold it exactly; None where NumPy is to say how."""
    dtype, kind = memory.layout.dtype, type(value)
    if kind is View or kind is Ref:
        text, value, _ = _operand(known, value)
        return value if text == memory.layout.dtype_text and dtype.kind in "biu" else None
    if dtype.kind in "iu":
        if kind is int:
            least, most = LIMITS[dtype.char]
            return value if least <= value <= most else None  # type: ignore[operator]
    elif dtype == np.float64:
        if kind is int:
            return value if -EXACT_IN_DOUBLE <= value <= EXACT_IN_DOUBLE else None  # type: ignore[operator]
        if kind is float:  # no NaN, and no zero with a sign
            return value if value == value and (value or copysign(1, value) > 0) else None  # type: ignore[arg-type]
    return value if kind is bool and dtype.kind in "biuf" else None
