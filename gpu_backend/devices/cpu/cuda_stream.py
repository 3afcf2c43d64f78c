"""Streams and events of a device that works in order and at once."""

from __future__ import annotations

import itertools
import threading
import time
from typing import ClassVar, TypeVar
from weakref import WeakValueDictionary

from gpu_backend.devices.cpu.cuda_errors import INVALID_HANDLE, NOT_SUPPORTED, CUDARuntimeError
from gpu_backend.devices.cpu.naming import public_class
from gpu_backend.devices.cpu.several import DEVICES
from gpu_backend.devices.cpu.table import define_value

#: CUDA's handles of the legacy and the per-thread default stream.
_LEGACY, _PER_THREAD = 1, 2

#: Handles of streams and events that are made here; multiples of 16 so that they look like addresses.
_handles = itertools.count(0x1000, 16)
#: Those that live, by their handles.
_by_handle: WeakValueDictionary[int, BaseStream | Event] = WeakValueDictionary()


_Kind = TypeVar("_Kind", bound="BaseStream | Event")


class _Current(threading.local):
    """The current stream of each thread."""

    def __init__(self) -> None:
        self.stream: BaseStream | None = None


_current = _Current()


class BaseStream:
    """What streams of every origin can do. Work given to a stream is done when its call returns."""

    def __init__(self, ptr: int, device_id: int = 0, non_blocking: bool = False, priority: int = 0) -> None:
        self.ptr = ptr
        self.device_id = device_id
        self._non_blocking = non_blocking
        self._priority = priority
        _by_handle.setdefault(ptr, self)  # of the default streams there may be more than one object
        self._outer: list[BaseStream | None] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BaseStream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ptr} (device {self.device_id})>"

    def __enter__(self) -> BaseStream:
        self._outer.append(_current.stream)
        _current.stream = self
        return self

    def __exit__(self, *args: object) -> None:
        _current.stream = self._outer.pop()

    @property
    def done(self) -> bool:
        """Whether all work on the stream is done: always."""
        return True

    @property
    def is_non_blocking(self) -> bool:
        """Whether the stream was made not to wait for the default stream."""
        return self._non_blocking

    @property
    def priority(self) -> int:
        """The priority the stream was made with."""
        return self._priority

    def use(self) -> BaseStream:
        """Make this the current stream of the thread."""
        _current.stream = self
        return self

    def synchronize(self) -> None:
        """Return at once."""

    def record(self, event: Event | None = None) -> Event:
        """Record ``event``, or a new one, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Return at once: whatever was recorded is done."""

    def is_capturing(self) -> bool:
        """Return False: there are no graphs on this device."""
        return False

    def begin_capture(self, mode: int | None = None) -> None:
        """Refuse: work here is done at once and cannot be captured.

        Raises
        ------
        CUDARuntimeError
            Always, with ``cudaErrorNotSupported``.
        """
        raise CUDARuntimeError(NOT_SUPPORTED)

    def end_capture(self) -> None:
        """Refuse; see `begin_capture`."""
        raise CUDARuntimeError(NOT_SUPPORTED)


@public_class("cupy.cuda.Stream", "cupy.cuda.stream.Stream", module="cupy.cuda.stream")
class Stream(BaseStream):
    """A stream, as ``cupy.cuda.Stream``.

    Parameters
    ----------
    null, ptds
        Whether it is the legacy default stream, or the per-thread one.
    non_blocking, priority
        Kept and answered; they change nothing here.
    """

    null: ClassVar[Stream]
    ptds: ClassVar[Stream]

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None
    ) -> None:
        if null and ptds:
            raise ValueError("null and ptds are mutually exclusive")
        ptr = 0 if null else _PER_THREAD if ptds else next(_handles)
        super().__init__(ptr, -1 if null or ptds else DEVICES.current, non_blocking, priority or 0)


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)
_by_handle[_LEGACY] = Stream.null


@public_class("cupy.cuda.Event", "cupy.cuda.stream.Event", module="cupy.cuda.stream")
class Event:
    """A point in a stream, as ``cupy.cuda.Event``; it keeps the time at which it was recorded."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        if interprocess and not disable_timing:
            raise ValueError("Timing must be disabled for interprocess events")
        self.ptr = next(_handles)
        _by_handle[self.ptr] = self
        self._timed = not disable_timing
        self._seconds: float | None = None

    @property
    def done(self) -> bool:
        """Whether the event has happened: always."""
        return True

    def record(self, stream: object = None) -> None:
        """Note the time."""
        self._seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Return at once."""


def stream_of(handle: int) -> BaseStream:
    """Return the stream that has ``handle``; errors are those of `event_of`."""
    return _found(handle, BaseStream)


def event_of(handle: int) -> Event:
    """Return the event that has ``handle``.

    Raises
    ------
    CUDARuntimeError
        If none has it: ``cudaErrorInvalidResourceHandle``.
    """
    return _found(handle, Event)


def _found(handle: int, kind: type[_Kind]) -> _Kind:
    found = _by_handle.get(handle)
    if not isinstance(found, kind):
        raise CUDARuntimeError(INVALID_HANDLE)
    return found


def get_current_stream(device_id: int = -1) -> BaseStream:
    """Return the current stream of this thread."""
    return Stream.null if _current.stream is None else _current.stream


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Return the milliseconds between two recorded events.

    Raises
    ------
    CUDARuntimeError
        If one was not recorded, or made without timing.
    """
    if not (start_event._timed and end_event._timed) or start_event._seconds is None or end_event._seconds is None:
        raise CUDARuntimeError(INVALID_HANDLE)
    return (end_event._seconds - start_event._seconds) * 1e3


define_value(get_current_stream, "cupy.cuda.get_current_stream", "cupy.cuda.stream.get_current_stream")
define_value(get_elapsed_time, "cupy.cuda.get_elapsed_time", "cupy.cuda.stream.get_elapsed_time")
