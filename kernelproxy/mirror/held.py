"""What is known of arrays, by their handles: bounded, and without those of which nothing may be known."""

from __future__ import annotations

from gpu_backend.wire import values as wire
from kernelproxy.mirror.effects import handles_in
from kernelproxy.mirror.entries import Entry
from kernelproxy.mirror.memory import Memory

#: All that is known holds no more bytes than this, and is no more arrays than so many.
_MOST_BYTES, _MOST_ARRAYS = 16 << 20, 4_096


class Held:
    """Entries for arrays.

    Attributes
    ----------
    is_on
        Whether it takes anything in.
    known
        Entries by the handle of the array that owns the memory.
    barred
        Handles of memory that others may write, or of which nobody knows whose it is: never to be known.
    """

    __slots__ = ("__dict__", "barred", "is_on", "known")

    def __init__(self, is_on: bool) -> None:
        self.is_on = is_on
        self.known: dict[int, Entry] = {}
        self.barred: set[int] = set()
        self._held_bytes = 0
        self._missed: dict[int, None] = {}  # arrays whose reads took trips

    def publish(self, handle: int, entry: Entry) -> None:
        """Know ``entry`` as the memory of ``handle``, of which nothing is known."""
        if not self.is_on or handle in self.barred:
            return
        self.known[handle] = entry
        self._held_bytes += entry.layout.nbytes
        while self._held_bytes > _MOST_BYTES or len(self.known) > _MOST_ARRAYS:
            self.forget(next(iter(self.known)))

    def _take(self, handle: int) -> Entry | None:
        entry = self.known.pop(handle, None)
        if entry is not None:
            self._held_bytes -= entry.layout.nbytes
        return entry

    def forget(self, handle: int) -> None:
        """Know no more of ``handle``."""
        entry = self._take(handle)
        if type(entry) is Memory and entry.is_fetched and not entry.is_read:
            self.barred.add(handle)  # it was fetched in vain

    def drop(self, handle: int) -> None:
        """Forget ``handle``, which is no array's any more."""
        self._take(handle)
        self.barred.discard(handle)
        self._missed.pop(handle, None)

    def bar(self, *values: object) -> None:
        """Never know anything of what ``values`` name."""
        for handle in handles_in(values):
            self.forget(handle)
            self.barred.add(handle)

    def clear(self) -> None:
        """Know nothing: who had the arrays is gone."""
        self.known.clear()
        self._missed.clear()
        self._held_bytes = 0

    def trust(self, described: object) -> None:
        """Note that arrays which an op that only reads its arguments has described show memory of nobody else's."""
        items = described.items if isinstance(described, (wire.Tuple, wire.List)) else (described,)
        self.barred.difference_update(one.handle for one in items if isinstance(one, wire.ArrayInfo) and not one.base)
