"""Operands that are dropped as soon as an op is recorded: it may compute into their memory."""

from __future__ import annotations

from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Value, View
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.dropped import DroppedHandles

__all__ = ["takes_over"]


def takes_over(batch: OpenBatch, dropped: DroppedHandles, count: int) -> bool:
    """Let the last op of ``batch`` compute into the one operand that was dropped since; False if it cannot.

    As in ``x = x + y`` and ``0.5 * (a + b)``: what lies as the result does needs no other memory for it, and an output
    that is an operand is checked for overlaps by nobody. ``count`` handles at the left of ``dropped`` are looked at.
    """
    if count > 1 or batch.made is None or not batch.ops:
        return False
    handle, layout = dropped[0]
    last = batch.ops[-1]
    if layout is not batch.made or last.reuse or not _is_operand(handle, last.args):
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
