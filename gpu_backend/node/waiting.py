"""Sessions that wait for an executor of their node, and on which devices."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_backend.wire.control import Launch

__all__ = ["Key", "Waiting"]

#: The devices of an executor, by their ordinals: what it is on, it is on as long as it runs.
Key = tuple[int, ...]


@dataclass(slots=True)
class Waiting:
    """A session that waits; ``tries`` counts the executors that it was given before."""

    order: Launch
    tries: int = 0

    @property
    def key(self) -> Key:
        """The devices that it is to have."""
        return (self.order.ordinal, *self.order.others)
