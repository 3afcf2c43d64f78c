"""How many recorded ops make a message: few where the executor has nothing to do, many where it is far behind."""

from __future__ import annotations

#: While nothing is under way, so that the executor begins early.
FIRST_OPS = 16
#: While it keeps up: enough to hide what a message costs, and few enough that it is not left waiting for the next.
BATCH_OPS = 64
#: While at least so many are under way: then nobody waits for the next message, and each costs as much as some ops.
FAR_OPS, FAR_BATCH_OPS = 1_024, 256


def batch_ops(in_flight: int) -> int:
    """Return with how many ops a batch is full, where ``in_flight`` ops are sent and unconfirmed."""
    if not in_flight:
        return FIRST_OPS
    return BATCH_OPS if in_flight < FAR_OPS else FAR_BATCH_OPS
