"""The ops that have come and not run, as one row: a batch ends where the notebook happened to send, and means nothing.

Optimising looks at the ops behind the one whose turn it is. Those may be in the batches that follow.
"""

from __future__ import annotations

from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.wire.messages import Op

__all__ = ["Window"]


class Window:
    """The ops from a batch on. Places are counted from its first op, on into what follows."""

    __slots__ = ("_batch",)

    def __init__(self, batch: QueuedBatch) -> None:
        self._batch = batch

    def op(self, place: int) -> Op | None:
        """Return the op at ``place``, or None if it has not come yet."""
        batch: QueuedBatch | None = self._batch
        while batch is not None:
            if place < len(batch.ops):
                return batch.ops[place]
            place -= len(batch.ops)
            batch = batch.following
            place += batch.next if batch is not None else 0  # what came twice ran before
        return None
