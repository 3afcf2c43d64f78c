"""Operands that are dropped as soon as an op is recorded: it may compute into their memory."""

from __future__ import annotations

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Value, View
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.dropped import DroppedHandles, oldest

__all__ = ["taken_over", "takes_over"]


def taken_over(
    batch: OpenBatch, dropped: DroppedHandles, count: int, layout: Layout | None
) -> tuple[tuple[int, ...] | None, int]:
    """Return what the next op drops of the first ``count`` of ``dropped``, and what it reuses for a ``layout``.

    The last op of ``batch`` may have use for it before. Nothing is taken out of ``dropped``.
    """
    if count == 1:
        handle, spare = dropped[0]
        if spare is None:
            return (handle,), 0
        if spare is batch.made and takes_over(batch, handle):
            return None, 0
        return (None, handle) if spare is layout else ((handle,), 0)
    return oldest(dropped, count, layout)


def takes_over(batch: OpenBatch, handle: int) -> bool:
    """Let the last op of ``batch`` compute into ``handle``, which was dropped since; False if it cannot.

    As in ``x = x + y`` and ``0.5 * (a + b)``: what lies as the result does needs no other memory for it, and an output
    that is an operand is checked for overlaps by nobody.
    """
    last = batch.ops[-1] if batch.ops else None
    if last is None or last.reuse or not _is_operand(handle, last.args):
        return False
    batch.ops[-1] = Op(
        last.name, last.out, last.args, last.drop, last.want, last.kwargs, last.stream, handle, last.orders
    )
    return True


def _is_operand(handle: int, args: tuple[Value, ...]) -> bool:
    found = False
    for arg in args:
        if type(arg) is Ref:
            found = found or arg.handle == handle
        elif type(arg) is View and arg.root == handle:
            return False  # it would have to be copied first
    return found
