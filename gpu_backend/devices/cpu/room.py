"""Whether the machine still has the memory that an array asks for."""

from __future__ import annotations

from collections.abc import Callable

from gpu_backend.metering.machine import machine_bytes, resident_bytes

#: What of the machine's memory is left to everything else on it, as one part of so many.
_KEPT_PART = 16
#: Memory is looked at again when a quarter of what was left is taken, or this much: others take of it as well.
_LOOK_PART = 4
_MOST_UNSEEN_BYTES = 256 << 20


class Room:
    """What the machine has beside what is held, looked at now and then.

    The system promises more memory than there is, and ends a process that uses what it was promised. So what was
    promised to arrays and is not in use yet counts as taken.

    Parameters
    ----------
    machine
        Returns (free, total) memory of the machine, in bytes.
    resident
        Returns what this process holds of it.
    """

    def __init__(
        self,
        machine: Callable[[], tuple[int, int]] = machine_bytes,
        resident: Callable[[], int] = resident_bytes,
    ) -> None:
        self._machine, self._resident = machine, resident
        self._own = resident()  #: without arrays
        self._unseen = 0  #: bytes that may be taken before the machine is asked again

    def is_known_for(self, nbytes: int) -> bool:
        """Tell whether ``nbytes`` may be taken without asking the machine."""
        return nbytes <= self._unseen

    def take(self, nbytes: int) -> None:
        """Note that ``nbytes`` are taken."""
        self._unseen -= nbytes

    def has(self, held: int, more: int) -> bool:
        """Ask the machine whether arrays that hold ``held`` bytes may hold ``more`` beside them."""
        free, total = self._machine()
        touched = min(held, max(0, self._resident() - self._own))
        left = free - total // _KEPT_PART - (held - touched) - more
        if left >= 0:
            self._unseen = more + min(left // _LOOK_PART, _MOST_UNSEEN_BYTES)
        return left >= 0
