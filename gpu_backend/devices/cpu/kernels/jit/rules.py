"""Types and C++ code of operators and ufuncs on numbers.

The loop of a ufunc is chosen as CuPy chooses it: the first of the ufunc's signatures that all operands may be cast to.
In mode "numpy" casts are NumPy's safe ones; in mode "cuda" any type may be cast to a later one of bool, the integers by
size, the floats, the complex numbers.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.kernels.jit.values import DType, Mode, Scalar, Value
from gpu_backend.devices.cpu.ufunc_types import REFUSED, UFUNC_ALIASES, UFUNC_TYPES

_CHARS = "?bBhHiIlLqQefdFD"
_ORDERS = ("less", "less_equal", "greater", "greater_equal")

#: Python's operators as ufuncs.
UFUNC_OF: dict[type[ast.AST], str] = {
    ast.And: "logical_and", ast.Or: "logical_or", ast.Not: "logical_not", ast.Add: "add", ast.Sub: "subtract",
    ast.Mult: "multiply", ast.Pow: "power", ast.Div: "true_divide", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
    ast.LShift: "left_shift", ast.RShift: "right_shift", ast.BitOr: "bitwise_or", ast.BitAnd: "bitwise_and",
    ast.BitXor: "bitwise_xor", ast.Invert: "invert", ast.USub: "negative", ast.Eq: "equal", ast.NotEq: "not_equal",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal",
}  # fmt: skip

#: Python's operators on constants.
PYTHON_OF: dict[type[ast.AST], Callable[..., Any]] = {
    ast.And: lambda x, y: x and y, ast.Or: lambda x, y: x or y, ast.Not: operator.not_, ast.Add: operator.add,
    ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor, ast.Invert: operator.invert,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip

# Where the loops for scalars are others than those for arrays: no order of complex numbers, no wide logical_not.
_SCALAR_LOOPS = {
    **dict.fromkeys(_ORDERS, tuple(loop for loop in UFUNC_TYPES["less"] if loop[0] not in "FD")),
    "logical_not": tuple(f"{c}->?" for c in _CHARS),
}

_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "true_divide": "/", "left_shift": "<<", "right_shift": ">>",
    "bitwise_or": "|", "bitwise_and": "&", "bitwise_xor": "^", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "logical_and": "&&", "logical_or": "||",
}  # fmt: skip
_PREFIX = {"negative": "-", "positive": "+", "invert": "~"}

#: Ufuncs that ``shim/gpu/python.h`` has as functions in namespace ``py``.
FUNCTIONS = frozenset(
    """absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt ceil conjugate copysign cos cosh deg2rad equal
    exp exp2 expm1 fabs floor floor_divide fmax fmin fmod hypot isfinite isinf isnan log log10 log1p log2 logaddexp
    logical_not logical_xor maximum minimum nextafter power rad2deg reciprocal remainder rint sign sin sinh sqrt square
    tan tanh trunc""".split()
)


def ufunc_name(name: str) -> str | None:
    """Return the ufunc that is called ``name``, or None if kernels cannot call any of that name."""
    name = UFUNC_ALIASES.get(name, name)
    return name if name in FUNCTIONS or name in _INFIX or name in _PREFIX else None


def can_cast(source: DType, target: DType, mode: Mode) -> bool:
    """Tell whether operands of ``source`` may run in a loop of ``target``."""
    if mode == "numpy":
        return np.can_cast(source, target)
    return _CHARS.find(source.char) <= _CHARS.find(target.char)


def choose_loop(name: str, dtypes: Sequence[DType], mode: Mode, dtype: object = None) -> tuple[list[DType], DType]:
    """Return the operand types and the result type of the loop of ufunc ``name``.

    Raises
    ------
    TypeError
        If the ufunc has no loop for these operands, or refuses it.
    """
    loops = _SCALAR_LOOPS.get(name) or UFUNC_TYPES[name]
    for loop in loops:
        inputs, _, output = loop.partition("->")
        if len(inputs) != len(dtypes):
            raise ValueError("invalid number of arguments")
        if dtype is not None:
            fits = np.dtype(output) == np.dtype(dtype)  # type: ignore[call-overload]
        else:
            fits = all(can_cast(own, np.dtype(char), mode) for own, char in zip(dtypes, inputs, strict=True))
        if fits:
            if reason := REFUSED.get((name, loop)):
                raise TypeError(reason)
            return [np.dtype(char) for char in inputs], np.dtype(output)
    listed = [np.dtype(d).type for d in dtypes]
    raise TypeError(f'"cupy_{name}" does not support for the input types: {listed}')


def apply(name: str, operands: Sequence[Value], result: DType) -> Value:
    """Return the call of ufunc ``name`` on operands that have the types of its loop already.

    As in CuPy, what C++ computes in a wider type than the result (int for 8 and 16 bits, float for float16) stays so
    until it is stored.
    """
    codes = [operand.code for operand in operands]
    first = operands[0].type
    assert isinstance(first, Scalar)
    boolean = first.dtype.kind == "b"
    if name == "true_divide" and first.dtype.kind in "iu":
        codes = [f"static_cast<double>({code})" for code in codes]
    if boolean and name in ("add", "multiply", "maximum", "minimum"):
        name = "logical_or" if name in ("add", "maximum") else "logical_and"
    if boolean and name == "invert":
        code = f"(!{codes[0]})"
    elif name in (*_ORDERS, "equal", "not_equal") and operands[0].type != operands[1].type:  # int64 with uint64
        code = f"(py::order({', '.join(codes)}) {_INFIX[name]} 0)"
    elif name in _INFIX:
        code = f"({codes[0]} {_INFIX[name]} {codes[1]})"
    elif name in _PREFIX:
        code = f"({_PREFIX[name]}{codes[0]})"
    else:
        code = f"py::{name}<{first.cpp}>({', '.join(codes)})"
    return Value(code, Scalar(result))
