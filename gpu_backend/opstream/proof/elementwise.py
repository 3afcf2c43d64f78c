"""Rules of functions that work element by element and are no ufuncs of their own, and of the operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.opstream.proof import ufuncs
from gpu_backend.opstream.proof.arguments import BOOL
from gpu_backend.opstream.proof.outcome import CannotProve, Later, refusal
from gpu_backend.opstream.proof.promotion import result_type
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Shadow, array, as_array, like, new, ufunc, unwrapped
from gpu_backend.opstream.proof.value_shapes import nonzero

_KEPT = "?bBhHiIlLefdFD"


def _alike(operands: int, characters: str) -> tuple[str, ...]:
    return tuple([f"{char * operands}->{char}" for char in characters])


WHERE = ufuncs.unlisted("cupy_where", *[f"?{char}{char}->{char}" for char in _KEPT])
CLIP = ufuncs.unlisted("cupy_clip", *_alike(3, "?bBhHiIlLefd"))
NAN_TO_NUM = ufuncs.unlisted("cupy_nan_to_num_", *_alike(4, "?bBhHiIlLefd"), "Ffff->F", "Dddd->D")
ANGLE = ufuncs.unlisted("cupy_angle", "?->d", "e->e", "f->f", "d->d", "F->f", "D->d")
ANGLE_DEG = ufuncs.unlisted("cupy_angle_deg", "?->d", "e->e", "f->f", "d->d", "F->f", "D->d")
ROUND = ufuncs.unlisted("cupy_round", "?l->e", *[f"{char}l->{char}" for char in "bBhHiIlLefdFD"])
ROUND_INT = ufuncs.unlisted("cupy_round_neg_uint", "?l->e", *[f"{char}l->{char}" for char in "bBhHiIlL"])
IS_CLOSE = ufuncs.unlisted("cupy_is_close", "eeee?->?", "ffff?->?", "dddd?->?")
IS_CLOSE_COMPLEX = ufuncs.unlisted("cupy_is_close_complex", "FFff?->?", "DDdd?->?")


@rule("cupy.where")
def where(condition: Any, x: Any = None, y: Any = None) -> Shadow | Later:
    """As CuPy; with one argument, the indices of what is not zero."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise refusal(ValueError, "Must provide both 'x' and 'y' or neither.")
    return ufunc(WHERE, _as_bool(array(condition)), x, y)


def _as_bool(condition: Shadow) -> Shadow:
    return condition if condition.dtype == BOOL else Shadow(like(condition.layout, BOOL, "K"))


@rule("cupy.clip")
def clip(a: Any, a_min: Any, a_max: Any, out: Any = None) -> Shadow:
    """As CuPy."""
    return clip_method(a, a_min, a_max, out)


@rule("cupy.ndarray.clip")
def clip_method(a: Any, min: Any = None, max: Any = None, out: Any = None) -> Shadow:
    """As CuPy."""
    low, high = _clip_bounds(array(a), min, max)
    return ufunc(CLIP, a, low, high, out=out)


def _clip_bounds(a: Shadow, low: Any, high: Any) -> tuple[Any, Any]:
    if a.dtype.kind == "f":
        return (-a.dtype.type(np.inf) if low is None else low), (a.dtype.type(np.inf) if high is None else high)
    if a.dtype.kind in "iu":
        info = np.iinfo(a.dtype)
        return (int(info.min) if low is None else low), (int(info.max) if high is None else high)
    return low, high


@rule("cupy.around", "cupy.round", "cupy.ndarray.round")
def around(a: Any, decimals: Any = 0, out: Any = None) -> Shadow:
    """As CuPy."""
    if not isinstance(decimals, int) or isinstance(decimals, bool):
        raise CannotProve("decimals that are no int")
    if decimals < 0 and array(a).dtype.kind in "iu":
        return ufunc(ROUND_INT, a, -decimals, out=out)
    return ufunc(ROUND, array(a), decimals, out=out)


@rule("cupy.real_if_close")
def real_if_close(a: Any, tol: Any = 100) -> Shadow:
    """As CuPy, where the dtype decides."""
    if array(a).dtype.kind == "c":
        raise CannotProve("whether the imaginary part is small depends on values")
    return array(a)


@rule("cupy.angle")
def angle(z: Any, deg: Any = False) -> Shadow:
    """As CuPy."""
    return ufunc(ANGLE_DEG if deg else ANGLE, z)


@rule("cupy.nan_to_num")
def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Shadow:
    """As CuPy, for host values in place of NaN and infinities."""
    source = array(x)
    if not all(value is None or isinstance(value, (int, float)) for value in (nan, posinf, neginf)):
        raise CannotProve("arrays in place of NaN")
    if max(abs(value or 0) for value in (nan, posinf, neginf)) > 1e4 and source.dtype.char not in "dD":
        raise CannotProve("a value beyond the range of the dtype")
    made = Shadow(like(source.layout, source.dtype, "K")) if copy else source
    value = new((), np.dtype(source.dtype.char.lower()) if source.dtype.kind == "c" else source.dtype)
    return ufunc(NAN_TO_NUM, source, value, value, value, out=made)


@rule("cupy.isclose")
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Shadow:
    """As CuPy: scalars become arrays."""
    left, right = as_array(a), as_array(b)
    has_complex = "c" in (left.dtype.kind, right.dtype.kind)
    return ufunc(IS_CLOSE_COMPLEX if has_complex else IS_CLOSE, left, right, rtol, atol, equal_nan)


@rule("cupy.allclose")
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Shadow:
    """As CuPy."""
    isclose(a, b, rtol, atol, equal_nan)
    return new((), BOOL)


