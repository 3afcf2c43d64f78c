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

    Where a program has several streams, what was given to one need not be done when another comes to an event. So it is
    noted which were given work, and an event behind all of it is recorded on a stream that waits for each.
    """

    def __init__(self) -> None:
        self.spare: list[Any] = []
        self.is_capturing = False
        #: Streams that were current and are not any more, by handle, until what they were given is known to be done.
        self.left: dict[int, Any] = {}
        #: How often a stream was left.
        self.turns = 0
        self._waiting: Any = None

    def note_left(self, stream: Any) -> None:
        """Note that ``stream`` was given work, and that another one is current from now on."""
        self.left[stream.ptr] = stream
        self.turns += 1

    def note_done(self, turns: int) -> None:
        """Note that all is done that was given to any stream before so many turns, and to the current one then."""
        if turns == self.turns:
            self.left.clear()

    def record_behind_all(self, current: Any) -> Any:
        """Return an event behind all work given so far to any stream; None if there can be none."""
        others = [stream for pointer, stream in list(self.left.items()) if pointer != current.ptr]
        event = self.record(current)
        try:
            for stream in others:
                if event is None:
                    return None
                self._have_wait(event)
                event = self.record(stream)
            if event is None or not others:
                return event
            self._have_wait(event)
        except runtime.CUDARuntimeError:  # the device is lost
            return None
        return self.record(self._waiting)

    def _have_wait(self, event: Any) -> None:
        if self._waiting is None:
            self._waiting = cupy.cuda.Stream(non_blocking=True)
        runtime.streamWaitEvent(self._waiting.ptr, event.ptr)
        self.spare.append(event)  # what waits for it is what was recorded until now

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
    """A CUDA event behind all work given so far; ``stream`` is the current one.

    On a device that is lost, and in a capture, it is done and took no time.
    """

    __slots__ = ("_event", "_events", "_turns")

    def __init__(self, events: Events, stream: Any) -> None:
        self._events = events
        self._turns = events.turns
        self._event = events.record_behind_all(stream) if events.left else events.record(stream)

    def is_done(self) -> bool:
        """Tell whether all work given before it is done."""
        if self._event is None or self._events.is_capturing:
            return True
        # Not Event.done: it cannot tell a lost device from a busy one.
        is_done = bool(runtime.eventQuery(self._event.ptr) != _NOT_READY)
        if is_done and self._events.left:
            self._events.note_done(self._turns)
        return is_done

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
