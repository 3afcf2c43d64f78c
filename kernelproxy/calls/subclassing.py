"""Subclasses that users make of CuPy's classes: which results are of the subclass, as CuPy has it.

An executor knows CuPy's own classes only. Where CuPy makes a result by ``type(self)`` or ``cls``, it is of the user's
class too; where CuPy names a class, it is not. The tables say which members do the former, as the sources of CuPy
have it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gpu_backend.opstream.surface import self_calls

#: Of every sparse matrix: what is made by ``_with_data``.
_OTHER_DATA = frozenset(
    (
        *("__abs__", "__neg__", "__round__", "astype", "conj", "conjugate", "copy", "imag", "power", "real"),
        *("arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad", "expm1", "floor", "log1p", "rad2deg", "rint"),
        *("sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
        *("asformat", "asfptype", "tocoo", "tocsc", "tocsr", "todia"),  # which copy what is of the format already
    )
)
#: Of the compressed formats: what is made of their parts.
_PARTS = frozenset(("__getitem__", "__iter__", "getcol", "getrow", "sorted_indices"))
#: Of ``csr``, which alone has them.
_BY_ELEMENTS = frozenset(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "maximum", "minimum", "multiply"))
#: Of ``csr`` and ``csc``: so if the other operand is a number, and not if it is another matrix.
_SCALED = frozenset(("__mul__", "__rmul__", "__truediv__", "__add__", "__radd__", "__sub__", "__rsub__", "multiply"))

_KEPT_BY_FORMAT = {
    "csr": _OTHER_DATA | _PARTS | _BY_ELEMENTS,
    "csc": _OTHER_DATA | _PARTS,
    "coo": _OTHER_DATA | {"__getitem__", "reshape"},
    "dia": _OTHER_DATA,
}
#: Of interpolants and linear systems.
_KEPT = frozenset(
    (
        *("derivative", "antiderivative", "basis_element", "construct_fast", "from_spline", "from_bernstein_basis"),
        *("from_power_basis", "from_derivatives", "integrate_1d", "to_ss", "to_tf", "to_zpk"),
    )
)
_SPARSE = "cupyx.scipy.sparse."


def is_cupys(kind: type) -> bool:
    """Tell whether ``kind`` stands for a class of CuPy itself, and is no user's subclass."""
    return "_qualname" in vars(kind)


def cupys_class(kind: type) -> type:
    """Return the class of CuPy that ``kind`` is, or is made of."""
    return next(one for one in kind.__mro__ if is_cupys(one))


def uncalled(kind: type[Any]) -> dict[str, str]:
    """Return the methods of CuPy's that would call what ``kind``, a user's class, overrides; and what that is."""
    users = kind.__mro__[: kind.__mro__.index(cupys_class(kind))]
    overridden = {name for one in users for name in vars(one)}
    calls = self_calls.load().get(kind._qualname, {})
    found = {method: [one for one in called if one in overridden] for method, called in calls.items()}
    return {method: ", ".join(names) for method, names in found.items() if names}


def warn_of_uncalled(target: Any, name: str) -> None:
    """Warn that the method ``name`` of ``target``, which is CuPy's, will not call what a user's class overrides."""
    kind, qualname = type(target).__name__, target._qualname
    warnings.warn(
        f"CuPy's {name} calls {target._uncalled[name]}, which {kind} overrides. The remote GPU knows {qualname} alone "
        f"and calls its own. Override {name} in {kind} as well.",
        RuntimeWarning,
        stacklevel=3,
    )


def in_class(of: object, name: str, args: tuple[object, ...], result: Any) -> Any:
    """Return the ``result`` of the member ``name`` of ``of``, an object or a class, in the class that CuPy gives it."""
    kind: Any = of if isinstance(of, type) else type(of)
    if is_cupys(kind) or result is of:
        return result
    if isinstance(result, list):  # of an iteration
        return [in_class(of, name, args, one) for one in result]
    is_of_base = type(result) is cupys_class(kind)
    if not is_of_base or not _is_kept(kind._qualname, name, args):
        return result
    if kind._qualname.startswith(f"{_SPARSE}dia"):  # alone made by its constructor
        return kind((result.data, result.offsets), shape=result.shape)
    made = kind.__new__(kind)
    made._take_over(result)
    return made


def _is_kept(qualname: str, name: str, args: tuple[object, ...]) -> bool:
    if not qualname.startswith(_SPARSE):
        return name in _KEPT
    form = qualname.removeprefix(_SPARSE)[:3]
    if form in ("csr", "csc") and name in _SCALED and args and _is_scalar(args[0]):
        return True
    return name in _KEPT_BY_FORMAT.get(form, ())


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, np.generic)) or getattr(value, "shape", None) == ()
