"""Calls of kernels that the user has written: what one is known by when it comes again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_backend.executor.heap import Heap, Kind
from gpu_backend.executor.program.operands import Number, Operands, encoded, is_whole, number
from gpu_backend.opstream.layout import DType
from gpu_backend.wire.dtypes import text_to_dtype
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Complex, List, Ref, Scalar, Tuple, Value, View

__all__ = ["CALL", "GIVEN", "KernelCalls", "is_parameter", "types_handed_over"]

#: The verb by which a notebook calls a kernel.
CALL = ".call"
#: Where in a launch what the kernel is given stands, behind the kernel, its grid and its block.
GIVEN = 3
#: The class of kernels that are handed numbers as they are.
_AS_THEY_ARE = "RawKernel"
#: So often the same numbers come that do not fit what their kernel declares, until they are known by their bits.
_MOST_UNFIT = 8
#: A whole number that is as large may be an address of memory that no argument names.
_FIRST_ADDRESS, _LAST_ADDRESS = 1 << 32, 1 << 63
_ADDRESS_BYTES = 8
#: In which types CUDA is handed Python's numbers. Source: ``_pointer`` in ``cupy/cuda/function.pyx`` of CuPy 14.2.
_TYPES: dict[object, DType] = {
    int: np.dtype(np.int64), float: np.dtype(np.float64), Complex: np.dtype(np.complex128),
}  # fmt: skip
#: In so many ways a kernel may come, none of which comes often, until no more are looked for: one of its numbers is
#: another each time.
_MOST_WAYS = 64
#: Kinds of types that CuPy makes of Python's numbers without a word, whatever their values: but for what is too large.
_MADE_OF: dict[object, str] = {int: "iufc", float: "fc", Complex: "c"}


def is_parameter(arg: Value) -> bool:
    """Tell whether an argument of a call is a number whose value decides nothing but what the kernel computes.

    Truth values are none: there are two, and they tell nothing of where they stand.
    """
    if type(arg) is Scalar:
        if arg.dtype[1:2] not in ("i", "u"):
            return arg.dtype[1:2] in ("f", "c")
        is_address = len(arg.data) == _ADDRESS_BYTES and _may_be_address(int.from_bytes(arg.data, "little"))
        return not is_address
    return type(arg) in _TYPES and not (type(arg) is int and _may_be_address(arg))


def _may_be_address(value: int) -> bool:
    return _FIRST_ADDRESS <= value < _LAST_ADDRESS


def types_handed_over(op: Op, kernel: Any, places: Sequence[Any]) -> tuple[DType, ...] | None:
    """Return in which types the arrays and numbers of a call are handed to ``kernel``; None if that is not told.

    The launch of a `RawKernel` hands numbers over as they are. A kernel that goes element by element declares types, by
    their names or by those of arrays, and CuPy makes of a number what is declared. One of `cupyx.jit` is compiled by
    what its numbers are.
    """
    if not any(map(is_parameter, op.args[1:])):
        return tuple([_own_type(one) for one in places]) if type(kernel).__name__ == _AS_THEY_ARE else None
    declared = getattr(kernel, "in_params", None)
    if not isinstance(declared, tuple) or len(declared) > len(op.args) - 1:
        return None
    every = zip(op.args[1:], (*declared, *getattr(kernel, "out_params", ())), strict=False)
    params = [param for arg, param in every if is_parameter(arg) or isinstance(arg, Ref | View)]
    if len(params) != len(places):
        return None
    arrays = {param.ctype: _own_type(one) for param, one in zip(params, places, strict=True) if type(one) is not Number}
    types = [
        _own_type(one) if type(one) is not Number
        else _made_into(one, arrays.get(param.ctype) if param.dtype is None else param.dtype)
        for param, one in zip(params, places, strict=True)
    ]  # fmt: skip
    found = tuple([one for one in types if one is not None])  # not ``in``: NumPy has None equal a dtype
    return found if len(found) == len(types) else None


def _own_type(place: Any) -> DType:
    kind = place.layout
    if type(place) is not Number:
        own: DType = kind.dtype
        return own
    return _TYPES[kind] if kind in _TYPES else text_to_dtype(str(kind))


def _made_into(one: Number, declared: Any) -> DType | None:
    """Return what CuPy makes of a number by what is declared; None if that is not sure for most values."""
    if declared is None:
        return None
    dtype, kind = np.dtype(declared), one.layout
    return dtype if dtype == _own_type(one) or dtype.kind in _MADE_OF.get(kind, "") else None


class KernelCalls:
    """Knows calls by the kernel, by how its arrays lie, and by the bits of all else that it is given.

    But for the numbers that a launch hands over: they are operands, whatever their values, unless that is found wrong.
    """

    def __init__(self, heap: Heap, operands: Operands) -> None:
        self._heap, self._operands = heap, operands
        #: Kernels whose launches depend on numbers otherwise than as parameters.
        self.by_bits: set[int] = set()
        #: By kernel: in how many ways it has come since one of them was captured.
        self._ways: dict[object, int] = {}
        #: By kernel: the numbers that did not fit when it was called last, and how often they have come.
        self._unfit: dict[int, tuple[tuple[bytes, ...], int]] = {}

    def kernel_of(self, op: Op) -> int:
        """Return the handle of the kernel that an op is about, which comes first; 0 if it is about none."""
        first = op.args[0] if op.args else None
        if type(first) is not Ref or self._heap.kind(first.handle) is not Kind.KERNEL:
            return 0
        return first.handle

    def way(self, op: Op, places: list[Any]) -> tuple[object, ...] | None:
        """Return what the call is known by, and add its arrays and numbers to ``places``; None for CuPy's way."""
        kernel = self.kernel_of(op)
        if not kernel or self._ways.get(kernel, 0) > _MOST_WAYS:
            return None
        way: list[object] = [CALL, kernel]
        has_numbers = kernel not in self.by_bits
        for at, arg in enumerate(op.args[1:], 1):
            if at == GIVEN and type(arg) is Tuple and has_numbers:
                is_added = self._add_given(arg, places, way)
            elif has_numbers:
                is_added = self._add_one(arg, places, way)
            else:
                is_added = self._add(arg, places, way)
            if not is_added:
                return None
        if op.kwargs is not None:
            if not all(map(is_whole, op.kwargs.values())):
                return None
            way.append(encoded(op.kwargs))
        return tuple(way)

    def note_new(self, way: tuple[object, ...]) -> None:
        """Note that a call came in a way that was not known."""
        self._ways[way[1]] = self._ways.get(way[1], 0) + 1

    def note_captured(self, op: Op) -> None:
        """Note that what the call launches is known."""
        kernel = op.args[0]
        if type(kernel) is Ref:
            self._ways.pop(kernel.handle, None)

    def note_by_bits(self, op: Op) -> None:
        """Note that what the call launches does not follow from its numbers as parameters do."""
        kernel = op.args[0]
        if type(kernel) is Ref:
            self.by_bits.add(kernel.handle)

    def note_unfit(self, op: Op) -> None:
        """Note that the call has a number that may be rounded otherwise by CuPy, and so was not launched again."""
        kernel = op.args[0]
        if type(kernel) is Ref:
            numbers = tuple([encoded(one) for one in op.args[1:] if is_parameter(one)])
            before, count = self._unfit.get(kernel.handle, ((), 0))
            count = count + 1 if numbers == before else 1
            self._unfit[kernel.handle] = numbers, count
            if count >= _MOST_UNFIT:
                self.by_bits.add(kernel.handle)

    def _add_given(self, given: Tuple, places: list[Any], way: list[object]) -> bool:
        way += Tuple, len(given.items)
        return all(self._add_one(arg, places, way) for arg in given.items)

    def _add_one(self, arg: Value, places: list[Any], way: list[object]) -> bool:
        operand = number(arg) if is_parameter(arg) else None
        if operand is None:
            return self._add(arg, places, way)
        places.append(operand)
        way += Number, operand.layout
        return True

    def _add(self, arg: Value, places: list[Any], way: list[object]) -> bool:
        if isinstance(arg, Ref | View):
            place = self._operands.place(arg)
            if place is None or not place.layout.size:  # of nothing CuPy launches nothing
                return False
            places.append(place)
            way.append(place.layout)
            return True
        if isinstance(arg, Tuple | List):
            way += type(arg), len(arg.items)
            return all(self._add(one, places, way) for one in arg.items)
        if not is_whole(arg):
            return False
        way.append(encoded(arg))
        return True
