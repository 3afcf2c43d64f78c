"""Reads the type table of a CuPy ufunc."""

from __future__ import annotations

from typing import Any

from gpu_backend.opstream.surface.entries import Ufunc


def is_ufunc(thing: object) -> bool:
    """Tell whether ``thing`` is a ``cupy.ufunc``."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}" == "cupy._core._kernel.ufunc"


def describe_ufunc(ufunc: Any) -> Ufunc:
    """Return the entry of the ``cupy.ufunc`` ``ufunc``."""
    ops = ufunc._ops.ops
    promotion = ufunc._ops.promote_types
    return Ufunc(
        name=ufunc.name,
        nin=ufunc.nin,
        nout=ufunc.nout,
        types=tuple(map(_signature, ops)),
        out_types=tuple(map(_signature, ufunc._out_ops.ops)) if ufunc._out_ops is not None else (),
        refused={_signature(op): _refusal(op) for op in ops if op.error_func is not None},
        resolved=tuple(_signature(op) for op in ops if op._resolution_func is not None),
        casting=ufunc._default_casting,
        promotion=promotion.__name__ if promotion is not None else "",
        scatter=ufunc._scatter_op is not None,
    )


def _signature(op: Any) -> str:
    return f"{_characters(op.in_types)}->{_characters(op.out_types)}"


def _characters(dtypes: tuple[Any, ...]) -> str:
    return "".join(dtype.char for dtype in dtypes)


def _refusal(op: Any) -> str:
    try:
        op.error_func()
    except TypeError as error:
        return str(error)
    raise AssertionError(f"{op} was expected to refuse")
