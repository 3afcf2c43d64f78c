"""``python -m gpu_backend.node.mps_client``: be a client of the MPS daemon that the environment names, and compute.

It prints why that cannot be, and nothing if it can. In a process of its own, like all that asks CUDA for an agent.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

__all__ = ["is_client", "main"]

#: CU_DEVICE_ATTRIBUTE_MPS_ENABLED: whether contexts on a device are shared by MPS. Since CUDA 12.
_MPS_ENABLED = 133
_BYTES = 1 << 20


class _Refused(Exception):
    """The driver said no."""


def main() -> None:
    """Say why a client cannot compute; nothing if it can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        _compute(driver)
    except OSError:
        sys.stdout.write("there is no CUDA driver (libcuda.so.1)")
    except _Refused as error:
        sys.stdout.write(str(error))


def is_client(driver: Any) -> bool:
    """Tell whether this process computes by an MPS daemon; CUDA begins without where it reaches none (an H100)."""
    found = ctypes.c_int()
    return driver.cuDeviceGetAttribute(ctypes.byref(found), _MPS_ENABLED, 0) == 0 and found.value == 1


def _compute(driver: Any) -> None:
    context, memory = ctypes.c_void_p(), ctypes.c_ulonglong()
    back = (ctypes.c_ubyte * _BYTES)()
    for call, arguments in (
        ("cuInit", (0,)),
        ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), 0)),
        ("cuCtxSetCurrent", (context,)),
        ("cuMemAlloc_v2", (ctypes.byref(memory), ctypes.c_size_t(_BYTES))),
    ):
        _check(driver, call, *arguments)
    if not is_client(driver):
        raise _Refused("CUDA begins without MPS there")
    _check(driver, "cuMemsetD8_v2", memory, ctypes.c_ubyte(7), ctypes.c_size_t(_BYTES))
    _check(driver, "cuMemcpyDtoH_v2", back, memory, ctypes.c_size_t(_BYTES))
    if set(back) != {7}:
        raise _Refused("what a client computes comes out wrong")


def _check(driver: Any, call: str, *arguments: Any) -> None:
    if status := getattr(driver, call)(*arguments):
        raise _Refused(f"the CUDA driver refused {call} (status {status}) to a client of its daemon")


if __name__ == "__main__":
    main()
