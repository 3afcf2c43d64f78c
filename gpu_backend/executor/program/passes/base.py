"""The seam of the passes."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.wire.messages import Op

__all__ = ["Pass"]


class Pass(Protocol):
    """Finds memory for the result of an op that would otherwise be new. Results are the same bit for bit.

    Asked by `OpStream.run` before an op that has one result, waits for no answer, has no keywords and is for the
    current stream, if the op or the one behind it gives reason to. The first pass that finds something is heard.
    """

    #: How many of the ops behind are done by what `output` finds: those are not run. 0 if it looks at ``op`` alone.
    fulfils: ClassVar[int]

    def output(self, op: Op, batch: QueuedBatch, place: int) -> Any:
        """Return the array that ``op`` is to compute into, as the output that it takes last; None for new memory.

        ``place`` is that of the op behind it in ``batch``. What this raises is told as the failure of ``op``.
        """
