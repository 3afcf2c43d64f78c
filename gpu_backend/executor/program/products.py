"""Matrix products past CuPy's handling of arguments: see `devices/products.py`, and those of sparse matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpu_backend.devices.base import Device
from gpu_backend.devices.products import Product
from gpu_backend.devices.products import Products as ProductsOfDevice
from gpu_backend.executor.heap import Heap, Place, Places
from gpu_backend.executor.program.operands import Operands
from gpu_backend.executor.program.segment import Segment
from gpu_backend.executor.program.sparse_products import SparseMultiplications
from gpu_backend.executor.program.steps import Step
from gpu_backend.executor.verbs import STORE
from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.messages import Op

__all__ = ["Multiplication", "Multiplications", "make_multiplications"]

#: The verb by which a notebook calls a method of an object, such as a sparse matrix.
_METHOD = ".method"
#: The one that multiplies stacks of matrices.
_OF_STACKS = "cupy.matmul"
_NAMES = frozenset(("cupy.matmul", "cupy.dot", "cupy.ndarray.dot"))
#: The most memory that a result, a copy or the call itself may take: a larger one keeps the device busy by itself.
_MOST_BYTES = 64 << 20


class _Copy(NamedTuple):
    step: Step
    into: Layout


class Multiplication:
    """A product in one way: the call, and the copies of operands before it, if CuPy makes any."""

    __slots__ = ("copies", "product")

    def __init__(self, product: Product, copies: Sequence[_Copy | None]) -> None:
        self.product, self.copies = product, copies


class Multiplications:
    """Carries out products.

    Parameters
    ----------
    sparse
        Those of sparse matrices; None on a device that gains nothing by it.
    """

    def __init__(
        self, runs: ProductsOfDevice, operands: Operands, places: Places, segment: Segment | None,
        sparse: SparseMultiplications | None = None,
    ) -> None:  # fmt: skip
        self._runs, self._operands, self._places, self._segment = runs, operands, places, segment
        self._sparse, self._done = sparse, 0

    @property
    def done(self) -> int:
        """How many were carried out."""
        return self._done + (self._sparse.done if self._sparse is not None else 0)

    def take_method(self, op: Op) -> bool:
        """Carry out ``op`` if it calls a method, and is a product of a sparse matrix; return whether it was."""
        return op.name == _METHOD and self._sparse is not None and self._sparse.take(op)

    @staticmethod
    def has(name: str) -> bool:
        """Tell whether ``name`` is that of a product."""
        return name in _NAMES

    def way(self, name: str, layouts: Sequence[Any]) -> Multiplication | None:
        """Return op ``name`` on operands that lie so; None if it is no product, or CuPy makes another call for it."""
        if not self.has(name) or len(layouts) != 2 or any(type(one) is not Layout for one in layouts):
            return None
        first, second = layouts
        is_stack = name == _OF_STACKS and max(first.ndim, second.ndim) > 2
        product = self._runs.stacks(first, second) if is_stack else self._runs.product(first, second)
        if product is None or max(product.call.made.nbytes, product.scratch_bytes) > _MOST_BYTES:
            return None
        copies: list[_Copy | None] = []
        for layout, copied in ((first, product.call.first_copy), (second, product.call.second_copy)):
            step = None
            if copied is not None and self._segment is not None and copied.nbytes <= _MOST_BYTES:
                step = self._segment.step(STORE, 1, [layout, copied])
            if copied is not None and step is None:
                return None
            copies.append(None if copied is None or step is None else _Copy(step, copied))
        return Multiplication(product, copies)

    def run(self, op: Op, way: Multiplication, places: Sequence[Place]) -> bool:
        """Carry out ``op`` behind all that is gathered; return whether that was possible."""
        if not op.out or not self._operands.is_free(op.out):
            return False
        made = way.product.call.made
        result = self._operands.new(made, made.nbytes)
        if result is None:
            return False
        temporary: list[Place] = []
        first, second = (
            self._address(op, place, copy, temporary) for place, copy in zip(places, way.copies, strict=True)
        )
        scratch = self._operands.scratch(way.product.scratch_bytes, temporary)
        if self._segment is not None:
            self._segment.launch()
        is_possible = first is not None and second is not None and scratch is not None
        if first is not None and second is not None and scratch is not None:
            way.product.run(first, second, result.address, scratch)
            self._places.add(op.out, result)
            self._done += 1
        else:
            temporary.append(result)
        for one in temporary:
            self._places.spare_again(one)
        self._places.give_back_much()
        return is_possible

    def _address(self, op: Op, place: Place, copy: _Copy | None, temporary: list[Place]) -> int | None:
        """Return where the library finds an operand, which is copied if CuPy does so; None if it cannot be."""
        if copy is None:
            return place.address
        assert self._segment is not None
        copied = self._operands.new(copy.into, copy.into.nbytes)
        if copied is None:
            return None
        temporary.append(copied)
        return copied.address if self._segment.put(op, copy.step, [place, copied]) else None


def make_multiplications(
    device: Device, operands: Operands, heap: Heap, segment: Segment | None
) -> Multiplications | None:
    """Return what carries out products past CuPy on ``device``; None if nothing does."""
    if device.products is None:
        return None
    runs = device.sparse_products
    sparse = SparseMultiplications(runs, operands, heap, segment) if runs is not None else None
    return Multiplications(device.products, operands, heap.places, segment, sparse)
