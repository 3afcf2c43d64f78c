"""Rules of functions that work element by element and are no ufuncs of their own, and of the operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_backend.opstream.powers import plain_power
from gpu_backend.opstream.proof import ufuncs
from gpu_backend.opstream.proof.arguments import BOOL
from gpu_backend.opstream.proof.outcome import CannotProve, Later, refusal
from gpu_backend.opstream.proof.promotion import result_type
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, arrays, as_array, like, new, ufunc
from gpu_backend.opstream.proof.value_shapes import nonzero
from gpu_backend.opstream.proof.values import is_real, is_scalar

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
def where(condition: Array, x: object = None, y: object = None) -> Array | Later:
    """As CuPy; with one argument, the indices of what is not zero."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise refusal(ValueError, "Must provide both 'x' and 'y' or neither.")
    return ufunc(WHERE, _as_bool(condition), x, y)


def _as_bool(condition: Array) -> Array:
    return condition if condition.dtype == BOOL else Array(like(condition.layout, BOOL, "K"))


@rule("cupy.clip")
def clip(a: Array, a_min: object, a_max: object, out: Array | None = None) -> Array:
    """As CuPy."""
    return clip_method(a, a_min, a_max, out)


@rule("cupy.ndarray.clip")
def clip_method(a: Array, min: object = None, max: object = None, out: Array | None = None) -> Array:
    """As CuPy."""
    low, high = _clip_bounds(a, min, max)
    return ufunc(CLIP, a, low, high, out=out)


def _clip_bounds(a: Array, low: object, high: object) -> tuple[object, object]:
    if a.dtype.kind == "f":
        return (-a.dtype.type(np.inf) if low is None else low), (a.dtype.type(np.inf) if high is None else high)
    if a.dtype.kind in "iu":
        info = np.iinfo(a.dtype)
        return (int(info.min) if low is None else low), (int(info.max) if high is None else high)
    return low, high


@rule("cupy.around", "cupy.round", "cupy.ndarray.round")
def around(a: Array, decimals: object = 0, out: Array | None = None) -> Array:
    """As CuPy."""
    if not isinstance(decimals, int) or isinstance(decimals, bool):
        raise CannotProve("decimals that are no int")
    if decimals < 0 and a.dtype.kind in "iu":
        return ufunc(ROUND_INT, a, -decimals, out=out)
    return ufunc(ROUND, a, decimals, out=out)


@rule("cupy.real_if_close")
def real_if_close(a: Array, tol: object = 100) -> Array:
    """As CuPy, where the dtype decides."""
    if a.dtype.kind == "c":
        raise CannotProve("whether the imaginary part is small depends on values")
    return a


@rule("cupy.angle")
def angle(z: object, deg: object = False) -> Array:
    """As CuPy, where the unit is no array's value."""
    if isinstance(deg, Array):
        raise CannotProve("the truth of an array")
    return ufunc(ANGLE_DEG if deg else ANGLE, z)


@rule("cupy.nan_to_num")
def nan_to_num(x: Array, copy: object = True, nan: object = 0.0, posinf: object = None, neginf: object = None) -> Array:
    """As CuPy, for host values in place of NaN and infinities."""
    given = [nan, *[0 if value is None else value for value in (posinf, neginf)]]
    numbers = [value for value in given if isinstance(value, (int, float))]
    if len(numbers) < len(given):
        raise CannotProve("arrays in place of NaN")
    if max(map(abs, numbers)) > 1e4 and x.dtype.char not in "dD":
        raise CannotProve("a value beyond the range of the dtype")
    made = Array(like(x.layout, x.dtype, "K")) if copy else x
    value = new((), np.dtype(x.dtype.char.lower()) if x.dtype.kind == "c" else x.dtype)
    return ufunc(NAN_TO_NUM, x, value, value, value, out=made)


@rule("cupy.isclose")
def isclose(a: object, b: object, rtol: object = 1e-5, atol: object = 1e-8, equal_nan: object = False) -> Array:
    """As CuPy: scalars become arrays."""
    left, right = as_array(a), as_array(b)
    has_complex = "c" in (left.dtype.kind, right.dtype.kind)
    return ufunc(IS_CLOSE_COMPLEX if has_complex else IS_CLOSE, left, right, rtol, atol, equal_nan)


@rule("cupy.allclose")
def allclose(a: object, b: object, rtol: object = 1e-5, atol: object = 1e-8, equal_nan: object = False) -> Array:
    """As CuPy."""
    isclose(a, b, rtol, atol, equal_nan)
    return new((), BOOL)


