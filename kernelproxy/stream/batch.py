"""A batch: ops that travel in one message, as they are recorded."""

from __future__ import annotations

from typing import Self

from gpu_backend.opstream.entry import Entry
from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.messages import Op
from kernelproxy.source_lines import Site
from kernelproxy.stream.costs import Cost


class OpenBatch(Entry):
    """Ops being recorded. ``sites`` holds, by place, where each was recorded.

    ``costs`` holds what each will take, and ``seconds`` their sum as the batch was last looked at to be sent.
    It was sent last at ``sent_at``, by `time.monotonic`.
    ``made`` is the layout of what the last op makes, if that op may be told into which memory.
    """

    __slots__ = ("costs", "made", "seconds", "sent_at", "sites")

    def __init__(self, first: int) -> None:
        super().__init__(first)
        self.made: Layout | None = None
        self.sites: list[Site | None] = []
        self.costs: list[Cost] = []
        self.seconds = self.sent_at = 0.0

    def add(self, op: Op, site: Site | None, cost: Cost, made: Layout | None = None) -> int:
        """Append ``op``, which was recorded at ``site`` and will take ``cost``, and return its place."""
        place = len(self.ops)
        self.sites[place:] = [site]  # an interrupt may have left one of an op that never came
        self.made = None  # an interrupt before the op is there leaves the one before it as it is
        self.ops.append(op)
        self.made = made
        self.costs.append(cost)
        return place

    def at(self, place: int) -> tuple[Op, Site | None]:
        """Return the op at ``place``, and where it was recorded."""
        return self.ops[place], self.sites[place]

    def successor(self) -> OpenBatch:
        """Return the empty batch that goes on where this one ends."""
        return OpenBatch(self.end)

    def part(self, place: int) -> Self:
        """Return a batch with nothing but the op at ``place``."""
        part = super().part(place)
        part.sites, part.costs = self.sites[place : place + 1], self.costs[place : place + 1]
        return part
