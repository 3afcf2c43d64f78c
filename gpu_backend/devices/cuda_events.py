"""Markers in a GPU's queue: CUDA events, which say when work is done and how long it took."""

from __future__ import annotations

from typing import Any

import cupy
from cupy.cuda import runtime

#: cudaErrorNotReady: what a query answers while the work goes on.
_NOT_READY = 600
#: The legacy and the per-thread default stream have the handles 0 to 2; only others can be captured.
_LAST_DEFAULT_STREAM = 2


class Events:
    """Events of one GPU to use again, for making one costs as much as recording it; and whether any may be asked now.

    While a stream is being captured into a graph, recording an event would put it into the graph, and asking for one
    would spoil the capture.
    """

    def __init__(self) -> None:
        self.spare: list[Any] = []
        self.is_capturing = False

    def record(self, stream: Any) -> Any:
        """Return an event behind all work given so far to ``stream``; None if there can be none."""
        pointer = stream.ptr
        try:
            self.is_capturing = pointer > _LAST_DEFAULT_STREAM and bool(stream.is_capturing())
            if self.is_capturing:
                return None
            event = self.spare.pop() if self.spare else cupy.cuda.Event()
            runtime.eventRecord(event.ptr, pointer)  # as `Event.record`, which asks more: two of these stand by a read
        except runtime.CUDARuntimeError:  # the device is lost
            self.is_capturing = False
            return None
        return event


class TimedEvent:
    """A CUDA event that was recorded. On a device that is lost, and in a capture, it is done and took no time."""

    __slots__ = ("_event", "_events")

    def __init__(self, events: Events, stream: Any) -> None:
        self._events = events
        self._event = events.record(stream)

    def is_done(self) -> bool:
        """Tell whether all work given before it is done."""
        if self._event is None or self._events.is_capturing:
            return True
        # Not Event.done: it cannot tell a lost device from a busy one.
        return bool(runtime.eventQuery(self._event.ptr) != _NOT_READY)

    def seconds_since(self, earlier: TimedEvent) -> float:
        """Return the device's time between the two."""
        if self._event is None or earlier._event is None or self._events.is_capturing:
            return 0.0
        try:
            return max(0.0, float(runtime.eventElapsedTime(earlier._event.ptr, self._event.ptr)) / 1e3)
        except runtime.CUDARuntimeError:
            return 0.0

    def __del__(self) -> None:
        if self._event is not None:
            self._events.spare.append(self._event)
