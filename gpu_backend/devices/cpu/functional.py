"""Functions of functions, parts of complex numbers, and cleaning of values."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from gpu_backend.devices.cpu.arrays import Array, is_scalar
from gpu_backend.devices.cpu.conversion import asarray
from gpu_backend.devices.cpu.dtypes import cast_into
from gpu_backend.devices.cpu.table import define


@define("cupy.piecewise")
def piecewise(x: Array, condlist: Any, funclist: Any) -> Array:
    if any(callable(function) for function in funclist):
        raise NotImplementedError("Callable functions are not supported currently")
    if isinstance(condlist, np.ndarray) or is_scalar(condlist):
        condlist = list(condlist) if np.ndim(condlist) > (1 if np.ndim(x) else 0) else [condlist]
    conditions = [np.asarray(c) for c in condlist]
    if not len(conditions) <= len(funclist) <= len(conditions) + 1:
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are "
            "expected"
        )
    result = np.zeros_like(x)
    if len(funclist) == len(conditions) + 1:
        rest = ~np.any(np.broadcast_arrays(*conditions), axis=0)
        result[np.broadcast_to(rest, x.shape)] = funclist[-1]
    for condition, value in zip(conditions, funclist, strict=False):
        result[np.broadcast_to(condition.astype(bool), x.shape)] = value
    return result


@define("cupy.real")
def real(val: object) -> Array:
    val = asarray(val)
    made: Array = val.real if val.dtype.kind == "c" else val
    return made


@define("cupy.imag")
def imag(val: object) -> Array:
    val = asarray(val)
    return val.imag if val.dtype.kind == "c" else np.zeros(val.shape, val.dtype)


@define("cupy.ndarray.conj", "cupy.ndarray.conjugate")
def conj(a: Array) -> Array:
    return np.conjugate(a, order="C") if a.dtype.kind == "c" else a


@define("cupy.angle")
def angle(z: object, deg: bool = False) -> Array:
    return np.angle(asarray(z), deg)


@define("cupy.nan_to_num")
def nan_to_num(x: ArrayLike, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    x = asarray(x)
    if x.dtype.kind not in "fc":
        made: Array = x.copy() if copy else x
        return made
    result = np.asarray(np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf))
    if copy:
        return result
    x[...] = result
    return x


@define("cupy.real_if_close")
def real_if_close(a: object, tol: float = 100) -> Array:
    return np.real_if_close(asarray(a), tol)


def _clipped(a: Array, low: Any, high: Any, out: Array | None) -> Array:
    if a.dtype.kind == "c":
        raise TypeError(f"Wrong type ({a.dtype}) of arguments for cupy_clip")
    result = a.copy() if low is None and high is None else _between(a, low, high)
    if out is None:
        return np.asarray(result, order="C")
    if out.shape != result.shape:
        raise ValueError("Out shape is mismatched")
    cast_into(out, result)
    return out


def _between(a: Array, low: Any, high: Any) -> Array:
    """Clip as CuPy's kernel does: a bound that is NaN bounds nothing, and of crossed ones the upper bounds."""
    clipped: Array = np.asarray(np.clip(a, low, high))  # refuses what does not fit, and finds the type of the result
    if clipped.dtype.kind == "f":
        values = a.astype(clipped.dtype)
        bounds = -np.inf if low is None else low, np.inf if high is None else high
        below, above = (np.asarray(one).astype(clipped.dtype) for one in bounds)
        clipped = np.where(values < below, below, np.where(values > above, above, values))
        clipped = np.where(below > above, above, clipped)
    return clipped


@define("cupy.clip")
def clip(a: object, a_min: object, a_max: object, out: Array | None = None) -> Array:
    return _clipped(asarray(a), a_min, a_max, out)


@define("cupy.ndarray.clip")
def clip_method(a: Array, min: object = None, max: object = None, out: Array | None = None) -> Array:
    return _clipped(a, min, max, out)


@define("cupy.around", "cupy.round", "cupy.round_", "cupy.ndarray.round")
def around(a: object, decimals: int = 0, out: Array | None = None) -> Array:
    a = asarray(a)
    result = np.asarray(np.round(a, decimals), order="C") if a.dtype.kind != "b" else a.astype(np.float16)
    if out is None:
        return result
    cast_into(out, result)
    return out


@define("cupy.isneginf")
def isneginf(x: Array, out: Array | None = None) -> Array:
    return np.isneginf(x, out)


@define("cupy.isposinf")
def isposinf(x: Array, out: Array | None = None) -> Array:
    return np.isposinf(x, out)


@define("cupy.array_equal")
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    return np.asarray(np.array_equal(a1, a2, equal_nan))


@define("cupy.array_equiv")
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    return np.asarray(np.array_equiv(a1, a2))


@define("cupy.allclose")
def allclose(a: ArrayLike, b: ArrayLike, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    return np.asarray(np.isclose(a, b, rtol, atol, equal_nan).all())


@define("cupy.isclose")
def isclose(a: ArrayLike, b: ArrayLike, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    return np.asarray(np.isclose(a, b, rtol, atol, equal_nan))


def _bit_order(bitorder: str) -> Literal["big", "little"]:
    if bitorder not in ("big", "little"):
        raise ValueError("bitorder must be either 'big' or 'little'")
    return "big" if bitorder == "big" else "little"


@define("cupy.packbits")
def packbits(a: Array, axis: int | None = None, bitorder: str = "big") -> Array:
    made: Array = np.packbits(a, axis, _bit_order(bitorder))
    return made


@define("cupy.unpackbits")
def unpackbits(a: Array, axis: int | None = None, bitorder: str = "big") -> Array:
    made: Array = np.unpackbits(a, axis, bitorder=_bit_order(bitorder))
    return made


@define("cupy.tril_indices")
def tril_indices(n: object, k: int = 0, m: int | None = None) -> Any:
    return np.tril_indices(_as_int(n), k, m)


@define("cupy.triu_indices")
def triu_indices(n: object, k: int = 0, m: int | None = None) -> Any:
    return np.triu_indices(_as_int(n), k, m)


def _as_int(n: Any) -> int:
    if isinstance(n, np.ndarray) and n.ndim:
        raise TypeError("only integer scalar arrays can be converted to a scalar index")
    return int(n)
