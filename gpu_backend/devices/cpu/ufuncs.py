"""CuPy's ufuncs: NumPy's of the same name, and the loops where a GPU computes something else."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.table import define_alias, define_value
from gpu_backend.devices.cpu.ufunc import Ufunc
from gpu_backend.devices.cpu.ufunc_methods import define_methods
from gpu_backend.devices.cpu.ufunc_types import UFUNC_ALIASES, UFUNC_TYPES

_SIGNED = "bhilq"
_INTEGERS = "bBhHiIlLqQ"


def _wide(x: Array) -> Array:
    """Return half precision as single, in which a GPU computes it."""
    return x.astype(np.float32) if x.dtype.char == "e" else x


def _floor_divide(x: Array, y: Array) -> Array:
    """Floor of the rounded quotient. NumPy corrects the quotient: 1.0 // 0.1 is 9 there and 10 here."""
    return np.floor(_wide(x) / _wide(y))


def _remainder(x: Array, y: Array) -> Array:
    return _fused_remainder(_wide(x), _wide(y), _floor_divide(x, y))


def _fused_remainder(x: Array, y: Array, quotient: Array) -> Array:
    """Return x - quotient * y. A GPU rounds this once; single precision can do so by way of double."""
    if x.dtype.char == "f" and y.dtype.char == "f":
        return (x.astype(np.float64) - quotient.astype(np.float64) * y).astype(np.float32)
    made: Array = x - quotient * y
    return made


def _divmod(x: Array, y: Array) -> tuple[Array, Array]:
    quotient = _floor_divide(x, y)
    return quotient, _fused_remainder(_wide(x), _wide(y), quotient)


def _integer_power(x: Array, y: Array) -> Array:
    """Integer power; a negative exponent gives 0, or 1 and -1 for the bases 1 and -1."""
    negative = y < 0
    result: Array = np.power(x, np.where(negative, 0, y).astype(y.dtype))
    if negative.any():
        odd = (y & 1).astype(bool)
        inverse = np.where(x == 1, 1, np.where(x == -1, np.where(odd, -1, 1), 0))
        result = np.where(negative, inverse, result)
    return result


def _complex_power(x: Array, y: Array) -> Array:
    return np.where(y == 0, x.dtype.type(1), np.power(x, y))


def _wide_complex_power(x: Array, y: Array) -> Array:
    return _complex_power(x.astype(np.complex128), y.astype(np.complex128))


def _ldexp(x: Array, y: Array) -> Array:
    made: Array = np.ldexp(x, y.astype("l"))
    return made


def _logical_and(x: Array, y: Array) -> Array:
    made: Array = np.logical_and(x != 0, y != 0)
    return made


def _logical_or(x: Array, y: Array) -> Array:
    made: Array = np.logical_or(x != 0, y != 0)
    return made


def _divide_integers(x: Array, y: Array) -> Array:
    return np.true_divide(x.astype(np.float64), y.astype(np.float64))


def _power_of_bools(x: Array, y: Array) -> Array:
    return np.power(x.astype(np.int8), y.astype(np.int8))


def _integer_reciprocal(x: Array) -> Array:
    return np.where(x == 0, 0, 1 // np.where(x == 0, 1, np.abs(x)) * np.sign(x)).astype(x.dtype)


def _exp2(x: Array) -> Array:
    made: Array = np.power(x.dtype.type(2), x)
    return made


def _complex_expm1(x: Array) -> Array:
    """The exponential less one, as a GPU computes it for complex numbers: without NumPy's care for small ones."""
    made: Array = np.exp(x) - x.dtype.type(1)
    return made


def _complex_log1p(x: Array) -> Array:
    made: Array = np.log(x + x.dtype.type(1))
    return made


def _copy(x: Array) -> Array:
    return x.copy()


def _sinc(x: Array) -> Array:
    wide = _wide(x)
    scaled = wide * wide.dtype.type(np.pi)
    small = np.abs(wide) <= 1e-9
    made: Array = np.where(small, wide.dtype.type(1), np.sin(scaled) / np.where(small, wide.dtype.type(1), scaled))
    return made


def _i0(x: Array) -> Array:
    result: Array = special.i0(_wide(x)) if x.dtype.kind == "f" else special.iv(0, x)
    return result


def _for(chars: str, nin: int, function: object, nout: int = 1) -> dict[str, Any]:
    return {f"{char * nin}->{char * nout}": function for char in chars}


_SPECIAL: dict[str, dict[str, Any]] = {
    "floor_divide": _for("efd", 2, _floor_divide),
    "remainder": _for("efd", 2, _remainder),
    "divmod": _for("efd", 2, _divmod, 2),
    "power": {"??->b": _power_of_bools} | _for(_SIGNED, 2, _integer_power) | _for("FD", 2, _complex_power),
    "true_divide": dict.fromkeys(("qq->d", "qQ->d", "Qq->d", "QQ->d"), _divide_integers),
    "float_power": {"DD->D": _complex_power, "FF->D": _wide_complex_power},
    "ldexp": {"dq->d": _ldexp},
    "logical_and": dict.fromkeys(("qQ->?", "Qq->?"), _logical_and),
    "logical_or": dict.fromkeys(("qQ->?", "Qq->?"), _logical_or),
    "reciprocal": _for(_INTEGERS, 1, _integer_reciprocal),
    "exp2": _for("FD", 1, _exp2),
    "expm1": _for("FD", 1, _complex_expm1),
    "log1p": _for("FD", 1, _complex_log1p),
    # NumPy before 2.1 rounds integers by way of float64.
    **{name: _for("?" + _INTEGERS, 1, _copy) for name in ("floor", "ceil", "trunc", "fix")},
}

#: Functions that stand in for ufuncs NumPy lacks or has as plain functions.
_COMPUTE: dict[str, Any] = {"fix": np.trunc, "i0": _i0, "sinc": _sinc}


def _define_all() -> None:
    for name in UFUNC_TYPES:
        compute = _COMPUTE.get(name) or getattr(np, name)
        ufunc = Ufunc(name, compute, _SPECIAL.get(name))
        define_value(ufunc, f"cupy.{name}")
        define_methods(ufunc)
    define_value(Ufunc, "cupy.ufunc")
    for alias, name in UFUNC_ALIASES.items():
        define_alias(f"cupy.{alias}", f"cupy.{name}")
        for method in ("outer", "at", "reduce", "accumulate", "reduceat"):
            define_alias(f"cupy.{alias}.{method}", f"cupy.{name}.{method}")
    # The one operator that is not its ufunc on a GPU: it squares for exponent 2, as NumPy's power does anyway.
    define_alias("cupy.ndarray.__pow__", "cupy.power")


_define_all()
