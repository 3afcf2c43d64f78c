"""The memory that notebooks of this host share with the executor: made, and known to the device, before they come.

A device copies from and to memory that it knows several times as fast, and without the processor. To make memory known
costs some 5 ms a MiB, so it is done while nobody waits, one block at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from gpu_backend.devices.base import Pinned
from gpu_backend.transport import joining
from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.joining import Room

log = logging.getLogger("executor")

__all__ = ["Rooms"]

Pin = Callable[[Bytes], Pinned | None]


class Rooms:
    """Makes the memory for each connection; one is there before it is wanted. The device knows the newest only.

    Parameters
    ----------
    pin
        `Device.pin`.
    """

    def __init__(self, pin: Pin) -> None:
        self._pin = pin
        self._newest: Room | None = None  # it stays mapped for as long as the device knows of it
        self._unknown: list[Bytes] = []
        self._known: list[Pinned] = []
        self._next = self._make()

    def _make(self) -> Room | None:
        while self._known:
            self._known.pop().release()
        try:
            room = joining.make()
        except OSError as error:
            log.warning("there is no memory to share with a notebook: %s", error)
            room = None
        self._unknown = room.frames.blocks() if room is not None else []
        self._newest = room
        return room

    def take(self) -> Room | None:
        """Return memory that nobody has yet; None if the system has none. Called by the door, for who has come in."""
        room, self._next = self._next, None
        return room or self._make()

    def prepare(self) -> bool:
        """Make one more block known to the device; False if there is none left. Called while nobody waits."""
        if self._unknown:
            pinned = self._pin(self._unknown.pop())
            if pinned is None:  # nor will it want the others
                self._unknown.clear()
            else:
                self._known.append(pinned)
        return bool(self._unknown)
