"""``cupy.cuda`` objects with state in the notebook: streams, events, devices."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from functools import cached_property
from operator import index
from threading import get_ident
from typing import Any, Protocol

from gpu_backend.opstream.devices import device_of
from kernelproxy.calls import dispatch, sync_detection
from kernelproxy.calls.on_stream import on_stream
from kernelproxy.calls.remote_object import RemoteObject
from kernelproxy.calls.stand_ins import bind
from kernelproxy.client import Client, current
from kernelproxy.namespace.device_functions import require_device
from kernelproxy.namespace.memory import memGetInfo
from kernelproxy.namespace.names import make
from kernelproxy.stream.streams import Streams


class _SpeaksCudaStream(Protocol):
    """An object of any library that names a stream."""

    def __cuda_stream__(self) -> tuple[int, int]: ...


class _BaseStream(RemoteObject):
    #: What tells the two default streams apart.
    _kind = 0
    _made_with: tuple[bool, int] = (False, 0)

    def _whose(self) -> Client:
        """Return the client whose stream it is; the default ones are the current client's."""
        return self._client or current()

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    @cached_property
    def ptr(self) -> int:
        """The handle that CUDA knows it by; asked once."""
        known = int(dispatch.ask_object(".getattr", self, "ptr"))
        self._whose().part(_ByPtr).streams[known] = self
        return known

    @property
    def device_id(self) -> int:
        """The number of its device; -1 for the default streams, which each device has."""
        return self._whose().number + device_of(self._handle) if self._handle else -1

    @property
    def is_non_blocking(self) -> bool:
        """True if it does not wait for the default stream."""
        return bool(self._made_with[0])

    @property
    def priority(self) -> int:
        """What it was made with."""
        return int(self._made_with[1])

    def is_capturing(self) -> bool:
        """Return True between `begin_capture` and `end_capture`."""
        return bool(self._handle and dispatch.ask_object(".method", self, "is_capturing"))

    def use(self) -> Any:
        """Make this the current stream of the calling thread.

        Raises
        ------
        RuntimeError
            If it is another device's than the current one.
        """
        self._streams_here().set_current(self)
        return self

    def __enter__(self) -> Any:
        streams = self._streams_here()
        self._before.setdefault(get_ident(), []).append((streams, streams.device, streams.set_current(self)))
        return self

    def __exit__(self, *exc: object) -> None:
        streams, device, before = self._before[get_ident()].pop()
        streams.set_current(before, device)

    def _streams_here(self) -> Streams:
        """Return the streams of whose it is, of whom the current device must be its own."""
        streams = self._whose().streams
        if self._handle and self.device_id != streams.device:
            raise RuntimeError(
                f"The device that the stream is created on ({self.device_id}) does not match with the current device "
                f"({streams.device})"
            )
        return streams

    def synchronize(self) -> None:
        """Wait until all work of this stream is done. Raises what failed on the way."""
        if self._handle == 0:
            self._whose().session.synchronize()
        else:
            dispatch.ask_object(".method", self, "synchronize")

    def record(self, event: Event | None = None) -> Event:
        """Put an event behind the work given so far; return it."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let further work of this stream wait for ``event``; the notebook waits for one of another executor."""
        if event._client is not None and event._client is not self._whose():
            event.synchronize()
            return
        with self:
            dispatch.record(".wait_event", (event,))

    def add_callback(self, callback: Callable[..., object], arg: object) -> None:
        """Call ``callback(stream, status, arg)`` in the notebook once the work given so far is done."""
        self.synchronize()
        callback(self, 0, arg)

    def launch_host_func(self, callback: Callable[[object], object], arg: object) -> None:
        """Call ``callback(arg)`` in the notebook once the work given so far is done."""
        self.synchronize()
        callback(arg)

    @property
    def done(self) -> bool:
        """True if all work of this stream is done."""
        if self._handle == 0:
            self._whose().session.synchronize()
            return True
        return bool(dispatch.ask_object(".getattr", self, "done"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BaseStream) and (other._handle, other._kind) == (self._handle, self._kind)

    def __hash__(self) -> int:
        return hash(self._handle)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ptr} (device {self.device_id})>"