@rule("cupy.array_equal")
def array_equal(a1: Any, a2: Any, equal_nan: Any = False) -> Shadow:
    """As CuPy, where it does not look at the values on its way."""
    if a1.shape == a2.shape:  # of arrays of NumPy as well: only where they are compared does it matter whose they are
        ufunc("equal", a1, a2)
        if equal_nan:
            raise CannotProve("NaNs are looked at")
    return new((), BOOL)


@rule("cupy.array_equiv")
def array_equiv(a1: Any, a2: Any) -> Shadow:
    """As CuPy."""
    array(a1), array(a2)
    return new((), BOOL)


@rule("cupy.real", "cupy.ndarray.real")
def real(val: Any) -> Shadow:
    """As CuPy: a view of complex numbers, else the array itself."""
    return array(val).real


@rule("cupy.imag", "cupy.ndarray.imag")
def imag(val: Any) -> Shadow:
    """As CuPy: a view of complex numbers, else new zeros."""
    return array(val).imag


@rule("cupy.ndarray.conj", "cupy.ndarray.conjugate")
def conj(a: Any) -> Shadow:
    """As CuPy: the array itself unless it is complex."""
    return ufunc("conjugate", a) if array(a).dtype.kind == "c" else a


@rule("cupy.isreal", "cupy.iscomplex")
def isreal(x: Any) -> Shadow:
    """As CuPy, for arrays."""
    return new(array(x).shape, BOOL)


@rule("cupy.isneginf", "cupy.isposinf")
def isneginf(x: Any, out: Any = None) -> Shadow:
    """As CuPy."""
    source = array(x)
    infinite = ufunc("isinf", source)
    if source.dtype.kind == "c":
        words = f"This operation is not supported for {source.dtype} values because it would be ambiguous."
        raise refusal(TypeError, words)
    return ufunc("logical_and", infinite, ufunc("signbit", source), out=out)


@rule("cupy.select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Shadow:
    """As CuPy, for a default of Python's own."""
    if not (isinstance(condlist, list) and isinstance(choicelist, list) and len(condlist) == len(choicelist) > 0):
        raise CannotProve("conditions and choices that are no lists of one length")
    dtype = result_type(*[array(choice).layout for choice in choicelist])
    if type(default) not in (int, float) or not np.can_cast(type(default), dtype, "same_kind") or abs(default) > 100:
        raise CannotProve("a default of another kind")
    if any(array(condition).dtype != BOOL for condition in condlist):
        raise CannotProve("conditions that are not bool")
    if any(one.shape != condlist[0].shape for one in [*condlist, *choicelist]):
        raise CannotProve("conditions and choices of several shapes")
    if not condlist[0].shape or (default < 0 and dtype.kind == "u"):
        raise CannotProve("choices without axes")
    return new(condlist[0].shape, dtype)


def _operator(name: str, *, reflected: bool = False) -> Callable[..., Shadow]:
    def operate(a: Any, b: Any) -> Shadow:
        if not isinstance(b, (Shadow, int, float, complex, np.generic)):
            raise CannotProve(f"an operand of {type(b).__name__}")
        return ufunc(name, b, a) if reflected else ufunc(name, a, b)

    return operate


def _inplace(name: str) -> Callable[..., Shadow]:
    def operate(a: Any, b: Any) -> Shadow:
        return ufunc(name, a, b, out=a)

    return operate


_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "lshift": "left_shift", "rshift": "right_shift", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "pow": "power",
}  # fmt: skip
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_UNARY = {"neg": "negative", "abs": "absolute", "invert": "invert"}

for _dunder, _name in _BINARY.items():
    if _dunder != "pow":
        rule(f"cupy.ndarray.__{_dunder}__")(_operator(_name))
    rule(f"cupy.ndarray.__r{_dunder}__")(_operator(_name, reflected=True))
    rule(f"cupy.ndarray.__i{_dunder}__")(_inplace(_name))
for _dunder, _name in _COMPARISONS.items():
    rule(f"cupy.ndarray.__{_dunder}__")(_operator(_name))


def _unary_rule(name: str) -> Callable[..., Shadow]:
    return lambda a: ufunc(name, a)


for _dunder, _name in _UNARY.items():
    rule(f"cupy.ndarray.__{_dunder}__")(_unary_rule(_name))


@rule("cupy.ndarray.__eq__")
def equals(a: Any, b: Any) -> Shadow:
    """As CuPy: nothing equals None."""
    return new(a.shape, BOOL) if b is None else _operator("equal")(a, b)


@rule("cupy.ndarray.__ne__")
def differs(a: Any, b: Any) -> Shadow:
    """As CuPy: everything differs from None."""
    return new(a.shape, BOOL) if b is None else _operator("not_equal")(a, b)


@rule("cupy.ndarray.__pos__")
def positive(a: Any) -> Shadow:
    """As CuPy, but for bools: those it warns about."""
    if array(a).dtype == BOOL:
        raise CannotProve("a DeprecationWarning")
    return ufunc("positive", a)


@rule("cupy.ndarray.__pow__")
def power(a: Any, b: Any) -> Shadow:
    """As CuPy: some exponents go to other ufuncs."""
    name = _fast_power(b)
    if name is None:
        return _operator("power")(a, b)
    kinds = "ifc" if type(b) is int else "fc"
    return ufunc(name, a, dtype=None if array(a).dtype.kind in kinds else result_type(unwrapped(a), b))


def _fast_power(exponent: Any) -> str | None:
    if type(exponent) is int:
        return "square" if exponent == 2 else None
    if type(exponent) is float:
        return {0.5: "sqrt", 2.0: "square", -1.0: "reciprocal"}.get(exponent)
    return None
