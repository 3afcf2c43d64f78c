"""Stores of what was computed just before: ``u[1:-1] = 0.5 * v`` need not make an array and copy it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_backend.executor.heap import Heap
from gpu_backend.executor.values import Reader
from gpu_backend.opstream.surface import Ufunc, load
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, View

__all__ = ["STORE", "StoreForwarding"]

#: The verb by which a notebook puts an array into a window of the same shape and dtype.
STORE = ".store"


class StoreForwarding:
    """Finds out where a ufunc may put its result at once: into the window that it is stored in by the next op.

    The result itself must be forgotten right after that, or somebody would miss it.
    """

    def __init__(self, heap: Heap, reader: Reader) -> None:
        self._heap = heap
        self._reader = reader
        self._operands: dict[str, int] = {}  # of ufuncs with one result, by name

    def target(self, op: Op, ops: Sequence[Op], place: int, stream: int) -> Any:
        """Return the window that the op at ``place``, a store, puts the result of ``op`` into; None if it must wait."""
        store = ops[place]
        if place + 1 == len(ops) or store.want is not Want.NOTHING or store.stream != stream:
            return None
        window, value = store.args
        if type(value) is not Ref or value.handle != op.out or not _forgets(ops[place + 1], op.out):
            return None
        root = window.root if type(window) is View else window.handle if type(window) is Ref else 0
        if root not in self._heap.objects or len(op.args) != self._operands_of(op.name):
            return None
        for arg in op.args:
            # CuPy would copy such an operand first, which takes as long as the store; the same window is no other.
            if arg != window and root == (arg.root if type(arg) is View else arg.handle if type(arg) is Ref else 0):
                return None
        return self._reader.read(window)

    def _operands_of(self, name: str) -> int:
        """Return how many operands the ufunc ``name`` takes; -1 if it is none, or one with several results."""
        found = self._operands.get(name)
        if found is None:
            described = load().get(name)
            found = described.nin if isinstance(described, Ufunc) and described.nout == 1 else -1
            self._operands[name] = found
        return found


def _forgets(op: Op, handle: int) -> bool:
    return op.reuse == handle or (op.drop is not None and handle in op.drop)