class Stream(_BaseStream):
    """A queue of device work. `Stream.null` is the default one and exists always."""

    _qualname = "cupy.cuda.Stream"
    null: Stream
    ptds: Stream

    @classmethod
    def _make(
        cls, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None
    ) -> Any:
        """Make a stream in the executor. Costs no round trip."""
        if null and ptds:
            raise ValueError("null and ptds are mutually exclusive")
        if null or ptds:
            return _default_stream(cls, 0 if null else _PER_THREAD)
        made = object.__new__(cls)
        client = current()
        args, here = (False, non_blocking, False, priority), client.streams.default_handle()
        handle = client.pipeline.record("cupy.cuda.Stream", args, stream=here)
        made.__dict__.update(_before={}, _made_with=(non_blocking, priority or 0))
        return bind(made, client, handle)

    @classmethod
    def from_external(cls, obj: _SpeaksCudaStream) -> Any:
        """Return the stream of an object that speaks ``__cuda_stream__``, if it is one of this session's."""
        return _same_stream(cls, obj.__cuda_stream__()[1])

    def __reduce__(self) -> Any:
        """Stand for the same default stream in a copy; the others are one object each."""
        return super().__reduce__() if self._handle else self._remade(**{("null", "ptds")[self._kind != 0]: True})


def _default_stream(kind: type[_BaseStream], ptr: int) -> Any:
    made = object.__new__(kind)
    made.__dict__.update(_handle=0, _before={}, _dropped=None, ptr=ptr, _kind=ptr)
    return made


def _same_stream(kind: type[_BaseStream], ptr: int) -> Any:
    """Return another object of the stream of this session that has this ``ptr``."""
    known = {**_DEFAULT_STREAMS, **current().part(_ByPtr).streams}.get(int(ptr))
    if known is None:
        raise RuntimeError(
            "A stream of another library in this process cannot be used by the remote GPU. Use cupy.cuda.Stream()."
        )
    made = object.__new__(kind)
    made.__dict__.update(known.__dict__, _before={}, _dropped=[], _known=known)  # the handle goes when that one ends
    return made


#: What CUDA calls the default stream of a thread.
_PER_THREAD = 2
#: The legacy default stream, and the default stream of each thread; here both are the one order of the ops.
Stream.null, Stream.ptds = _default_stream(Stream, 0), _default_stream(Stream, _PER_THREAD)
_DEFAULT_STREAMS: dict[int, _BaseStream] = {0: Stream.null, _PER_THREAD: Stream.ptds}


class _ByPtr:
    """A client's streams by the handle that CUDA knows them by, as far as it was asked for."""

    def __init__(self, client: Client) -> None:
        self.streams: weakref.WeakValueDictionary[int, _BaseStream] = weakref.WeakValueDictionary()


class ExternalStream(_BaseStream):
    """A stream known by its ``ptr``: one of this session's. Those of other libraries are not the remote GPU's."""

    _qualname = "cupy.cuda.ExternalStream"

    @classmethod
    def _make(cls, ptr: int, device_id: int = -1) -> Any:
        """Return the stream of this session that has this ``ptr``."""
        return _same_stream(cls, ptr)

    def __reduce__(self) -> Any:
        """Stand for the same stream in a copy, where that is a default one."""
        return super().__reduce__() if self._handle else self._remade(self.ptr)


def get_current_stream(device_id: int = -1) -> _BaseStream:
    """Return the calling thread's current stream on a device, on the current one by default."""
    return current().streams.current(device_id) or Stream.null


