"""Calls of kernels that the user has written: what one is known by when it comes again."""

from __future__ import annotations

from gpu_backend.executor.heap import Heap, Kind, Place
from gpu_backend.executor.program.operands import Operands, encoded, is_whole
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import List, Ref, Tuple, Value, View

__all__ = ["CALL", "KernelCalls"]

#: The verb by which a notebook calls a kernel.
CALL = ".call"
#: In so many ways a kernel may come, none of which comes often, until no more are looked for: one of its numbers is
#: another each time.
_MOST_WAYS = 64


class KernelCalls:
    """Knows calls by the kernel, by how its arrays lie, and by the bits of all else that it is given."""

    def __init__(self, heap: Heap, operands: Operands) -> None:
        self._heap, self._operands = heap, operands
        #: By kernel: in how many ways it has come since one of them was captured.
        self._ways: dict[object, int] = {}

    def way(self, op: Op, places: list[Place]) -> tuple[object, ...] | None:
        """Return what the call is known by, and add where its arrays lie to ``places``; None for CuPy's way."""
        kernel = op.args[0] if op.args else None
        if type(kernel) is not Ref or self._heap.kind(kernel.handle) is not Kind.KERNEL:
            return None
        if self._ways.get(kernel.handle, 0) > _MOST_WAYS:
            return None
        way: list[object] = [CALL, kernel.handle]
        for arg in op.args[1:]:
            if not self._add(arg, places, way):
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

    def _add(self, arg: Value, places: list[Place], way: list[object]) -> bool:
        if isinstance(arg, Ref | View):
            place = self._operands.place(arg)
            if place is None:
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
