"""``python -m gpu_backend.node.cuda_probe``: print this machine's GPUs as JSON. Makes no CUDA context.

A GPU that is split (MIG) is not among them, but each of its instances. The driver's management library tells of those:
a process in which CUDA has an instance may see no other device.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpu_backend.node.mig import CAPABILITIES, DriverRefusal, Gpu, Instance, MigDriver, Mode, device_nodes, in_sight
from gpu_backend.node.mig_nvml import NvmlMig

_UUID_BYTES = 16
_LONGEST_BUS_ID = 32
#: Where NVIDIA's driver tells of each GPU, by the number of its place on the bus.
_GPUS = Path("/proc/driver/nvidia/gpus")


class _DriverError(Exception):
    """The CUDA driver said no."""


def main() -> None:
    """Print ``{"devices": [...], "problem": "..."}``."""
    found: list[dict[str, Any]] = []
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        gpus, instances = split(NvmlMig.of())
        found = _offered(driver, gpus, instances)
        problem = "" if found else _without(gpus)
    except OSError:
        problem = "there is no CUDA driver (libcuda.so.1)"
    except _DriverError as error:
        problem = str(error)
    # Looked up by name only: importing it here would cost a second and import the GPU library into the backend.
    if found and importlib.util.find_spec("cupy") is None:
        found, problem = [], "there is a GPU, but no CuPy; install gpu-workbench[cuda13] or [cuda12]"
    json.dump({"devices": found, "problem": problem}, sys.stdout)


def split(driver: MigDriver | str) -> tuple[list[Gpu], list[Instance]]:
    """Return all GPUs and their instances if any GPU is split; nothing if none is, or the driver does not say."""
    if isinstance(driver, str):
        return [], []
    gpus, instances = [], []
    with suppress(DriverRefusal):
        gpus = driver.gpus()
    if all(gpu.mode is not Mode.ON for gpu in gpus):
        return [], []
    for gpu in gpus:
        with suppress(DriverRefusal):  # it has just failed, say: the others are well
            instances += driver.instances(gpu)
    return gpus, instances


def _offered(driver: Any, gpus: list[Gpu], instances: list[Instance]) -> list[dict[str, Any]]:
    if not gpus:
        return _devices(driver)
    whole, parts = in_sight(gpus, instances, os.environ.get("CUDA_VISIBLE_DEVICES"))
    os.environ["CUDA_VISIBLE_DEVICES"] = whole
    found = _devices(driver) if whole else []
    # By a number, which is all that chose it, CUDA may have taken an instance.
    by_uuid = {"GPU-" + part.uuid.removeprefix("MIG-").replace("-", ""): part for part in instances}
    parts = [by_uuid[one["uuid"]] for one in found if one["uuid"] in by_uuid] + parts
    found = [one for one in found if one["uuid"] not in by_uuid]
    both = found + [as_device(part, gpus, CAPABILITIES) for part in parts]
    return [{**one, "ordinal": ordinal} for ordinal, one in enumerate(both)]


def as_device(part: Instance, gpus: list[Gpu], capabilities: Path) -> dict[str, Any]:
    """Return an instance as a device, without a number yet. It reaches no other's memory."""
    gpu = next(one for one in gpus if one.uuid == part.gpu)
    return {
        "kind": "cuda",
        "name": f"{gpu.name} MIG {part.profile}",
        "uuid": part.uuid,
        "total_bytes": part.total_bytes,
        "visible": part.uuid,
        "nodes": device_nodes(gpu, part, capabilities),
        "island": "",
    }


def _without(gpus: list[Gpu]) -> str:
    if gpus:
        return "what GPUs there are for it are split (MIG), and no instance is; see `workbench pool mig`"
    return "the CUDA driver sees no GPU"


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

    Where the driver does not tell of parts of GPUs (MIG), such a part has a name that only whoever chose it can tell.
    """
    names = [name.strip() for name in chosen.split(",")]
    if ordinal < len(names) and names[ordinal].startswith("MIG-"):
        return names[ordinal]
    return f"GPU-{uuid.UUID(bytes=own)}"


def nodes(bus: str, visible: str, gpus: Path) -> list[str]:
    """Return the device nodes of the GPU at ``bus`` ("0000:3B:00.0") alone; none if the driver does not tell which."""
    if visible.startswith("MIG-"):
        return []
    try:
        lines = (gpus / bus.lower() / "information").read_text().splitlines()
    except OSError:
        return []
    minor = next((line.partition(":")[2].strip() for line in lines if line.startswith("Device Minor")), "")
    return [f"/dev/nvidia{minor}"] if minor.isdigit() else []


def _check(status: int, call: str) -> None:
    if status != 0:
        raise _DriverError(f"the CUDA driver refused {call} (status {status})")


if __name__ == "__main__":
    main()
