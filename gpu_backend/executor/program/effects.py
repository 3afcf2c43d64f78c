"""What an op leaves behind it: in whose memory its results lie, and which arrays something may remember from now on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpu_backend.devices.base import Device
from gpu_backend.executor.heap import Heap, Kind
from gpu_backend.executor.program.plan import KEEPS, Plan, new_memory
from gpu_backend.wire import values as wire
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, View

__all__ = ["Accounts", "handles_in"]

_CALLS = frozenset((".call", ".launch"))
#: What names of functions begin with that go on from a state, and verbs that run code of which nothing is known.
_GOES_ON = ("cupy.random.", ".call", ".launch", ".begin", ".resume")
#: Methods of sparse matrices that only read what they are given.
_READING = frozenset(
    """__matmul__ __rmatmul__ __mul__ __rmul__ dot diagonal toarray todense sum mean max min argmax argmin trace
    count_nonzero""".split()
)


class Accounts:
    """Tells the heap who holds memory, op by op. What it cannot see is held."""

    def __init__(self, device: Device, heap: Heap, plan: Plan) -> None:
        self._device = device
        self._heap = heap
        self._ownership = heap.ownership
        self._new_memory = plan.new_memory

    def lend(self, op: Op) -> None:
        """Note that ``op`` was given to something that may remember it, or failed on the way there."""
        if self.may_remember(op):
            self._lend(op)

    def settle(self, op: Op, handles: Iterable[int]) -> None:
        """Note where the results of ``op`` lie, which are under ``handles`` now, and what it may have remembered."""
        if self.may_remember(op):
            self._lend(op)
            return
        given = list(handles_in((*op.args, *(op.kwargs or {}).values())))
        handles = tuple(handles)
        is_new = len(handles) == 1 and len(op.args) in self._new_memory[op.name]
        is_new = is_new and not (op.kwargs and any(handles_in(op.kwargs.values())))
        for handle in handles:
            kind = self._heap.kind(handle)
            if kind is Kind.ARRAY and is_new:
                self._ownership.own(handle)
            elif kind is Kind.ARRAY:
                self._place(handle, given)
                given.append(handle)  # several results may lie in one memory
            elif kind is not Kind.VALUE:
                self._lend_all(given)

    def _place(self, handle: int, others: Sequence[int]) -> None:
        """Find the one of ``others`` in whose memory the array ``handle`` lies."""
        objects, device = self._heap.objects, self._device
        array = objects[handle]
        for other in others:
            one = objects.get(other)
            if (
                one is not None
                and other != handle
                and device.is_array(one)
                and device.shares_base(array, one) is not None
            ):
                self._ownership.share(handle, other)
                return
        if device.owns_memory(array):
            self._ownership.own(handle)
        else:  # it is part of who knows what
            self._lend_all(others)

    def may_remember(self, op: Op) -> bool:
        """Tell whether something may remember what ``op`` is given; what is not known may."""
        known = self._new_memory.get(op.name)
        if known is None:  # it failed before it came to that
            known = new_memory(op.name)
        if known is not KEEPS:
            return False
        kind = self._kind(op)
        if op.name in _CALLS:
            return kind is not Kind.KERNEL
        if op.name == ".method" and len(op.args) > 1:
            if kind is Kind.ARRAY:
                return new_memory(f"cupy.ndarray.{op.args[1]}") is KEEPS
            return kind is not Kind.GENERATOR and not (kind is Kind.MATRIX and op.args[1] in _READING)
        return True

    def may_repeat(self, op: Op) -> bool:
        """Tell whether ``op``, which makes something new and has found no memory, may run again.

        What draws random numbers would draw others, and of what may remember its arguments nobody knows what it has
        done with them.
        """
        if self.may_remember(op):
            return False
        return self._kind(op) is not Kind.GENERATOR if op.name == ".method" else not op.name.startswith(_GOES_ON)

    def _kind(self, op: Op) -> Kind | None:
        """Return of what kind the first argument is; None for none that is an entry."""
        target = op.args[0] if op.args else None
        return self._heap.kind(target.handle) if type(target) is Ref else Kind.ARRAY if type(target) is View else None

    def _lend(self, op: Op) -> None:
        self._lend_all(handles_in((*op.args, *(op.kwargs or {}).values())))

    def _lend_all(self, handles: Iterable[int]) -> None:
        for handle in handles:
            self._ownership.lend(handle)


def handles_in(values: Iterable[Any]) -> Iterator[int]:
    """Yield the handles that are named anywhere in ``values``."""
    for value in values:
        kind = type(value)
        if kind is Ref or kind is wire.Method:
            yield value.handle
        elif kind is View:
            yield value.root
        elif kind is wire.Tuple or kind is wire.List:
            yield from handles_in(value.items)
        elif kind is wire.Dict:
            yield from handles_in(one for pair in value.items for one in pair)
        elif kind is wire.Slice:
            yield from handles_in((value.start, value.stop, value.step))
