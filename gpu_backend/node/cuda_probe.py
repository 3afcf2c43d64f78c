"""``python -m gpu_backend.node.cuda_probe``: print this machine's GPUs as JSON. Makes no CUDA context."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
from typing import Any

_UUID_BYTES = 16


class _DriverError(Exception):
    """The CUDA driver said no."""


def main() -> None:
    """Print ``{"devices": [...], "problem": "..."}``."""
    found: list[dict[str, Any]] = []
    problem = ""
    try:
        found = _devices(ctypes.CDLL("libcuda.so.1"))
        problem = "" if found else "the CUDA driver sees no GPU"
    except OSError:
        problem = "there is no CUDA driver (libcuda.so.1)"
    except _DriverError as error:
        problem = str(error)
    # Looked up by name only: importing it here would cost a second and import the GPU library into the backend.
    if found and importlib.util.find_spec("cupy") is None:
        found, problem = [], "there is a GPU, but no CuPy; install gpu-workbench[cuda13] or [cuda12]"
    json.dump({"devices": found, "problem": problem}, sys.stdout)


def _devices(driver: Any) -> list[dict[str, Any]]:
    _check(driver.cuInit(0), "cuInit")
    count = ctypes.c_int()
    _check(driver.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    return [_device(driver, ordinal) for ordinal in range(count.value)]


def _device(driver: Any, ordinal: int) -> dict[str, Any]:
    device = ctypes.c_int()
    _check(driver.cuDeviceGet(ctypes.byref(device), ordinal), "cuDeviceGet")
    name = ctypes.create_string_buffer(256)
    _check(driver.cuDeviceGetName(name, len(name), device), "cuDeviceGetName")
    total = ctypes.c_size_t()
    _check(driver.cuDeviceTotalMem_v2(ctypes.byref(total), device), "cuDeviceTotalMem")
    uuid = (ctypes.c_ubyte * _UUID_BYTES)()
    _check(driver.cuDeviceGetUuid_v2(ctypes.byref(uuid), device), "cuDeviceGetUuid")
    return {
        "ordinal": ordinal,
        "kind": "cuda",
        "name": name.value.decode(errors="replace"),
        "uuid": "GPU-" + bytes(uuid).hex(),
        "total_bytes": total.value,
    }


def _check(status: int, call: str) -> None:
    if status != 0:
        raise _DriverError(f"the CUDA driver refused {call} (status {status})")


if __name__ == "__main__":
    main()
