"""``python -m gpu_backend.node.cuda_probe``: print this machine's GPUs as JSON. Makes no CUDA context."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

_UUID_BYTES = 16
_LONGEST_BUS_ID = 32
#: Where NVIDIA's driver tells of each GPU, by the number of its place on the bus.
_GPUS = Path("/proc/driver/nvidia/gpus")


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
    names = islands(count.value, lambda one, other: _reaches(driver, one, other))
    return [{**_device(driver, ordinal), "island": names[ordinal]} for ordinal in range(count.value)]


def islands(count: int, reaches: Callable[[int, int], bool]) -> list[str]:
    """Return for each GPU the name of those that reach each other's memory, it among them; "" if it reaches none."""
    found = [""] * count
    for one in range(count):
        for other in range(one):
            if not found[one] and reaches(one, other) and reaches(other, one):
                found[other] = found[one] = found[other] or str(other)
    return found


def _reaches(driver: Any, one: int, other: int) -> bool:
    """Tell whether a GPU reads another's memory itself; not if the driver does not say, which costs placement only."""
    can = ctypes.c_int()
    return driver.cuDeviceCanAccessPeer(ctypes.byref(can), one, other) == 0 and bool(can.value)


def _device(driver: Any, ordinal: int) -> dict[str, Any]:
    device = ctypes.c_int()
    _check(driver.cuDeviceGet(ctypes.byref(device), ordinal), "cuDeviceGet")
    name = ctypes.create_string_buffer(256)
    _check(driver.cuDeviceGetName(name, len(name), device), "cuDeviceGetName")
    total = ctypes.c_size_t()
    _check(driver.cuDeviceTotalMem_v2(ctypes.byref(total), device), "cuDeviceTotalMem")
    own = (ctypes.c_ubyte * _UUID_BYTES)()
    _check(driver.cuDeviceGetUuid_v2(ctypes.byref(own), device), "cuDeviceGetUuid")
    bus = ctypes.create_string_buffer(_LONGEST_BUS_ID)
    _check(driver.cuDeviceGetPCIBusId(bus, len(bus), device), "cuDeviceGetPCIBusId")
    visible = visible_name(ordinal, bytes(own), os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    return {
        "ordinal": ordinal,
        "kind": "cuda",
        "name": name.value.decode(errors="replace"),
        "uuid": "GPU-" + bytes(own).hex(),
        "total_bytes": total.value,
        "visible": visible,
        "nodes": nodes(bus.value.decode(), visible, _GPUS),
    }


def visible_name(ordinal: int, own: bytes, chosen: str) -> str:
    """Return how CUDA_VISIBLE_DEVICES names a device; ``chosen`` is what it says already, ``own`` the device's UUID.

    A part of a GPU (MIG) is known by a name that only whoever chose it can tell.
    """
    names = [name.strip() for name in chosen.split(",")]
    if ordinal < len(names) and names[ordinal].startswith("MIG-"):
        return names[ordinal]
    return f"GPU-{uuid.UUID(bytes=own)}"


def nodes(bus: str, visible: str, gpus: Path) -> list[str]:
    """Return the device nodes of the GPU at ``bus`` ("0000:3B:00.0") alone; none if the driver does not tell which."""
    try:
        lines = (gpus / bus.lower() / "information").read_text().splitlines()
    except OSError:
        return []
    minor = next((line.partition(":")[2].strip() for line in lines if line.startswith("Device Minor")), "")
    if not minor.isdigit():
        return []
    parts = ["/dev/nvidia-caps"] if visible.startswith("MIG-") else []
    return [f"/dev/nvidia{minor}", *parts]


def _check(status: int, call: str) -> None:
    if status != 0:
        raise _DriverError(f"the CUDA driver refused {call} (status {status})")


if __name__ == "__main__":
    main()
