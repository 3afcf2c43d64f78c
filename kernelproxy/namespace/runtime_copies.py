"""``cupy.cuda.runtime``'s copies between addresses: those of the remote device, and those of this process."""

from __future__ import annotations

import ctypes
from typing import Any

from kernelproxy.calls import dispatch
from kernelproxy.namespace.cuda import ExternalStream, Stream
from kernelproxy.namespace.memory import MemoryPointer
from kernelproxy.namespace.names import make

#: CUDA's numbers for what is copied where; 4 leaves it to the addresses.
_HOST_TO_HOST, _HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE, _BY_ADDRESS = range(5)
#: CUDA's other handle for the default stream.
_LEGACY_STREAM = 1


def memcpy(dst: int, src: int, size: int, kind: int) -> None:
    """Copy ``size`` bytes from the address ``src`` to ``dst``; ``kind`` says which of them is on the device."""
    memcpyAsync(dst, src, size, kind, Stream.null.ptr)


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:  # noqa: N802 (CUDA's name)
    """Copy as `memcpy` in the order of ``stream``; host memory may be used as soon as this returns."""
    if kind == _BY_ADDRESS:
        raise RuntimeError(
            "cupy.cuda.runtime.memcpyDefault asks CUDA whose address it is, which it cannot tell of addresses of the "
            "notebook. Say memcpyHostToDevice, memcpyDeviceToHost or memcpyDeviceToDevice."
        )
    if kind not in range(_BY_ADDRESS):
        refused = make("cupy.cuda.runtime.CUDARuntimeError")
        raise refused("cudaErrorInvalidMemcpyDirection: invalid copy direction for memcpy")
    if size:
        with Stream.null if stream == _LEGACY_STREAM else ExternalStream(stream):
            _copy(dst, src, size, kind)


def _copy(dst: int, src: int, size: int, kind: int) -> None:
    if kind == _HOST_TO_HOST:
        ctypes.memmove(dst, src, size)
    elif kind == _HOST_TO_DEVICE:
        _place(dst, size).copy_from_host(src, size)
    elif kind == _DEVICE_TO_HOST:
        _place(src, size).copy_to_host(dst, size)
    else:
        dispatch.ask_object(".method", _place(dst, size), "copy_from_device_async", _place(src, size), size)


def _place(address: int, size: int) -> Any:
    """Return the pointer to ``size`` bytes of the device at ``address``."""
    return MemoryPointer(dispatch.ask_object("cupy.cuda.UnownedMemory", address, size, None), 0)
