"""What becomes of ops that come in one way: name, layouts and other arguments the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpu_backend.devices.extents import reach
from gpu_backend.devices.replays import Replay
from gpu_backend.executor.program.joining import Join
from gpu_backend.executor.program.operands import is_apart
from gpu_backend.executor.program.products import Multiplication
from gpu_backend.executor.program.reductions import Reduction
from gpu_backend.executor.program.steps import Step
from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.messages import Op

__all__ = ["Course", "Lesson"]


class Course:
    """What becomes of ops that come in one way."""

    __slots__ = (
        "copies", "into", "is_kernel", "join", "may_coincide", "product", "reduction", "refused", "replay", "seen",
        "spans", "step", "sums", "waited",
    )  # fmt: skip

    def __init__(
        self, step: Step | None, product: Multiplication | None, into: int, may_coincide: bool, is_kernel: bool = False
    ) -> None:
        self.step, self.product = step, product
        #: What joins its operands by copies.
        self.join: Join | None = None
        #: What reduces its operands as long as it is not replayed.
        self.reduction: Reduction | None = None
        #: Whether it did.
        self.sums = False
        self.replay: Replay | None = None
        #: What is launched then, as instructions, if it is copies alone.
        self.copies: tuple[Step, ...] | None = None
        #: Why it cannot be replayed, once that is known.
        self.refused = ""
        #: How often it came and went CuPy's way; below zero if it always will.
        self.seen = 0
        #: How often it was to be gathered with others since it last was, and that was not compiled yet.
        self.waited = 0
        #: Which operand an elementwise op writes into that has no result. Another may lie just there: each element is
        #: read before it is written.
        self.into, self.may_coincide = into, may_coincide
        #: Whether the op is one kernel of the user's, which is given an array twice as it is given two. A function of
        #: CuPy's looks for what it is given twice, and may compute into memory of its own then.
        self.is_kernel = is_kernel
        #: How far each operand reaches from its first byte, once asked.
        self.spans: tuple[tuple[int, int], ...] | None = None

    def is_apart(self, places: Sequence[Any]) -> bool:
        """Tell whether an op without a result writes over none of its operands that it may not."""
        if self.spans is None:
            layouts = [place.layout for place in places]
            self.spans = tuple(
                reach(one.shape, one.strides, one.itemsize) if type(one) is Layout else (0, 0) for one in layouts
            )
        if self.may_coincide:
            return self.into < len(places) and is_apart(places, self.spans, self.into, may_coincide=True)
        # which one is written is not said: so none may lie across another
        spans, is_kernel = self.spans, self.is_kernel
        return bool(places) and all(
            is_apart(places, spans, one, may_be_given_twice=is_kernel) for one in range(len(places))
        )


class Lesson(NamedTuple):
    """An op that may be captured: as it came, with how its operands lay and nothing that lay there."""

    op: Op
    course: Course
    places: Sequence[Any]
