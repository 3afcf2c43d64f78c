"""Type signatures of CuPy's ufuncs: which loop runs for which dtypes. Order matters: the first that fits is taken.

Facts, as ``cupy.<name>.types`` gives them. Written by groups, because most ufuncs share one.
"""

from __future__ import annotations

_INTEGERS = "bBhHiIlLqQ"
_REALS = "efd"
_COMPLEX = "FD"

Types = tuple[str, ...]


def _same(chars: str, nin: int, nout: int = 1) -> Types:
    return tuple(f"{char * nin}->{char * nout}" for char in chars)


def _to(chars: str, nin: int, result: str) -> Types:
    return tuple(f"{char * nin}->{result}" for char in chars)


_ARITHMETIC = _same("?" + _INTEGERS + _REALS + _COMPLEX, 2)
_NUMBERS_1 = _same(_INTEGERS + _REALS + _COMPLEX, 1)
_FLOATS_1 = _same(_REALS + _COMPLEX, 1)
_FLOATS_2 = _same(_REALS + _COMPLEX, 2)
_REALS_1 = _same(_REALS, 1)
_REALS_2 = _same(_REALS, 2)
_ROUNDING = _same("?" + _INTEGERS + _REALS, 1)
_INTEGERS_2 = _same(_INTEGERS, 2)
_DIVISION = _INTEGERS_2 + _REALS_2
_COMPARISON = ("??->?", "qq->?", "QQ->?", "qQ->?", "Qq->?", "ee->?", "ff->?", "dd->?")
_COMPARISON_COMPLEX = (*_COMPARISON, "FF->?", "DD->?")
_EQUALITY = (*_COMPARISON_COMPLEX, "VV->?")
_TESTS = _to(_REALS + _COMPLEX, 1, "?")

UFUNC_TYPES: dict[str, Types] = {
    "absolute": (*_same("?" + _INTEGERS + _REALS, 1), "F->f", "D->d"),
    "add": _ARITHMETIC,
    "bitwise_count": _to(_INTEGERS, 1, "B"),
    "conjugate": _NUMBERS_1,
    "divmod": _same(_INTEGERS, 2, 2) + _same(_REALS, 2, 2),
    "exp2": _FLOATS_1,
    "float_power": ("dd->d", "FF->D", "DD->D"),
    "floor_divide": _DIVISION,
    "fmod": _DIVISION,
    "frexp": ("e->ei", "f->fi", "d->di"),
    "heaviside": _REALS_2,
    "invert": _same("?" + _INTEGERS, 1),
    "ldexp": ("ei->e", "fi->f", "el->e", "fl->f", "di->d", "dq->d"),
    "logical_not": _to("?" + _INTEGERS + _REALS, 1, "?"),
    "logical_xor": _to("?" + _INTEGERS + _REALS, 2, "?"),
    "modf": _same(_REALS, 1, 2),
    "negative": _same("?", 1) + _NUMBERS_1,
    "positive": _same("?", 1) + _NUMBERS_1,
    "power": ("??->b", *_ARITHMETIC[1:]),
    "reciprocal": _NUMBERS_1,
    "remainder": _DIVISION,
    "sign": _NUMBERS_1,
    "signbit": _to(_REALS, 1, "?"),
    "square": _NUMBERS_1,
    "true_divide": ("qq->d", "qQ->d", "Qq->d", "QQ->d", *_FLOATS_2),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), _same("?" + _INTEGERS, 2)),
    **dict.fromkeys(("left_shift", "right_shift"), _INTEGERS_2),
    **dict.fromkeys(("gcd", "lcm"), _same("?" + _INTEGERS, 2)),
    **dict.fromkeys(("multiply", "subtract", "maximum", "minimum", "fmax", "fmin"), _ARITHMETIC),
    **dict.fromkeys(("equal", "not_equal"), _EQUALITY),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), _COMPARISON_COMPLEX),
    **dict.fromkeys(("logical_and", "logical_or"), _COMPARISON),
    **dict.fromkeys(("isfinite", "isinf", "isnan"), _TESTS),
    **dict.fromkeys(("ceil", "fix", "floor", "trunc"), _ROUNDING),
    **dict.fromkeys(("cbrt", "deg2rad", "fabs", "rad2deg"), _REALS_1),
    **dict.fromkeys(("logaddexp", "logaddexp2"), _REALS_2),
    **dict.fromkeys(("arctan2", "copysign", "hypot", "nextafter"), _FLOATS_2),
    **dict.fromkeys(
        (
            "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cos", "cosh", "exp", "expm1", "i0",
            "log", "log10", "log1p", "log2", "rint", "sin", "sinc", "sinh", "sqrt", "tan", "tanh",
        ),
        _FLOATS_1,
    ),
}  # fmt: skip

#: Other public names of the same ufunc.
UFUNC_ALIASES: dict[str, str] = {
    "abs": "absolute",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_not": "invert",
    "bitwise_right_shift": "right_shift",
    "conj": "conjugate",
    "degrees": "rad2deg",
    "divide": "true_divide",
    "mod": "remainder",
    "pow": "power",
    "radians": "deg2rad",
}

#: Signatures that ``dtype=`` chooses from, where they are not `UFUNC_TYPES`.
DTYPE_TYPES: dict[str, Types] = {"true_divide": _FLOATS_2}

#: Signatures that are refused, with CuPy's reason.
REFUSED: dict[tuple[str, str], str] = {
    ("subtract", "??->?"): (
        "cupy boolean subtract, the `-` operator, is deprecated, use the bitwise_xor, the `^` operator, or the "
        "logical_xor function instead."
    ),
    ("negative", "?->?"): (
        "The cupy boolean negative, the `-` operator, is not supported, use the `~` operator or the logical_not "
        "function instead."
    ),
    ("positive", "?->?"): "The cupy boolean positive, the `+` operator, is not supported.",
    ("gcd", "??->?"): "gcd cannot be computed with boolean arrays",
    ("lcm", "??->?"): "lcm cannot be computed with boolean arrays",
}
