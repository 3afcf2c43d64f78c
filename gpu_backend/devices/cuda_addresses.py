"""Functions of CuPy that take addresses or handles as numbers, held to what is this session's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from cupy.cuda import cublas, cusparse, device, memory, runtime

#: What CUDA calls memory that the GPU reads by itself: allocated on it, or managed.
_ON_THE_DEVICE = (2, 3)


def checked_names() -> dict[str, Callable[..., Any]]:
    """Return what stands here for such names of CuPy's."""
    return {
        "cupy.cuda.UnownedMemory": _unowned_memory,
        "cupy.cuda.memory.UnownedMemory": _unowned_memory,
        "cupy.cuda.runtime.memset": _memset,
        "cupy.cuda.runtime.memsetAsync": _memset_async,
        "cupy.cuda.cublas.getMathMode": _of_own(cublas.getMathMode, device.get_cublas_handle),
        "cupy.cuda.cublas.setMathMode": _of_own(cublas.setMathMode, device.get_cublas_handle),
        "cupy.cuda.cublas.getVersion": _of_own(cublas.getVersion, device.get_cublas_handle),
        "cupy.cuda.cusparse.getVersion": _of_own(cusparse.getVersion, device.get_cusparse_handle),
    }


def require_own(address: int, size: int) -> None:
    """Let pass what lies in the memory of the device, of which this process sees its session's alone.

    Raises
    ------
    ValueError
        If the first or the last of the ``size`` bytes at ``address`` does not.
    """
    ends = {address, address + size - 1} if size > 0 else set()
    if size < 0 or any(runtime.pointerGetAttributes(end).type not in _ON_THE_DEVICE for end in ends):
        raise ValueError(
            f"{size} bytes at {address:#x} do not lie in memory of this session: give the address of an array of it, "
            "such as `a.data.ptr`"
        )


def _unowned_memory(ptr: int, size: int, owner: object, device_id: int = -1) -> Any:
    require_own(int(ptr), int(size))
    return memory.UnownedMemory(ptr, size, owner, device_id)


def _memset(ptr: int, value: int, size: int) -> None:
    require_own(ptr, size)
    runtime.memset(ptr, value, size)


def _memset_async(ptr: int, value: int, size: int, stream: int) -> None:
    require_own(ptr, size)
    runtime.memsetAsync(ptr, value, size, stream)


def _of_own(function: Callable[..., Any], own_handle: Callable[[], int]) -> Callable[..., Any]:
    """Return ``function`` for the handle that CuPy itself uses: any other number is an address that it would read."""

    @wraps(function)
    def checked(handle: int, *args: Any) -> Any:
        if handle != own_handle():
            raise ValueError(f"{handle:#x} is not the handle that CuPy uses here; ask for that one")
        return function(handle, *args)

    return checked
