"""Products of vectors, matrices and tensors."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from gpu_backend.devices.cpu.arrays import Array, Casting, in_c_order
from gpu_backend.devices.cpu.dtypes import cast_into, require_castable
from gpu_backend.devices.cpu.memory import LEDGER
from gpu_backend.devices.cpu.table import define


def into(out: Array | None, result: Array, casting: Casting = "same_kind") -> Array:
    """Return ``result`` in C order, or written into ``out``."""
    result = np.asarray(result, order="C")
    if out is None:
        return result
    if out.shape != result.shape:
        raise ValueError("Output array has an invalid size" if out.size != result.size else "Out shape is mismatched")
    require_castable(result.dtype, out.dtype, casting, "output operand")
    cast_into(out, result)
    return out


def _require_product(a: Array, b: Array, shape: tuple[int, ...]) -> None:
    LEDGER.require(int(np.prod(shape, dtype=np.int64)) * np.result_type(a, b).itemsize)


def _require_array(name: str, value: object) -> None:
    if not isinstance(value, np.ndarray):
        kind = "cupy._core.core._ndarray_base"
        raise TypeError(f"Argument {name!r} has incorrect type (expected {kind}, got {type(value).__name__})")


@define("cupy.dot", "cupy.ndarray.dot")
def dot(a: Any, b: Any, out: Array | None = None) -> Array:
    if not isinstance(a, np.ndarray):
        raise AttributeError(f"{type(a).__name__!r} object has no attribute 'dot'")
    _require_array("b", b)
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return into(out, np.multiply(a, b))
    inner = -1 if b.ndim == 1 else -2
    if a.shape[-1] != b.shape[inner]:
        raise ValueError("Axis dimension mismatch")
    return into(out, np.dot(a, b))


@define("cupy.matmul", "cupy.linalg.matmul", "cupy.ndarray.__matmul__")
def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    axes: Any = None,
    axis: Any = None,
    keepdims: bool = False,
    casting: Casting = "same_kind",
    dtype: Any = None,
    signature: Any = None,
    order: str = "K",
) -> Array:
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        other = b if isinstance(a, np.ndarray) else a
        if isinstance(other, (list, tuple)):
            raise TypeError(f"Unsupported type {type(other)}")
        _require_array("a", a)
        _require_array("b", b)
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        raise ValueError("matmul: Input operand does not have enough dimensions")
    out = out[0] if isinstance(out, tuple) else out
    options: dict[str, Any] = {"axes": axes} if axes is not None else {}
    if dtype is not None:
        options["dtype"] = dtype
    _check_inner(a, b) if axes is None else None
    result = np.matmul(a, b, casting=casting, **options)
    return into(out, result, casting)


@define("cupy.convolve")
def convolve(a: Array, v: Array, mode: Literal["full", "same", "valid"] = "full") -> Array:
    if v.ndim > 1:
        raise ValueError("v cannot be multidimensional array")
    made: Array = np.convolve(a.ravel(), v.ravel(), mode)
    return made


def _check_inner(a: Array, b: Array) -> None:
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else -1]:
        raise ValueError("Axis dimension mismatch")


@define("cupy.vdot")
def vdot(a: Array, b: Array) -> Array:
    if a.size != b.size:
        raise ValueError("Axis dimension mismatch")
    return np.asarray(np.vdot(a, b))


@define("cupy.inner")
def inner(a: Array, b: Array) -> Array:
    if a.ndim and b.ndim and a.shape[-1] != b.shape[-1]:
        raise ValueError("Axis dimension mismatch")
    return np.asarray(np.inner(a, b), order="C")


@define("cupy.outer")
def outer(a: Array, b: Array, out: Array | None = None) -> Array:
    _require_product(a, b, (a.size, b.size))
    return into(out, np.multiply(a.ravel()[:, None], b.ravel()[None, :]))


@define("cupy.tensordot")
def tensordot(a: Array, b: Array, axes: Any = 2) -> Array:
    if a.ndim == 0 or b.ndim == 0:
        if axes not in (0, ((), ())):
            raise ValueError("An input is zero-dim while axes has dimensions")
        return np.asarray(np.multiply(a, b))
    if isinstance(axes, Sequence):
        if len(axes) != 2:
            raise ValueError("Axes must consist of two arrays.")
        left, right = (tuple(x) if isinstance(x, Sequence) else (x,) for x in axes)
    else:
        left, right = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    if len(left) != len(right):
        raise ValueError("Axes length mismatch")
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j]:
            raise ValueError("Axis dimension mismatch")
    return np.asarray(np.tensordot(a, b, (left, right)), order="C")


@define("cupy.einsum")
def einsum(*operands: Any, **kwargs: Any) -> Array:
    out = kwargs.pop("out", None)
    dtype = kwargs.pop("dtype", None)
    kwargs.pop("optimize", None)
    if dtype is not None:
        kwargs["dtype"], kwargs["casting"] = dtype, kwargs.get("casting", "unsafe")
    result = np.asarray(np.einsum(*operands, **kwargs))
    if out is None and any(isinstance(x, np.ndarray) and np.shares_memory(x, result) for x in operands):
        return result  # a view of its operand, as CuPy's
    return into(out, result, "unsafe")


@define("cupy.kron")
def kron(a: Any, b: Any) -> Any:
    if all(isinstance(x, numbers.Number) for x in (a, b)):
        return a * b
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    LEDGER.require(a.size * b.size * np.result_type(a, b).itemsize)
    return in_c_order(np.kron(a, b))


@define("cupy.cross")
def cross(a: object, b: object, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    return np.asarray(np.cross(np.asarray(a), np.asarray(b), axisa, axisb, axisc, axis))


@define("cupy.linalg.cross")
def linalg_cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    if x1.shape != x2.shape:
        raise ValueError("x1 and x2 must have the same shape")
    if x1.ndim == 0:
        raise ValueError("cross() requires arrays of dimension at least 1")
    if x1.shape[axis] != 3:
        raise ValueError("cross() dimension must equal 3")
    return cross(x1, x2, axis=axis)
