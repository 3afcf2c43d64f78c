"""The current device and stream of each thread, by the handle that ops carry."""

from __future__ import annotations

import threading
from typing import Any

from gpu_backend.opstream.devices import default_stream
from kernelproxy import compiled


class _Current(threading.local):
    device = 0
    stream: Any = None

    def __init__(self) -> None:
        #: The streams that are current on the devices that are not.
        self.others: dict[int, Any] = {}


class Streams:
    """Which of a client's devices is current in which thread, and which stream on each; None is its default one."""

    __slots__ = ("_current", "is_used")

    def __init__(self) -> None:
        #: False until some thread leaves the default stream: until then nobody pays for looking.
        self.is_used = False
        self._current = _Current()

    def current_handle(self) -> int:
        """Return the handle of this thread's current stream; 0 for the default one of the first device."""
        if not self.is_used:
            return 0
        current = self._current
        stream = current.stream
        return (0 if stream is None else stream._handle) or default_stream(current.device)

    def default_handle(self) -> int:
        """Return the handle of the default stream of this thread's current device."""
        return default_stream(self._current.device) if self.is_used else 0

    def current(self, device: int = -1) -> Any:
        """Return this thread's current stream on ``device``, on the current one by default; None for the default."""
        current = self._current
        return current.stream if device in (-1, current.device) else current.others.get(device)

    def set_current(self, stream: Any, device: int = -1) -> Any:
        """Make ``stream`` this thread's current one on ``device``, or on the current one; return the one before."""
        self.is_used = True
        current = self._current
        if device not in (-1, current.device):
            before, current.others[device] = current.others.get(device), stream
        else:
            before, current.stream = current.stream, stream
        return before

    @property
    def device(self) -> int:
        """The number of this thread's current device."""
        return self._current.device

    def set_device(self, device: int) -> int:
        """Make ``device`` this thread's current one, with its stream; return the one before."""
        current = self._current
        before = current.device
        if device != before:
            self.is_used = True
            current.others[before] = current.stream
            current.device, current.stream = device, current.others.pop(device, None)
        return before


compiled.learn(Streams=Streams)
