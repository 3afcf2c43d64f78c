"""What kernels written in Python may call beside ufuncs: ``cupyx.jit``'s functions and some of Python's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from gpu_backend.devices.cpu.kernels.jit.values import (
    INT32,
    INT64,
    UINT32,
    ArrayOf,
    Constant,
    Dimensions,
    Expression,
    Mode,
    Pointer,
    Range,
    Scalar,
    Value,
    Void,
)

Call = Callable[..., Expression]

_FULL_MASK = 0xFFFFFFFF
_SHUFFLED = frozenset("int32 uint32 int64 uint64 float16 float32 float64".split())


class Compiler(Protocol):
    """What is used here of `expressions.ExpressionCompiler`."""

    @property
    def mode(self) -> Mode: ...
    def fresh_name(self, prefix: str) -> str: ...
    def declare(self, text: str) -> None: ...
    def number(self, value: Expression) -> Value: ...
    def cast(self, value: Expression, target: Scalar, casting: Any = "unsafe") -> Value: ...
    def tuple_of(self, items: tuple[Value, ...]) -> Value: ...
    def index(self, array: Expression, index: Expression) -> Expression: ...
    def ufunc(self, name: str, operands: list[Expression]) -> Value: ...


def range_(compiler: Compiler, *bounds: Expression, unroll: Expression | None = None) -> Expression:
    """Return ``range(...)``, with ``jit.range``'s ``unroll``."""
    if not 1 <= len(bounds) <= 3:
        raise TypeError(f"range expected 1 to 3 arguments, got {len(bounds)}")
    start, stop = (Constant(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) == 3 else Constant(1)
    count: Any = None
    if unroll is not None:
        if not all(isinstance(part, Constant) for part in (start, stop, step, unroll)):
            raise TypeError("loop unrolling requires constant start, stop, step and unroll value")
        count = unroll.value if isinstance(unroll, Constant) else None
        if count is not None and not isinstance(count, int):
            raise TypeError(f"unroll value expected to be of type int, got {type(count).__name__}")
    first, last, each = (_integer(compiler, part) for part in (start, stop, step))
    sign = 0
    if isinstance(step, Constant):
        sign = 1 if step.value >= 0 else -1
    elif _number_type(each).dtype.kind == "u":
        sign = 1
    kind = INT64 if compiler.mode == "numpy" else _number_type(last)
    return Range(first, last, each, kind, sign, 1 if count is False else count)


def _number_type(value: Value) -> Scalar:
    if not isinstance(value.type, Scalar):
        raise TypeError("range supports only for integer type.")
    return value.type


def _integer(compiler: Compiler, bound: Expression) -> Value:
    value = compiler.number(bound)
    if _number_type(value).dtype.kind not in "iu":
        raise TypeError("range supports only for integer type.")
    return value


def len_(compiler: Compiler, array: Expression) -> Expression:
    """Return ``len(array)``."""
    if not isinstance(array, Value) or not isinstance(array.type, ArrayOf):
        raise TypeError("len() supports only array type")
    if not array.type.ndim:
        raise TypeError("len() of unsized array")
    return Value(f"static_cast<long long>({array.code}.shape()[0])", INT64)


def _extreme(name: str) -> Call:
    def call(compiler: Compiler, *values: Expression) -> Expression:
        if len(values) < 2:
            raise TypeError(f"{name[:3]}() expects at least 2 arguments, got {len(values)}")
        return functools.reduce(lambda a, b: compiler.ufunc(name, [a, b]), values)

    return call


def syncthreads(compiler: Compiler) -> Expression:
    """Return ``__syncthreads()``."""
    return Value("__syncthreads()", Void())


def syncwarp(compiler: Compiler, *, mask: Expression | None = None) -> Expression:
    """Return ``__syncwarp(mask)``."""
    if mask is None:
        return Value("__syncwarp()", Void())
    if isinstance(mask, Constant):
        if not 0 <= mask.value <= _FULL_MASK:
            raise ValueError("mask is out of range")
        return Value(f"__syncwarp({mask.value}u)", Void())
    return Value(f"__syncwarp({compiler.cast(mask, INT32).code})", Void())


def shared_memory(
    compiler: Compiler, dtype: Expression, size: Expression, alignment: Expression | None = None
) -> Expression:
    """Declare shared memory of the block; ``size`` None for the dynamic part."""
    if not isinstance(dtype, Constant) or not isinstance(size, Constant):
        raise TypeError("the dtype and the size of shared memory must be constants")
    kind = Pointer(np.dtype(dtype.value))
    name = compiler.fresh_name("_smem")
    element = Scalar(kind.dtype).cpp
    if size.value is None:
        compiler.declare(f"{element} *const {name} = reinterpret_cast<{element} *>(::gpu::dynamic_shared);")
    else:
        wanted = alignment.value if isinstance(alignment, Constant) and alignment.value else f"alignof({element})"
        compiler.declare(f"alignas({wanted}) __shared__ {element} {name}[{int(size.value)}];")
    return Value(name, kind)


def _atomic(operation: str, dtypes: str) -> Call:
    name = f"atomic{operation}"

    def call(compiler: Compiler, array: Expression, index: Expression, *values: Expression) -> Expression:
        if not isinstance(array, Value) or not isinstance(array.type, ArrayOf | Pointer):
            raise TypeError("The first argument must be of array type.")
        if len(values) != (2 if operation == "CAS" else 1):
            raise TypeError(f"`{name}` got {len(values)} values")
        target = compiler.index(array, index)
        if not isinstance(target, Value) or not isinstance(target.type, Scalar):
            raise TypeError("The index must select one element.")
        if target.type.dtype.name not in dtypes.split():
            raise TypeError(f"`{name}` does not support {target.type.dtype} input.")
        operands = ", ".join(compiler.cast(value, target.type, "same_kind").code for value in values)
        return Value(f"{name}(&{target.code}, {operands})", target.type)

    return call


def _grid(code: str) -> Call:
    def call(compiler: Compiler, ndim: Expression) -> Expression:
        if not isinstance(ndim, Constant) or not isinstance(ndim.value, int):
            raise TypeError("ndim must be an integer")
        if not 1 <= ndim.value <= 3:
            raise ValueError("Only ndim=1,2,3 are supported")
        parts = tuple(Value(f"({code.format(n=n)})", UINT32) for n in "xyz"[: ndim.value])
        return parts[0] if len(parts) == 1 else compiler.tuple_of(parts)

    return call


def laneid(compiler: Compiler) -> Expression:
    """Return the thread's place in its warp."""
    return Value("::gpu::lane_id()", UINT32)


def _shuffle(operation: str) -> Call:
    name = f"__shfl_{operation}sync"

    def call(
        compiler: Compiler,
        mask: Expression,
        value: Expression,
        other: Expression,
        *,
        width: Expression | None = None,
    ) -> Expression:
        var = compiler.number(value)
        if not isinstance(var.type, Scalar) or var.type.dtype.name not in _SHUFFLED:
            raise TypeError(f"`{name}` does not support {var.type} input.")
        if not isinstance(mask, Constant):
            raise TypeError("mask must be an integer")
        if not 0 <= mask.value <= _FULL_MASK:
            raise ValueError("mask is out of range")
        if isinstance(width, Constant) and width.value not in (2, 4, 8, 16, 32):
            raise ValueError("width needs to be power of 2")
        lane = compiler.cast(other, UINT32 if operation in ("up_", "down_") else INT32, "same_kind")
        lanes = compiler.cast(width or Constant(32), INT32, "same_kind")
        return Value(f"{name}({mask.value}u, {var.code}, {lane.code}, {lanes.code})", var.type)

    return call


_WORDS = "int32 uint32 uint64"

#: The names of ``cupyx.jit`` that kernels use.
JIT_NAMES: dict[str, Any] = {
    "threadIdx": Value("threadIdx", Dimensions()),
    "blockIdx": Value("blockIdx", Dimensions()),
    "blockDim": Value("blockDim", Dimensions()),
    "gridDim": Value("gridDim", Dimensions()),
    "warpsize": Value("warpSize", INT32),
    "range": range_,
    "syncthreads": syncthreads,
    "syncwarp": syncwarp,
    "shared_memory": shared_memory,
    "grid": _grid("threadIdx.{n} + blockIdx.{n} * blockDim.{n}"),
    "gridsize": _grid("blockDim.{n} * gridDim.{n}"),
    "laneid": laneid,
    "atomic_add": _atomic("Add", f"{_WORDS} float16 float32 float64"),
    "atomic_sub": _atomic("Sub", "int32 uint32"),
    "atomic_exch": _atomic("Exch", f"{_WORDS} float32"),
    "atomic_min": _atomic("Min", _WORDS),
    "atomic_max": _atomic("Max", _WORDS),
    "atomic_inc": _atomic("Inc", "uint32"),
    "atomic_dec": _atomic("Dec", "uint32"),
    "atomic_cas": _atomic("CAS", f"{_WORDS} uint16"),
    "atomic_and": _atomic("And", _WORDS),
    "atomic_or": _atomic("Or", _WORDS),
    "atomic_xor": _atomic("Xor", _WORDS),
    "shfl_sync": _shuffle(""),
    "shfl_up_sync": _shuffle("up_"),
    "shfl_down_sync": _shuffle("down_"),
    "shfl_xor_sync": _shuffle("xor_"),
}

#: Python's own functions that kernels use.
PYTHON_NAMES: dict[Any, Call] = {range: range_, len: len_, min: _extreme("minimum"), max: _extreme("maximum")}

BUILTINS = frozenset(call for call in (*JIT_NAMES.values(), *PYTHON_NAMES.values()) if callable(call))
