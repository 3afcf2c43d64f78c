"""What the notebook knows of its memory on the device: enough to say which results can be had without asking.

`OutOfMemoryError` belongs to the call that caused it. So a result is not waited for only if it is small beside what is
left of the limit, and what is left is known here: every array has a handle, and handles that end are told.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpu_backend.wire.errors import ProtocolError
from gpu_backend.wire.messages import Welcome

#: An array of up to this part of the limit is not counted: it would cost more than it tells.
_SMALL_PART = 1 << 12
#: A result of up to this part of what is left is sure to be had, with all that an op needs beside its result.
_SURE_PART = 8
#: Where nobody has said a limit, others may hold what is left of the device: then no more than this is sure, bytes.
_SURE_WITHOUT_LIMIT = 1 << 30


class MemoryModel:
    """Bytes that the arrays of this process hold, and the limit on them.

    Attributes
    ----------
    small_bytes
        Arrays of up to this size are not counted, and always sure.
    limit_bytes
        Most that may be held: as the executor has said, or else all that the device has.
    held
        What each counted array holds, by its handle.
    held_bytes
        What they hold together.
    """

    __slots__ = ("__dict__", "held", "held_bytes", "limit_bytes", "small_bytes")

    def __init__(self, limit_bytes: int = 0, device_bytes: int = 1 << 33) -> None:
        #: What the device has.
        self.device_bytes = device_bytes
        self.held: dict[int, int] = {}
        self.held_bytes = 0
        self.set_limit(limit_bytes)

    @classmethod
    def of(cls, welcome: Welcome) -> MemoryModel:
        """Return the model of the session that ``welcome`` opens."""
        total = welcome.device.get("total_bytes")
        return cls(welcome.memory_limit_bytes, total if isinstance(total, int) and total > 0 else 1 << 33)

    def set_limit(self, limit_bytes: int) -> None:
        """Take the limit that the executor has said; 0 for none."""
        if limit_bytes < 0:
            raise ProtocolError(f"A memory limit of {limit_bytes} bytes makes no sense.")
        self.limit_bytes = limit_bytes or self.device_bytes
        self.small_bytes = self.limit_bytes // _SMALL_PART
        self._most_sure = self.limit_bytes if limit_bytes else _SURE_WITHOUT_LIMIT

    def note(self, handle: int, nbytes: int) -> None:
        """Count the array ``handle``, which owns ``nbytes``."""
        self.held_bytes += nbytes - self.held.get(handle, 0)
        self.held[handle] = nbytes

    def forget(self, handle: int) -> None:
        """Count ``handle`` no more, if it is counted."""
        self.held_bytes -= self.held.pop(handle, 0)

    def is_sure(self, nbytes: int, ending: Sequence[int] = ()) -> bool:
        """Tell whether a result of ``nbytes`` is sure to be had, once the handles ``ending`` are gone."""
        if nbytes <= self.small_bytes:
            return True
        if nbytes > self._most_sure:
            return False
        left = self.limit_bytes - self.held_bytes
        if nbytes <= left // _SURE_PART:
            return True
        left += sum([self.held.get(handle, 0) for handle in ending])
        return nbytes <= left // _SURE_PART

    def clear(self) -> None:
        """Count nothing: the executor is gone, and its arrays with it."""
        self.held.clear()
        self.held_bytes = 0
