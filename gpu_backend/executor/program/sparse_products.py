"""Products of sparse matrices and vectors past CuPy's handling of arguments: see `devices/sparse_products.py`."""

from __future__ import annotations

from gpu_backend.devices.sparse_products import SparseProduct, SparseProducts
from gpu_backend.executor.heap import Heap, Kind, Place
from gpu_backend.executor.program.operands import Operands
from gpu_backend.executor.program.segment import Segment
from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref

__all__ = ["SparseMultiplications"]

#: The object, the name of the method, and what it is given.
_ARGUMENTS = 3
#: The most memory that a result may take: a larger one keeps the device busy by itself.
_MOST_BYTES = 64 << 20
#: So many products are remembered.
_MOST_PRODUCTS = 256


class SparseMultiplications:
    """Carries out products of sparse matrices and vectors."""

    def __init__(self, runs: SparseProducts, operands: Operands, heap: Heap, segment: Segment | None) -> None:
        self._runs, self._operands, self._heap, self._segment = runs, operands, heap, segment
        self._known: dict[tuple[int, str, Layout], SparseProduct] = {}
        #: How many were carried out.
        self.done = 0

    def take(self, op: Op) -> bool:
        """Carry out ``op``, the call of a method, if it is such a product; return whether it was."""
        if len(op.args) != _ARGUMENTS or op.kwargs is not None or not op.out or not self._operands.is_free(op.out):
            return False
        target, method, given = op.args
        if type(target) is not Ref or type(method) is not str or self._heap.kind(target.handle) is not Kind.MATRIX:
            return False
        vector = self._operands.place(given)
        product = self._product(target.handle, method, vector.layout) if vector is not None else None
        return vector is not None and product is not None and self._run(op, product, vector)

    def _product(self, handle: int, method: str, vector: Layout) -> SparseProduct | None:
        key = handle, method, vector
        known, matrix = self._known.get(key), self._heap.objects[handle]
        if known is not None and known.holds(matrix):
            return known
        self._known.pop(key, None)
        self._launch()  # what is gathered may write the matrix, which is looked at
        found = self._runs.product(matrix, method, vector)
        if found is None or found.made.nbytes > _MOST_BYTES:
            return None
        if len(self._known) >= _MOST_PRODUCTS:
            self._known.clear()
        self._known[key] = found
        return found

    def _run(self, op: Op, product: SparseProduct, vector: Place) -> bool:
        result = self._operands.new(product.made, product.made.nbytes)
        if result is None:
            return False
        self._launch()
        operands, places = self._operands, self._heap.places
        temporary: list[Place] = []
        try:
            is_done = product.run(vector.address, result.address, lambda size: operands.scratch(size, temporary))
        finally:
            for one in temporary:
                places.spare_again(one)
        if is_done:
            places.add(op.out, result)
            places.kept.clear()
            self.done += 1
            if op.reuse:
                self._heap.drop(op.reuse)
        else:
            places.spare_again(result)
        places.give_back_much()
        return is_done

    def _launch(self) -> None:
        if self._segment is not None:
            self._segment.launch()
