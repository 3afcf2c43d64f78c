"""``cupy.cuda.runtime`` and its neighbours: questions about the device that a CPU can answer."""

from __future__ import annotations

import contextlib
import ctypes
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from gpu_backend.devices.cpu.cuda_device import (
    CUDA_VERSION,
    Device,
    attribute,
    check_ordinal,
    memory_info,
    properties,
)
from gpu_backend.devices.cpu.cuda_errors import INVALID_VALUE, CUDARuntimeError
from gpu_backend.devices.cpu.cuda_memory import require_own
from gpu_backend.devices.cpu.cuda_stream import Event, Stream, event_of, get_elapsed_time, stream_of
from gpu_backend.devices.cpu.naming import describe_as
from gpu_backend.devices.cpu.several import DEVICES
from gpu_backend.devices.cpu.table import define_value

_RUNTIME = "cupy.cuda.runtime"

#: Streams and events made by handle through the runtime functions, which nothing else holds.
_streams: dict[int, Stream] = {}
_events: dict[int, Event] = {}
_limits: dict[int, int] = {0: 1 << 10, 1: 1 << 20, 2: 8 << 20}


def runtime(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function under names in ``cupy.cuda.runtime``."""

    def register(function: Callable[..., object]) -> Callable[..., Any]:
        define_value(function, *(f"{_RUNTIME}.{name}" for name in names))
        return function

    return register


@runtime("driverGetVersion", "runtimeGetVersion")
def version() -> int:
    return CUDA_VERSION


@runtime("getDevice")
def get_device() -> int:
    return DEVICES.current


@runtime("getDeviceCount")
def get_device_count() -> int:
    return DEVICES.count


@runtime("setDevice")
def set_device(device: int) -> None:
    DEVICES.use(device)


@runtime("getDeviceProperties")
def get_device_properties(device: int) -> dict[str, Any]:
    check_ordinal(device)
    return properties()


@runtime("deviceGetAttribute")
def device_get_attribute(attrib: int, device: int) -> int:
    check_ordinal(device)
    return attribute(attrib)


@runtime("deviceGetPCIBusId")
def device_get_pci_bus_id(device: int) -> str:
    return Device(device).pci_bus_id


@runtime("deviceGetByPCIBusId")
def device_get_by_pci_bus_id(pci_bus_id: str) -> int:
    return Device.from_pci_bus_id(pci_bus_id).id


@runtime("deviceCanAccessPeer")
def device_can_access_peer(device: int, peer: int) -> int:
    check_ordinal(device)
    check_ordinal(peer)
    return 0


@runtime("deviceSynchronize", "profilerStart", "profilerStop")
def nothing() -> None:
    """Do nothing: work is done when its call returns."""


@runtime("check_status")
def check_status(status: int) -> None:
    if status:
        raise CUDARuntimeError(status)


@runtime("deviceGetLimit")
def device_get_limit(limit: int) -> int:
    if limit not in _limits:
        raise CUDARuntimeError(INVALID_VALUE)
    return _limits[limit]


@runtime("deviceSetLimit")
def device_set_limit(limit: int, value: int) -> None:
    if limit not in _limits:
        raise CUDARuntimeError(INVALID_VALUE)
    _limits[limit] = int(value)


@runtime("memGetInfo")
def mem_get_info() -> tuple[int, int]:
    return memory_info()


@runtime("memset", "memsetAsync")
def memset(ptr: int, value: int, size: int, stream: int = 0) -> None:
    require_own(ptr, size)
    ctypes.memset(ptr, value, size)


@runtime("streamCreate", "streamCreateWithFlags", "streamCreateWithPriority")
def stream_create(flags: int = 0, priority: int = 0) -> int:
    stream = Stream(non_blocking=bool(flags), priority=priority)
    _streams[stream.ptr] = stream
    return int(stream.ptr)


@runtime("streamDestroy")
def stream_destroy(stream: int) -> None:
    _streams.pop(stream, None)


@runtime("streamSynchronize")
def stream_synchronize(stream: int) -> None:
    stream_of(stream).synchronize()


@runtime("streamQuery")
def stream_query(stream: int) -> int:
    """Return CUDA's "success": done."""
    stream_of(stream)
    return 0


@runtime("streamWaitEvent")
def stream_wait_event(stream: int, event: int, flags: int = 0) -> None:
    """Return at once: the event has happened."""
    stream_of(stream).wait_event(event_of(event))


@runtime("streamIsCapturing")
def stream_is_capturing(stream: int) -> bool:
    return stream_of(stream).is_capturing()


@runtime("streamBeginCapture")
def stream_begin_capture(stream: int, mode: int | None = None) -> None:
    stream_of(stream).begin_capture(mode)


@runtime("streamEndCapture")
def stream_end_capture(stream: int) -> None:
    stream_of(stream).end_capture()


@runtime("streamGetFlags")
def stream_get_flags(stream: int) -> int:
    return int(stream_of(stream).is_non_blocking)


@runtime("streamGetPriority")
def stream_get_priority(stream: int) -> int:
    return stream_of(stream).priority


@runtime("eventSynchronize")
def event_synchronize(event: int) -> None:
    event_of(event).synchronize()


@runtime("eventQuery")
def event_query(event: int) -> int:
    """Return CUDA's "success": it has happened."""
    event_of(event)
    return 0


@runtime("eventCreate", "eventCreateWithFlags")
def event_create(flags: int = 0) -> int:
    event = Event(disable_timing=bool(flags & 2))
    _events[event.ptr] = event
    return int(event.ptr)


@runtime("eventDestroy")
def event_destroy(event: int) -> None:
    _events.pop(event, None)


@runtime("eventRecord")
def event_record(event: int, stream: int) -> None:
    event_of(event).record(stream_of(stream))


@runtime("eventElapsedTime")
def event_elapsed_time(start: int, end: int) -> float:
    return get_elapsed_time(event_of(start), event_of(end))


# Marks for profilers that do not look here

for _name in ("Mark", "MarkC", "RangePush", "RangePushC", "RangePop", "RangeEnd"):
    define_value(lambda *args: None, f"cupy.cuda.nvtx.{_name}")
define_value(lambda *args: 1, "cupy.cuda.nvtx.RangeStart")
define_value(nothing, "cupy.cuda.profiler.start", "cupy.cuda.profiler.stop")


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Do nothing around a block, and say that the name is old."""
    warnings.warn("cupy.cuda.profile has been deprecated. Use cupyx.profiler.profile instead.",
                  DeprecationWarning, stacklevel=3)  # fmt: skip
    yield


def _no_path() -> None:
    """Return None: no CUDA toolkit is used."""


def _local_version() -> int:
    return CUDA_VERSION


describe_as("contextlib._GeneratorContextManager", contextlib._GeneratorContextManager)
define_value(profile, "cupy.cuda.profile")
for _name in ("get_cuda_path", "get_nvcc_path", "get_rocm_path", "get_hipcc_path"):
    define_value(_no_path, f"cupy.cuda.{_name}")
for _name in ("get_local_runtime_version", "driver.get_build_version"):
    define_value(_local_version, f"cupy.cuda.{_name}")


def _compiler_version() -> tuple[int, int]:
    return CUDA_VERSION // 1000, CUDA_VERSION % 1000 // 10


define_value(_compiler_version, "cupy.cuda.nvrtc.getVersion")


@contextlib.contextmanager
def using_allocator(allocator: object = None) -> Iterator[None]:
    """Use ``allocator`` in a block; on this device all allocate alike."""
    yield


define_value(using_allocator, "cupy.cuda.using_allocator")
