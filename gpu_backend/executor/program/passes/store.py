"""Stores of what was computed just before: ``u[1:-1] = 0.5 * v`` need not make an array and copy it."""

from __future__ import annotations

from typing import Any, ClassVar

from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.heap import Heap
from gpu_backend.executor.program.effects import handles_in
from gpu_backend.executor.program.plan import Plan
from gpu_backend.executor.program.window import Window
from gpu_backend.executor.values import Reader
from gpu_backend.executor.verbs import STORE
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, View

__all__ = ["StoreForwarding"]


class StoreForwarding:
    """Finds out where a ufunc may put its result at once: into the window that it is stored in by the next op.

    The result itself must be forgotten right after that, or somebody would miss it.
    """

    fulfils: ClassVar[int] = 1

    def __init__(self, heap: Heap, reader: Reader, plan: Plan) -> None:
        self._heap = heap
        self._reader = reader
        self._operands = plan.operands

    def output(self, op: Op, batch: QueuedBatch, place: int) -> Any:
        """Return the window that the op at ``place``, a store, puts the result of ``op`` into; None if it must wait."""
        ops = batch.ops
        if place + 1 < len(ops):  # nearly always, and a window takes its time
            store: Op | None = ops[place]
            behind: Op | None = ops[place + 1]
        else:
            window = Window(batch)
            store, behind = window.op(place), window.op(place + 1)
        if store is None or store.name != STORE or store.want is not Want.NOTHING or store.stream != op.stream:
            return None
        into, value = store.args
        if behind is None or type(value) is not Ref or value.handle != op.out or not _forgets(behind, op.out):
            return None
        root = into.root if type(into) is View else into.handle if type(into) is Ref else 0
        if root == op.reuse or (store.drop is not None and (root in store.drop or op.out in store.drop)):
            return None  # gone before it runs: then it fails
        if root not in self._heap.objects or self._operands[op.name] != len(op.args):
            return None
        for arg in op.args:
            # CuPy would copy such an operand first, which takes as long as the store; the same window is no other.
            if arg != into and root == (arg.root if type(arg) is View else arg.handle if type(arg) is Ref else 0):
                return None
        try:
            return self._reader.read(into)
        except Exception:  # whatever is wrong with the window: the store itself says so, and not what it stores
            return None


def _forgets(op: Op, handle: int) -> bool:
    """Tell whether ``op`` lets go of ``handle`` without having looked at it, as it may at what it computes into."""
    if op.reuse == handle:
        return handle not in list(handles_in((*op.args, *(op.kwargs or {}).values())))
    return op.drop is not None and handle in op.drop
