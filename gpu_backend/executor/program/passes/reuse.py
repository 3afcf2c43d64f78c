"""Memory that the notebook has dropped: ``x = x + y`` need not allocate."""

from __future__ import annotations

from typing import Any, ClassVar

from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.heap import Heap
from gpu_backend.executor.program.plan import Plan
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import View

__all__ = ["MemoryReuse"]


class MemoryReuse:
    """Gives a ufunc the memory of the array that its op names (`Op.reuse`), if nobody else holds any of it.

    The heap keeps that array until then, so it makes no difference in which batch the array was made or dropped.
    """

    fulfils: ClassVar[int] = 0

    def __init__(self, heap: Heap, plan: Plan) -> None:
        self._heap = heap
        self._alone = heap.ownership.alone
        self._operands = plan.operands

    def output(self, op: Op, batch: QueuedBatch, place: int) -> Any:
        """Return the array that ``op`` names, which is nobody's from now on; None if there is none, or it is held."""
        if op.reuse not in self._alone or self._operands[op.name] != len(op.args):
            return None
        for arg in op.args:
            if type(arg) is View and arg.root == op.reuse:  # would have to be copied first
                return None
        return self._heap.take(op.reuse)
