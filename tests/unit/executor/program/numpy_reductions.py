"""Reductions on the CPU device, for tests: NumPy reduces what lies at an address, as a library would."""

from __future__ import annotations

import numpy as np

from gpu_backend.devices.blocks import Block
from gpu_backend.devices.reductions import Reduce
from gpu_backend.opstream.layout import Layout, contiguous_strides
from tests.unit.executor.program.numpy_replays import GatheringCpu
from tests.unit.executor.program.numpy_segments import NumpyBlocks, array_at


class NumpyReductions:
    """Reduces floating numbers, in memory that is taken from ``blocks``; notes how many."""

    def __init__(self, blocks: NumpyBlocks) -> None:
        self._blocks = blocks
        self.calls: list[str] = []
        self.is_pooled = True

    def has_pool(self) -> bool:
        """Tell whether memory comes from a pool; see the seam."""
        return self.is_pooled

    def reduction(self, name: str, layout: Layout) -> Reduce | None:
        """Return what reduces arrays that lie so; see the seam."""
        verb = name.rpartition(".")[2]
        if verb not in ("sum", "max") or layout.dtype.kind != "f" or not layout.c_contiguous or not layout.size:
            return None

        def run(address: int) -> Block:
            made = self._blocks.block(512)
            self.calls.append(verb)
            lying = array_at(address, layout.dtype, layout.shape, contiguous_strides(layout.shape, layout.itemsize))
            array_at(made.address, layout.dtype, (), ())[...] = getattr(np, verb)(lying)
            return made

        return run


class ReducingCpu(GatheringCpu):
    """The CPU device with segments, replays and reductions."""

    def __init__(self) -> None:
        super().__init__()
        self.reduced = self.reductions = NumpyReductions(self.memory_by_address)
