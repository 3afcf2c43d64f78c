"""The optimisations of the op stream: one a file, behind one seam, each of which can be switched off."""

from __future__ import annotations

from collections.abc import Collection

from gpu_backend.executor.config import PASSES
from gpu_backend.executor.heap import Heap
from gpu_backend.executor.program.passes.base import Pass
from gpu_backend.executor.program.passes.reuse import MemoryReuse
from gpu_backend.executor.program.passes.store import StoreForwarding
from gpu_backend.executor.program.plan import Plan
from gpu_backend.executor.values import Reader

__all__ = ["Pass", "make_passes"]


def make_passes(names: Collection[str], heap: Heap, reader: Reader, plan: Plan) -> tuple[Pass, ...]:
    """Return the passes called ``names``, in the order in which they are asked."""
    made: dict[str, Pass] = {"store": StoreForwarding(heap, reader, plan), "reuse": MemoryReuse(heap, plan)}
    return tuple(made[name] for name in PASSES if name in names and name in made)
