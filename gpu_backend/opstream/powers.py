"""Powers that CuPy's operator leaves to another ufunc than ``power``: ``ndarray.__pow__`` of CuPy 14.2."""

from __future__ import annotations

__all__ = ["plain_power"]

_OF_FLOATS = {0.5: "sqrt", 2.0: "square", -1.0: "reciprocal"}


def plain_power(exponent: object, kind: str) -> tuple[str, bool] | None:
    """Return what computes ``x ** exponent`` for arrays of a dtype's ``kind``; None if ``power`` does.

    The name of the ufunc, without its module, and whether it is left to find its types: else it is told the type that
    array and exponent have in common.
    """
    if type(exponent) is int:
        return ("square", kind in "ifc") if exponent == 2 else None
    name = _OF_FLOATS.get(exponent) if type(exponent) is float else None
    return (name, kind in "fc") if name is not None else None
