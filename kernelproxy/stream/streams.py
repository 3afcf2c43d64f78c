"""The current stream of each thread, by the handle that ops carry."""

from __future__ import annotations

import threading
from typing import Any

from kernelproxy import compiled


class _Current(threading.local):
    stream: Any = None


class Streams:
    """Which of a client's streams is current in which thread."""

    __slots__ = ("_current", "is_used")

    def __init__(self) -> None:
        #: False until some thread leaves the default stream: until then nobody pays for looking.
        self.is_used = False
        self._current = _Current()

    def current_handle(self) -> int:
        """Return the handle of this thread's current stream; 0 for the default one."""
        stream = self._current.stream if self.is_used else None
        return 0 if stream is None else stream._handle

    def current(self) -> Any:
        """Return this thread's current stream, or None for the default one."""
        return self._current.stream

    def set_current(self, stream: Any) -> Any:
        """Make ``stream`` this thread's current stream and return the one before; None is the default one."""
        self.is_used = True
        before, self._current.stream = self._current.stream, stream
        return before


compiled.learn(Streams=Streams)