@rule("cupy.array_equal")
def array_equal(a1: object, a2: object, equal_nan: object = False) -> Array:
    """As CuPy, where it does not look at the values on its way."""
    if not isinstance(a1, (Array, np.ndarray)) or not isinstance(a2, (Array, np.ndarray)):
        raise CannotProve("other than two arrays")
    if a1.shape == a2.shape:  # of arrays of NumPy as well: only where they are compared does it matter whose they are
        ufunc("equal", a1, a2)
        if equal_nan:
            raise CannotProve("NaNs are looked at")
    return new((), BOOL)


@rule("cupy.array_equiv")
def array_equiv(a1: Array, a2: Array) -> Array:
    """As CuPy."""
    return new((), BOOL)


@rule("cupy.real", "cupy.ndarray.real")
def real(val: Array) -> Array:
    """As CuPy: a view of complex numbers, else the array itself."""
    return val.real


@rule("cupy.imag", "cupy.ndarray.imag")
def imag(val: Array) -> Array:
    """As CuPy: a view of complex numbers, else new zeros."""
    return val.imag


@rule("cupy.ndarray.conj", "cupy.ndarray.conjugate")
def conj(a: Array) -> Array:
    """As CuPy: the array itself unless it is complex."""
    return ufunc("conjugate", a) if a.dtype.kind == "c" else a


@rule("cupy.isreal", "cupy.iscomplex")
def isreal(x: Array) -> Array:
    """As CuPy, for arrays."""
    return new(x.shape, BOOL)


@rule("cupy.isneginf", "cupy.isposinf")
def isneginf(x: Array, out: Array | None = None) -> Array:
    """As CuPy."""
    infinite = ufunc("isinf", x)
    if x.dtype.kind == "c":
        words = f"This operation is not supported for {x.dtype} values because it would be ambiguous."
        raise refusal(TypeError, words)
    return ufunc("logical_and", infinite, ufunc("signbit", x), out=out)


@rule("cupy.select")
def select(condlist: object, choicelist: object, default: object = 0) -> Array:
    """As CuPy, for a default of Python's own."""
    if not (isinstance(condlist, list) and isinstance(choicelist, list) and len(condlist) == len(choicelist) > 0):
        raise CannotProve("conditions and choices that are no lists of one length")
    conditions, choices = arrays(condlist), arrays(choicelist)
    dtype = result_type(*[choice.layout for choice in choices])
    if not is_real(default) or not np.can_cast(type(default), dtype, "same_kind") or abs(default) > 100:
        raise CannotProve("a default of another kind")
    if any(condition.dtype != BOOL for condition in conditions):
        raise CannotProve("conditions that are not bool")
    shape = conditions[0].shape
    if any(one.shape != shape for one in [*conditions, *choices]):
        raise CannotProve("conditions and choices of several shapes")
    if not shape or (default < 0 and dtype.kind == "u"):
        raise CannotProve("choices without axes")
    return new(shape, dtype)


def _operator(name: str, *, reflected: bool = False) -> Callable[..., Array]:
    def operate(a: object, b: object) -> Array:
        if not isinstance(b, Array) and not is_scalar(b):
            raise CannotProve(f"an operand of {type(b).__name__}")
        return ufunc(name, b, a) if reflected else ufunc(name, a, b)

    return operate


def _inplace(name: str) -> Callable[..., Array]:
    def operate(a: Array, b: object) -> Array:
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


def _unary_rule(name: str) -> Callable[..., Array]:
    return lambda a: ufunc(name, a)


for _dunder, _name in _UNARY.items():
    rule(f"cupy.ndarray.__{_dunder}__")(_unary_rule(_name))


@rule("cupy.ndarray.__eq__")
def equals(a: Array, b: object) -> Array:
    """As CuPy: nothing equals None."""
    return new(a.shape, BOOL) if b is None else _operator("equal")(a, b)


@rule("cupy.ndarray.__ne__")
def differs(a: Array, b: object) -> Array:
    """As CuPy: everything differs from None."""
    return new(a.shape, BOOL) if b is None else _operator("not_equal")(a, b)


@rule("cupy.ndarray.__pos__")
def positive(a: Array) -> Array:
    """As CuPy, but for bools: those it warns about."""
    if a.dtype == BOOL:
        raise CannotProve("a DeprecationWarning")
    return ufunc("positive", a)


@rule("cupy.ndarray.__pow__")
def power(a: Array, b: object) -> Array:
    """As CuPy: some exponents go to other ufuncs."""
    plain = plain_power(b, a.dtype.kind)
    if plain is None or not is_real(b):
        return _operator("power")(a, b)
    name, finds_types = plain
    return ufunc(name, a, dtype=None if finds_types else result_type(a.layout, b))
