"""Which loop of a ufunc or reduction CuPy runs: NEP 50 promotion over the type tables of the surface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpu_backend.opstream.layout import DType, Layout
from gpu_backend.opstream.proof.arguments import BOOL, COMPLEX128, FLOAT64, INT64, UINT64, is_known, native
from gpu_backend.opstream.proof.outcome import CannotProve, WillRaise, refusal
from gpu_backend.opstream.proof.values import Operand

#: The Python type of a weak scalar, None for arrays and for NumPy scalars.
Weak = type[int] | type[float] | type[complex] | None

_PYTHON_SCALARS: dict[type, tuple[DType, Weak]] = {
    bool: (BOOL, None),
    float: (FLOAT64, float),
    complex: (COMPLEX128, complex),
}
_SCALAR_RANK = {int: 1, float: 2, complex: 2}
_KIND_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 2}
_LARGEST_INT64 = (1 << 63) - 1


class Loop(NamedTuple):
    """One row of a type table. ``refusal`` is the message of rows that exist only to refuse."""

    inputs: tuple[DType, ...]
    outputs: tuple[DType, ...]
    refusal: str = ""


def loops(types: Sequence[str], refused: dict[str, str] | None = None) -> tuple[Loop, ...]:
    """Return the loops of a table such as ``("ff->f", "dd->d")``; rows of other than basic dtypes are left out."""
    made = []
    for signature in types:
        inputs, _, outputs = signature.partition("->")
        if "V" not in signature:
            refusal = (refused or {}).get(signature, "")
            made.append(Loop(_dtypes(inputs), _dtypes(outputs), refusal))
    return tuple(made)


def operand_kind(operand: object) -> tuple[DType, Weak]:
    """Return the dtype with which ``operand`` enters promotion, and its Python type if it is weak."""
    if isinstance(operand, Layout):
        return native(operand.dtype), None
    if type(operand) is int:
        return _int_kind(operand), int
    known = _PYTHON_SCALARS.get(type(operand))
    if known is not None:
        return known
    if isinstance(operand, (np.longdouble, np.clongdouble)):
        return operand.dtype, None  # which goes into no loop
    if isinstance(operand, np.generic):
        return native(operand.dtype), None
    if hasattr(operand, "__cuda_array_interface__") or hasattr(operand, "__cupy_get_ndarray__"):
        raise CannotProve("an object that stands for an array")
    raise refusal(TypeError, f"Unsupported type {type(operand)}")


def _int_kind(operand: int) -> DType:
    if -_LARGEST_INT64 <= operand <= _LARGEST_INT64:
        return INT64
    if not -(1 << 63) <= operand < 1 << 64:
        raise refusal(OverflowError, "Python int too large to convert to C long")
    return UINT64 if operand > 0 else INT64


def find_loop(table: tuple[Loop, ...], kinds: Sequence[tuple[DType, Weak]], promotion: str = "") -> Loop | None:
    """Return the first loop that takes operands of these kinds, or None.

    Parameters
    ----------
    promotion
        The name of the ufunc's own promotion; "promote_weak_int" compares an integer array with any Python int.
    """
    dtypes = [dtype for dtype, _ in kinds]
    weaks = [weak for _, weak in kinds]
    if not _may_be_weak(dtypes, weaks):
        weaks = [None] * len(dtypes)
    if promotion:
        weaks = _promoted(promotion, dtypes, weaks)
    for loop in table:
        if all(map(_fits, dtypes, weaks, loop.inputs)):
            return loop
    return None


def find_loop_for(table: tuple[Loop, ...], wanted: DType) -> Loop | None:
    """Return the first loop whose results all have the dtype ``wanted``, or None."""
    for loop in table:
        if all(made == wanted for made in loop.outputs):
            return loop
    return None


def wrong_type(types: object, name: str) -> WillRaise:
    """Return CuPy's error for operands that no loop takes."""
    return refusal(TypeError, f"Wrong type ({types}) of arguments for {name}")


def check_cast(source: DType, target: DType, casting: object, what: str = "array data") -> None:
    """Refuse as CuPy does if ``source`` may not be cast to ``target``."""
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise CannotProve(f"casting {casting!r}")
    if (casting == "same_kind" and source.kind == target.kind) or np.can_cast(source, target, casting):
        if casting == "unsafe" and source.kind == "c" and target.kind in "iuf":
            raise CannotProve("a ComplexWarning")
        return
    raise refusal(TypeError, f"Cannot cast {what} from {source!r} to {target!r} according to the rule '{casting}'")


def result_type(*operands: Operand | DType | np.ndarray) -> DType:
    """Return ``cupy.result_type`` of layouts, dtypes, and scalars and arrays of the host."""
    return native(np.result_type(*[operand.dtype if isinstance(operand, Layout) else operand for operand in operands]))


def promote(*dtypes: DType) -> DType:
    """Return the dtype that all ``dtypes`` promote to."""
    result = dtypes[0]
    for dtype in dtypes[1:]:
        if dtype != result:
            result = np.promote_types(result, dtype)
    return native(result)


def _dtypes(characters: str) -> tuple[DType, ...]:
    return tuple([native(np.dtype(char)) if is_known(np.dtype(char)) else np.dtype(char) for char in characters])


def _may_be_weak(dtypes: Sequence[DType], weaks: Sequence[Weak]) -> bool:
    """Tell whether weak scalars may yield: only to operands of at least their kind, and only if there are such."""
    scalars = [_SCALAR_RANK[weak] for weak in weaks if weak is not None]
    arrays = [_KIND_RANK[dtype.kind] for dtype, weak in zip(dtypes, weaks, strict=True) if weak is None]
    return bool(scalars) and bool(arrays) and max(arrays) >= max(scalars)


def _promoted(promotion: str, dtypes: Sequence[DType], weaks: list[Weak]) -> list[Weak]:
    if promotion != "promote_weak_int":
        raise CannotProve(f"the promotion {promotion}")
    first, second = weaks
    if first is int and second is None and dtypes[1].kind in "iu":
        return [None, None]
    if second is int and first is None and dtypes[0].kind in "iu":
        return [None, None]
    return weaks


def _fits(given: DType, weak: Weak, wanted: DType) -> bool:
    if np.can_cast(given, wanted):
        return True
    if weak is None:
        return False
    try:
        return bool(np.result_type(weak(0), wanted) == wanted)
    except TypeError:
        return False
