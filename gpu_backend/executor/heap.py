"""The handle table: every remote object of a session, and why the missing ones are missing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Any, NamedTuple

from gpu_backend.wire.errors import ErrorRecord


class Failure(NamedTuple):
    """Why a handle holds nothing: the op that should have made it, and what that raised."""

    seq: int
    error: ErrorRecord


class Heap(dict[int, Any]):
    """Handle to object. Reading a live handle is a plain dictionary look-up."""

    def __init__(self) -> None:
        super().__init__()
        self._failures: dict[int, Failure] = {}
        self._failed_handles: list[int] = []

    def fail(self, handle: int, failure: Failure) -> None:
        """Note that ``handle`` and those that would have followed it will never hold anything."""
        if handle not in self._failures:
            insort(self._failed_handles, handle)
        self._failures[handle] = failure

    def drop(self, handle: int) -> None:
        """Forget ``handle``. Unknown handles are ignored: their op may have failed."""
        if self.pop(handle, None) is None and self._failures.pop(handle, None) is not None:
            del self._failed_handles[bisect_left(self._failed_handles, handle)]

    def why_missing(self, handle: int) -> Failure | None:
        """Return the failure of the op that should have made ``handle``, or None if no such op is known."""
        # An op with several results fails under the first of their handles, so look for the nearest one below.
        place = bisect_right(self._failed_handles, handle)
        return self._failures[self._failed_handles[place - 1]] if place else None

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self._failures.clear()
        self._failed_handles.clear()
