"""``cupy.ufunc`` in the notebook. The path of ``x + y`` is short on purpose: it is what loops are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.surface import Ufunc as Description
from gpu_backend.wire import values as wire
from kernelproxy import array_core, dispatch, session, streams
from kernelproxy.array_core import ArrayCore
from kernelproxy.documentation import Documented
from kernelproxy.infer import infer
from kernelproxy.layout import Layout

#: Python ints in this range fit every integer dtype, so a proof need not look at their value.
_SMALL = range(128)
#: Proofs kept per ufunc; a loop over ever new shapes must not grow without end.
_MOST_PROOFS = 4_096


class ufunc(Documented):  # noqa: N801 (CuPy's name)
    """A universal function. Results are proved once per pair of operand kinds and then looked up."""

    __slots__ = ("_inplace", "_proved", "_qualname", "description")

    def __init__(self, qualname: str, description: Description) -> None:
        self._qualname = qualname
        self.description = description
        self._proved: dict[tuple[Any, ...], Layout] = {}
        self._inplace: set[tuple[Any, ...]] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the function. Arguments and keywords are those of CuPy's ufuncs."""
        if not kwargs and len(args) == self.description.nin:
            if len(args) == 2:
                return self.binary(args[0], args[1])
            if len(args) == 1:
                return self.unary(args[0])
        _check_operands(args)
        return dispatch.call(self._qualname, args, kwargs)

    def unary(self, operand: Any) -> Any:
        """Apply the function to one operand."""
        if isinstance(operand, ArrayCore):
            layout = self._proved.get((operand._layout,))
            if layout is not None:
                handle = session.pipeline().record(self._qualname, (operand._ref,), 1, None, streams.current_handle())
                return array_core.fresh(layout, handle)
        return self._prove((operand,))

    def binary(self, left: Any, right: Any) -> Any:
        """Apply the function to two operands."""
        left_kind, left_value = _kind_and_value(left)
        right_kind, right_value = _kind_and_value(right)
        layout = self._proved.get((left_kind, right_kind))
        if layout is None:
            return self._prove((left, right))
        handle = session.pipeline().record(self._qualname, (left_value, right_value), 1, None, streams.current_handle())
        return array_core.fresh(layout, handle)

    def inplace(self, target: Any, operand: Any) -> Any:
        """Apply the function to ``target`` and ``operand``, put the result into ``target``, and return that."""
        kind, value = _kind_and_value(operand)
        if (target._layout, kind) in self._inplace or self._prove_inplace(target, operand, kind):
            if isinstance(value, (wire.Ref, wire.View, float, int)):
                session.pipeline().record(
                    self._qualname, (target._ref, value, target._ref), 0, None, streams.current_handle()
                )
                return target
        _check_operands((target, operand))
        dispatch.call(self._qualname, (target, operand, target), {})
        return target

    def _prove(self, operands: tuple[Any, ...]) -> Any:
        _check_operands(operands)
        kinds = tuple(_kind_and_value(one)[0] for one in operands)
        if None not in kinds:
            proof = infer(self._qualname, tuple(dispatch.layouts(one) for one in operands), {})
            if isinstance(proof, Layout) and dispatch.fits(proof):
                if len(self._proved) >= _MOST_PROOFS:
                    self._proved.clear()
                self._proved[kinds] = proof
        return dispatch.call(self._qualname, operands, {})

    def _prove_inplace(self, target: Any, operand: Any, kind: Any) -> bool:
        if kind is None:
            return False
        proof = infer(self._qualname, (target._layout, dispatch.layouts(operand)), {})
        into = target._layout
        if not isinstance(proof, Layout) or proof.shape != into.shape:
            return False
        if not np.can_cast(proof.dtype, into.dtype, "same_kind"):
            return False
        self._inplace.add((into, kind))
        return True

    # --- what a ufunc is asked ----------------------------------------------------------------------------------------

    @property
    def __name__(self) -> str:
        return self.description.name

    @property
    def name(self) -> str:
        """The name in CuPy's own error messages, such as "cupy_add"."""
        return self.description.name

    @property
    def nin(self) -> int:
        """Number of operands."""
        return self.description.nin

    @property
    def nout(self) -> int:
        """Number of results."""
        return self.description.nout

    @property
    def nargs(self) -> int:
        """Number of operands and results."""
        return self.nin + self.nout

    @property
    def types(self) -> list[str]:
        """The loops, such as "dd->d", in the order in which they are tried."""
        return list(self.description.types)

    @property
    def ntypes(self) -> int:
        """Number of loops."""
        return len(self.description.types)

    def outer(self, left: Any, right: Any, **kwargs: Any) -> Any:
        """Apply the function to all pairs of elements."""
        return dispatch.call("cupy.ufunc.outer", (self, left, right), kwargs)

    def at(self, array: Any, indices: Any, operand: Any = None) -> None:
        """Apply the function in place, unbuffered, at ``indices``."""
        operands = () if operand is None else (operand,)
        dispatch.call("cupy.ufunc.at", (self, array, indices, *operands), {})

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Reduce along ``axis``."""
        given = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
        return dispatch.call("cupy.ufunc.reduce", (self, array), given)

    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        """Accumulate along ``axis``."""
        return dispatch.call("cupy.ufunc.accumulate", (self, array), {"axis": axis, "dtype": dtype, "out": out})

    def reduceat(self, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        """Reduce the slices that begin at ``indices``."""
        given = {"axis": axis, "dtype": dtype, "out": out}
        return dispatch.call("cupy.ufunc.reduceat", (self, array, indices), given)

    def __repr__(self) -> str:
        return f"<ufunc '{self.description.name}'>"

    def __reduce__(self) -> str:
        return self.__name__

    def _wire_value(self) -> wire.Name:
        return wire.Name(self._qualname)


def _kind_and_value(operand: Any) -> tuple[Any, Any]:
    """Return what a proof depends on, or None if it depends on the operand's value, and the operand on the wire."""
    if isinstance(operand, ArrayCore):
        return operand._layout, operand._ref
    kind = type(operand)
    if kind is float or (kind is int and operand in _SMALL):
        return kind, operand
    return None, None


def _check_operands(operands: tuple[Any, ...]) -> None:
    for one in operands:
        if isinstance(one, np.ndarray) and one.ndim > 0:
            raise TypeError(f"Unsupported type {type(one)}")
        if isinstance(one, (list, str)):
            raise TypeError(f"Unsupported type {type(one)}")
