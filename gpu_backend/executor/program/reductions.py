"""Reductions of whole arrays, past CuPy's handling of arguments: see `devices/reductions.py`.

What comes again and again in one way is replayed, which is faster still. This is for what is never the same twice: the
products of vectors and the sums in a loop on slices that grow or shrink.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_backend.devices.reductions import Reduce
from gpu_backend.devices.reductions import Reductions as ReductionsOfDevice
from gpu_backend.executor.heap import Place, Places
from gpu_backend.executor.program.operands import BLOCK_BYTES, Number, Operands
from gpu_backend.executor.program.products import Multiplications
from gpu_backend.executor.program.segment import Segment
from gpu_backend.executor.program.steps import Step
from gpu_backend.opstream.layout import Layout, contiguous
from gpu_backend.wire.messages import Op

__all__ = ["Reduction", "Reductions"]

#: Of a product of vectors CuPy sums what their elements give; of a mean it divides the sum.
_SUM, _MULTIPLY, _DIVIDE = "cupy.sum", "cupy.multiply", "cupy.true_divide"
#: By name and the characters of the dtypes: means that are sums of the same type. So many elements all types can tell.
_MEANS, _AVERAGED, _MOST_AVERAGED = frozenset(("cupy.mean", "cupy.ndarray.mean")), "fd", 1 << 24


class Reduction:
    """A reduction of operands that lie in certain ways."""

    __slots__ = ("count", "divide", "made", "multiply", "reduce", "terms")

    def __init__(self, reduce: Reduce, made: Layout) -> None:
        self.reduce, self.made = reduce, made
        #: What multiplies the operands first, and how the products lie; None of a single operand.
        self.multiply: Step | None = None
        self.terms: Layout | None = None
        #: What divides the result, and by what; None if nothing does.
        self.divide: Step | None = None
        self.count: Number | None = None


class Reductions:
    """Carries out reductions."""

    def __init__(self, runs: ReductionsOfDevice, operands: Operands, places: Places, segment: Segment | None) -> None:
        self._runs, self._operands, self._places, self._segment = runs, operands, places, segment
        #: How many were carried out.
        self.done = 0

    def way(self, name: str, layouts: Sequence[Any]) -> Reduction | None:
        """Return op ``name`` on operands that lie so, and nothing else; None if CuPy carries it out otherwise."""
        if any(type(one) is not Layout for one in layouts):
            return None
        if len(layouts) == 1:
            return self._mean(layouts[0]) if name in _MEANS else self._of(name, layouts[0])
        return self._inner(*layouts) if len(layouts) == 2 and Multiplications.has(name) else None

    def _of(self, name: str, lies: Layout) -> Reduction | None:
        reduce = self._runs.reduction(name, lies)
        return None if reduce is None else Reduction(reduce, contiguous((), lies.dtype))

    def _inner(self, first: Layout, second: Layout) -> Reduction | None:
        """Return the product of two vectors. Source: ``tensordot_core`` in CuPy 14.2's ``_routines_linalg.pyx``."""
        if first.ndim != 1 or first.shape != second.shape or first.dtype != second.dtype or self._segment is None:
            return None
        terms = contiguous(first.shape, first.dtype)
        found, multiply = self._of(_SUM, terms), self._segment.step(_MULTIPLY, 2, [first, second, terms])
        if found is None or multiply is None:
            return None
        found.multiply, found.terms = multiply, terms
        return found

    def _mean(self, lies: Layout) -> Reduction | None:
        """Return the mean of all elements. Source: ``_ndarray_mean`` in CuPy 14.2's ``_routines_statistics.pyx``."""
        if lies.dtype.char not in _AVERAGED or lies.size > _MOST_AVERAGED or self._segment is None:
            return None
        found = self._of(_SUM, lies)
        if found is not None:
            found.divide = self._segment.step(_DIVIDE, 2, [found.made, int, found.made])
            found.count = Number(lies.size, int)
        return found if found is not None and found.divide is not None else None

    def run(self, op: Op, way: Reduction, places: Sequence[Any]) -> bool:
        """Carry out ``op`` behind all that is gathered; return whether that was possible."""
        if not op.out or not self._operands.is_free(op.out) or not self._runs.has_pool() or not self._is_ready(way):
            return False
        terms = self._terms(op, way, places)
        if terms is None:
            return False
        if self._segment is not None:
            self._segment.launch()
        self._places.kept.clear()  # nothing is gathered that would still need them
        made = self._reduced(way, terms.address)
        if terms is not places[0]:
            self._places.spare_again(terms)
        self._places.give_back_much()
        if made is None or not self._divide(op, way, made):
            return False
        self._places.add(op.out, made)
        self.done += 1
        return True

    def _is_ready(self, way: Reduction) -> bool:
        """Tell whether what divides is compiled: before anything is summed."""
        return way.divide is None or (self._segment is not None and self._segment.is_ready(way.divide))

    def _terms(self, op: Op, way: Reduction, places: Sequence[Any]) -> Place | None:
        """Return where what is summed lies, or will; None if there is no memory, or nothing that multiplies yet."""
        if way.multiply is None or way.terms is None or self._segment is None:
            operand: Place = places[0]
            return operand
        terms = self._operands.new(way.terms, way.terms.nbytes)
        if terms is not None and not self._segment.put(op, way.multiply, [*places, terms]):
            self._places.spare_again(terms)
            return None
        return terms

    def _reduced(self, way: Reduction, address: int) -> Place | None:
        self._places.take_spare(BLOCK_BYTES)  # for the library, which has memory of its own for what it makes
        try:
            block = way.reduce(address)
        except MemoryError:  # CuPy's way says how much is missing
            return None
        return Place(block.address, way.made, None, block)

    def _divide(self, op: Op, way: Reduction, made: Place) -> bool:
        if way.divide is None or way.count is None or self._segment is None:
            return True
        return self._segment.put(op, way.divide, [made, way.count, made])