class Event(RemoteObject):
    """A mark in a stream."""

    _qualname = "cupy.cuda.Event"

    @classmethod
    def _make(cls, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> Any:
        """Make an event in the executor. Costs no round trip."""
        client = current()
        here = client.streams.default_handle()
        handle = client.pipeline.record("cupy.cuda.Event", (block, disable_timing, False), stream=here)
        return bind(object.__new__(cls), client, handle)

    def record(self, stream: _BaseStream | None = None) -> None:
        """Put the event behind the work given to ``stream`` so far."""
        with on_stream(self._client or current(), stream):
            dispatch.record(".method", (self, "record"))

    def synchronize(self) -> None:
        """Wait until the event has happened."""
        dispatch.ask_object(".method", self, "synchronize")

    @property
    def ptr(self) -> int:
        """The handle that CUDA knows it by."""
        return int(dispatch.ask_object(".getattr", self, "ptr"))

    @property
    def done(self) -> bool:
        """True if the event has happened."""
        return bool(dispatch.ask_object(".getattr", self, "done"))


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Return the milliseconds between two events."""
    return float(dispatch.value_of("cupy.cuda.get_elapsed_time", (start_event, end_event), {}))


def _handle_of_library(name: str) -> property:
    def refuse(self: Device) -> int:
        raise RuntimeError(
            f"cupy.cuda.Device.{name} is the address of a library's state in the process that computes, which is "
            "out of reach. CuPy's functions on arrays use the library: cupy.linalg, cupy.cublas, cupyx.cusparse."
        )

    refuse.__doc__ = f"In CuPy, {name.removesuffix('_handle')}'s handle; out of reach here."
    return property(refuse)


@functools.total_ordering
class Device:
    """A device, by its number. A notebook has number 0, and as many more as it has asked the pool for."""

    __module__ = "cupy.cuda.device"

    cublas_handle, cusolver_handle = _handle_of_library("cublas_handle"), _handle_of_library("cusolver_handle")
    cusolver_sp_handle = _handle_of_library("cusolver_sp_handle")
    cusparse_handle, cutensor_handle = _handle_of_library("cusparse_handle"), _handle_of_library("cutensor_handle")

    def __init__(self, device: int | Device | None = None) -> None:
        self._id = current().streams.device if device is None else int(device)
        #: What each thread that has entered it returns to, innermost last.
        self._before: dict[int, list[tuple[Streams, int]]] = {}

    @classmethod
    def from_pci_bus_id(cls, pci_bus_id: str) -> Any:
        """Return the device that is plugged in there."""
        return cls(make("cupy.cuda.runtime.deviceGetByPCIBusId")(pci_bus_id))

    @property
    def id(self) -> int:
        """The number."""
        return self._id

    def __int__(self) -> int:
        return self.id

    def __enter__(self) -> Device:
        streams = current().streams
        self._before.setdefault(get_ident(), []).append((streams, streams.device))
        try:
            return self.use()
        except BaseException:  # the block is not entered, so nobody leaves it
            self._before[get_ident()].pop()
            raise

    def __exit__(self, *exc: object) -> None:
        streams, before = self._before[get_ident()].pop()
        streams.set_device(before)

    def use(self) -> Device:
        """Make this the current device of the calling thread.

        Raises
        ------
        CUDARuntimeError
            If there is no such device.
        """
        setDevice(self.id)
        return self

    def synchronize(self) -> None:
        """Wait until all work is done, on whatever device. Raises what failed on the way."""
        require_device(self.id)
        sync_detection.check()
        client = current()
        for one in client.members or (client,):
            one.session.synchronize()

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total bytes of the device."""
        with self:
            return memGetInfo()

    @property
    def compute_capability(self) -> str:
        """Such as "90"."""
        require_device(self.id)
        of_a_gpu = current().having(self.id)[0].session.device["compute_capability"]
        return str(of_a_gpu or dispatch.value_of("cupy.cuda.device.get_compute_capability", (), {}))

    @property
    def pci_bus_id(self) -> str:
        """Where the device is plugged in, on its node."""
        return str(make("cupy.cuda.runtime.deviceGetPCIBusId")(self.id))

    @property
    def attributes(self) -> dict[str, Any]:
        """What CUDA says of the device."""
        with self:
            remote = dispatch.ask_object("cupy.cuda.Device", current().having(self.id)[1])
            return dict(remote.attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __lt__(self, other: Device) -> bool:
        return self.id < other.id

    __hash__ = None  # type: ignore[assignment]  # as in CuPy

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


def get_device_id() -> int:
    """Return the number of the calling thread's current device."""
    return current().streams.device


def getDevice() -> int:  # noqa: N802 (CUDA's name)
    """Return the number of the calling thread's current device."""
    return get_device_id()


def setDevice(device: int) -> None:  # noqa: N802 (CUDA's name)
    """Make ``device`` the current one of the calling thread. Raises as `Device.use` does."""
    streams, device = current().streams, index(device)
    if device != streams.device:
        require_device(device)
        streams.set_device(device)


def is_available() -> bool:
    """Tell whether there is a device."""
    return current().session.is_connected
