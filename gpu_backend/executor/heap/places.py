"""Where arrays lie: all that a segment has to know of them, and all that there is of those which nobody else needed."""

from __future__ import annotations

from gpu_backend.devices.arrays import Array
from gpu_backend.devices.blocks import Block
from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.values import View

__all__ = ["MOST_SPARE_BYTES", "Place", "Places"]

#: Memory that is kept for results to come: loops on ever new sizes use none of it again.
MOST_SPARE_BYTES = 64 << 20


class Place:
    """Where an array lies in the device's memory, and how. Of the object that holds it there may be none yet."""

    __slots__ = ("address", "array", "block", "layout", "windows")

    def __init__(self, address: int, layout: Layout, array: Array | None, block: Block | None = None) -> None:
        self.address = address
        self.layout = layout
        #: The array; None while there is only its memory.
        self.array = array
        #: Of an array that has not been made: its memory, which it fills from the first byte on.
        self.block = block
        self.windows: dict[View, Place] | None = None


class Places:
    """The places that are known, by handle, and the memory that is left of dropped ones.

    What recurs writes here too, so attributes are slots (``program/csrc/objects.h``), and stay the objects they are.
    """

    __slots__ = ("kept", "known", "spare", "spare_bytes", "unmade")

    def __init__(self) -> None:
        #: Forgotten with the entry itself, and when another array stands there.
        self.known: dict[int, Place] = {}
        #: How many of them have no array.
        self.unmade = 0
        #: Those without an array whose handles were dropped, by size: the next op may write there.
        self.spare: dict[int, list[Place]] = {}
        self.spare_bytes = 0
        #: Those with an array whose handles were dropped: ops that have not run may still need it.
        self.kept: list[Place] = []

    def forget(self, handle: int) -> Place | None:
        """Forget the place of ``handle``; return it if it was all there was, and its memory is spare now."""
        place = self.known.pop(handle, None)
        if place is None:
            return None
        if place.array is not None or place.block is None:
            self.kept.append(place)
            return None
        self.unmade -= 1
        self.spare_again(place)
        return place

    def add(self, handle: int, place: Place) -> None:
        """Note that the new array ``handle``, which is not made, has its memory at ``place``."""
        self.known[handle] = place
        self.unmade += 1

    def spare_again(self, place: Place) -> None:
        """Keep the memory of a place without an array for ops to come."""
        assert place.block is not None
        place.windows = None
        size = place.block.size_bytes
        self.spare_bytes += size
        if size in self.spare:
            self.spare[size].append(place)
        else:
            self.spare[size] = [place]

    def take_spare(self, size_bytes: int) -> Place | None:
        """Return a place without an array whose memory is spare, and of this size; None if there is none."""
        spare = self.spare.get(size_bytes)
        if not spare:
            return None
        self.spare_bytes -= size_bytes
        return spare.pop()

    def give_back(self) -> None:
        """Give spare memory back to its pool. Nothing may be gathered that would still use it."""
        self.spare.clear()
        self.spare_bytes = 0

    def give_back_much(self) -> None:
        """Give spare memory back if there is much of it, as `give_back`."""
        if self.spare_bytes > MOST_SPARE_BYTES:
            self.give_back()

    def rest(self) -> None:
        """Let go of what only ops that have run still needed, and of what is spare, if that is much."""
        self.kept.clear()
        self.give_back_much()

    def clear(self) -> None:
        """Forget everything."""
        self.known.clear()
        self.unmade = 0
        self.give_back()
        self.kept.clear()
