"""Who holds an array's memory: counted where entries are put and dropped, never read off Python's references.

CPython says how many references an object has, but not whose they are, and since 3.14 it borrows some without counting
them. What is counted here is the session's own: which entries lie in the same memory. What may have been remembered by
anything else counts as held for ever. So where "alone" is said it is true, and sometimes it is not said though it is.
"""

from __future__ import annotations

__all__ = ["Ownership"]


class Ownership:
    """Which entries have their memory for themselves, which share it, and which are held by who knows whom.

    A handle that is in none of the books is held.
    """

    def __init__(self) -> None:
        #: Arrays in whose memory nothing lies but they, and their views in the heap. The op loop writes here directly,
        #: and into a dictionary it writes several times as fast as into a set.
        self.alone: dict[int, None] = {}
        #: Arrays that share their memory with other entries and with nothing else: all of these, by each of them.
        self.shared: dict[int, set[int]] = {}

    def own(self, handle: int) -> None:
        """Note that the new entry ``handle`` lies in memory that nothing else knows of."""
        self.forget(handle)
        self.alone[handle] = None

    def share(self, handle: int, other: int) -> None:
        """Note that the new entry ``handle`` lies in the memory of the entry ``other``."""
        self.forget(handle)
        if other in self.alone:
            del self.alone[other]
            self.shared[other] = {other}
        group = self.shared.get(other)
        if group is not None:  # else ``other`` is held, and with it the memory of both
            group.add(handle)
            self.shared[handle] = group

    def lend(self, handle: int) -> None:
        """Note that something which nobody can count may hold the memory of ``handle``, from now on."""
        self.alone.pop(handle, None)
        for one in self.shared.get(handle, ()):
            del self.shared[one]

    def forget(self, handle: int) -> None:
        """Note that the entry ``handle`` is gone, or another object stands there. Unknown handles are ignored."""
        self.alone.pop(handle, None)
        group = self.shared.pop(handle, None)
        if group is not None:
            group.remove(handle)
            if len(group) == 1:
                (last,) = group
                del self.shared[last]
                self.alone[last] = None

    def clear(self) -> None:
        """Forget everything."""
        self.alone.clear()
        self.shared.clear()
