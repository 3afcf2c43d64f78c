"""NVML as it answers for GPUs that can be split, played from what was recorded: see the files in `tests/recorded`.

It has the functions of the C library and writes into what its caller hands over: all of `NvmlMig` is tried on it. What
it answers to a change follows from rules: which memory slices are free, how many compute slices are left, who asks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

INVALID, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 2, 3, 4, 6
IN_USE, INSUFFICIENT_RESOURCES, OTHER_VERSION = 19, 23, 25
_MOST_PARTS = 7
#: Of what kind a handle is, by its highest digit: a device, a part of one, a GPU instance, a compute instance.
_KIND = 0x1000_0000


@dataclass
class GpuInstance:
    """A GPU instance, and its compute instances by their numbers."""

    profile: dict[str, Any]
    number: int
    start: int
    computes: list[int] = field(default_factory=list)
    #: Whether a process computes there.
    is_busy: bool = False


@dataclass
class PlayedGpu:
    """A GPU and what it is split into."""

    recorded: dict[str, Any]
    is_split: bool = True
    #: The mode after the next reset, if that is another.
    is_to_be_split: bool | None = None
    #: Whether it has MIG at all.
    can_be_split: bool = True
    instances: list[GpuInstance] = field(default_factory=list)

    @property
    def parts(self) -> list[tuple[GpuInstance, int]]:
        """The MIG devices, in the driver's order."""
        return [(one, compute) for one in sorted(self.instances, key=lambda i: i.number) for compute in one.computes]

    def profile(self, number: int) -> dict[str, Any] | None:
        """Return the profile with this number of the driver's."""
        return next((one for one in self.recorded["profiles"] if one["id"] == number), None)

    def place(self, profile: dict[str, Any]) -> GpuInstance | None:
        """Return another instance of ``profile`` where it fits, not yet made; None if it fits nowhere."""
        alike = sum(one.profile is profile for one in self.instances)
        slices = sum(one.profile["slices"] for one in self.instances) + profile["slices"]
        if alike >= profile["instances"] or slices > self.recorded["compute_slices"]:
            return None
        taken = {n for one in self.instances for n in range(one.start, one.start + one.profile["size"])}
        for start, number in profile["placements"]:
            if taken.isdisjoint(range(start, start + profile["size"])):
                return GpuInstance(profile, number, start)
        return None

    def uuid_of(self, one: GpuInstance, compute: int) -> str:
        """Return the name of a MIG device: the same whenever the same is made again."""
        gpu = self.recorded["gpu"]["uuid"]
        return f"MIG-{uuid5(NAMESPACE_OID, f'{gpu}/{one.number}/{compute}')}"


def recorded(name: str) -> dict[str, Any]:
    """Return what was recorded of a GPU."""
    answers: dict[str, Any] = json.loads((Path(__file__).parent / "recorded" / f"nvml_{name}.json").read_text())
    return answers


class PlayedNvml:
    """The C library. A handle's digits say what it is: its kind, the GPU, the GPU instance, the compute instance."""

    def __init__(self, gpus: Sequence[PlayedGpu], is_root: bool = True) -> None:
        self.gpus = list(gpus)
        self.is_root = is_root
        #: Functions that fail next, with what they answer.
        self.failing: dict[str, int] = {}

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and (status := self.failing.pop(name, 0)):
            return lambda *arguments: status
        return super().__getattribute__(name)

    # --- devices ------------------------------------------------------------------------------------------------------

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        return _set(count, len(self.gpus))

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, device: Any) -> int:
        return _set(device, _handle(1, index)) if index < len(self.gpus) else INVALID

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, device: Any) -> int:
        for n, gpu in enumerate(self.gpus):
            if gpu.recorded["gpu"]["uuid"] == uuid.decode():
                return _set(device, _handle(1, n))
        return NOT_FOUND

    def nvmlDeviceGetUUID(self, device: Any, text: Any, length: int) -> int:
        gpu, one, compute = self._found(device)
        return _write(text, length, gpu.recorded["gpu"]["uuid"] if one is None else gpu.uuid_of(one, compute))

    def nvmlDeviceGetName(self, device: Any, text: Any, length: int) -> int:
        gpu, one, _ = self._found(device)
        name = gpu.recorded["gpu"]["name"]
        return _write(text, length, name if one is None else f"{name} {one.profile['name']}")

    def nvmlDeviceGetMinorNumber(self, device: Any, number: Any) -> int:
        return _set(number, self._found(device)[0].recorded["gpu"]["minor"])

    def nvmlDeviceGetMemoryInfo(self, device: Any, memory: Any) -> int:
        gpu, one, _ = self._found(device)
        memory._obj.total = (gpu.recorded["gpu"]["mib"] if one is None else one.profile["memory_mib"]) << 20
        return 0

    def nvmlDeviceGetMigMode(self, device: Any, now: Any, then: Any) -> int:
        gpu = self._found(device)[0]
        if not gpu.can_be_split:
            return NOT_SUPPORTED
        _set(then, gpu.is_split if gpu.is_to_be_split is None else gpu.is_to_be_split)
        return _set(now, gpu.is_split)

    # --- parts of devices ---------------------------------------------------------------------------------------------

    def nvmlDeviceGetMaxMigDeviceCount(self, device: Any, count: Any) -> int:
        return _set(count, _MOST_PARTS if self._found(device)[0].is_split else 0)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Any, index: int, part: Any) -> int:
        parts = self._found(device)[0].parts
        if index >= len(parts):
            return NOT_FOUND
        one, compute = parts[index]
        return _set(part, _handle(2, _digits(device)[1], one.number, compute))

    def nvmlDeviceGetGpuInstanceId(self, part: Any, number: Any) -> int:
        return _set(number, _digits(part)[2])

    def nvmlDeviceGetComputeInstanceId(self, part: Any, number: Any) -> int:
        return _set(number, _digits(part)[3])

    # --- GPU instances ------------------------------------------------------------------------------------------------

    def nvmlDeviceGetGpuInstanceProfileInfoV(self, device: Any, kind: int, info: Any) -> int:
        gpu, told = self._found(device)[0], info._obj
        if told.version != 0x0200_0098:  # as nvml.h has it: the struct's size, and the version above it
            return OTHER_VERSION
        if not gpu.can_be_split:
            return NOT_SUPPORTED
        found = next((one for one in gpu.recorded["profiles"] if one["kind"] == kind), None)
        if found is None:
            return NOT_SUPPORTED if kind < 18 else INVALID
        told.id, told.slices, told.instances = found["id"], found["slices"], found["instances"]
        told.multiprocessors, told.memory_mib, told.name = (
            found["multiprocessors"], found["memory_mib"], found["name"].encode(),
        )  # fmt: skip
        return 0

    def nvmlDeviceGetGpuInstanceRemainingCapacity(self, device: Any, number: int, count: Any) -> int:
        gpu = self._found(device)[0]
        if not self.is_root:
            return NO_PERMISSION
        profile = gpu.profile(number)
        if profile is None or not gpu.is_split:
            return NOT_SUPPORTED
        tried = PlayedGpu(gpu.recorded, instances=list(gpu.instances))
        while (one := tried.place(profile)) is not None:
            tried.instances.append(one)
        return _set(count, len(tried.instances) - len(gpu.instances))

    def nvmlDeviceCreateGpuInstance(self, device: Any, number: int, made: Any) -> int:
        gpu = self._found(device)[0]
        if not self.is_root:
            return NO_PERMISSION
        profile = gpu.profile(number)
        if profile is None or not gpu.is_split:
            return NOT_SUPPORTED
        one = gpu.place(profile)
        if one is None:
            return INSUFFICIENT_RESOURCES
        gpu.instances.append(one)
        return _set(made, _handle(3, _digits(device)[1], one.number))

    def nvmlDeviceGetGpuInstanceById(self, device: Any, number: int, found: Any) -> int:
        if not self.is_root:
            return NO_PERMISSION
        there = any(one.number == number for one in self._found(device)[0].instances)
        return _set(found, _handle(3, _digits(device)[1], number)) if there else NOT_FOUND

    def nvmlGpuInstanceDestroy(self, holder: Any) -> int:
        gpu, one, _ = self._found(holder)
        if one is None or one.computes:
            return NOT_FOUND if one is None else IN_USE
        gpu.instances.remove(one)
        return 0

    # --- compute instances --------------------------------------------------------------------------------------------

    def nvmlGpuInstanceGetComputeInstanceProfileInfo(self, holder: Any, kind: int, engines: int, info: Any) -> int:
        gpu, one, _ = self._found(holder)
        assert one is not None
        found = next((each for each in gpu.recorded["compute_profiles"] if each["kind"] == kind), None)
        if found is None or found["slices"] > one.profile["slices"]:
            return NOT_SUPPORTED if kind < 9 and not engines else INVALID
        told = info._obj
        told.id, told.slices, told.instances = found["id"], found["slices"], one.profile["slices"] // found["slices"]
        told.multiprocessors = one.profile["multiprocessors"] * found["slices"] // one.profile["slices"]
        return 0

    def nvmlGpuInstanceCreateComputeInstance(self, holder: Any, number: int, made: Any) -> int:
        gpu, one, _ = self._found(holder)
        assert one is not None
        slices = {each["id"]: each["slices"] for each in gpu.recorded["compute_profiles"]}
        # One that has all of it, and beside it none: other splits of a GPU instance are not played.
        if slices.get(number) != one.profile["slices"] or one.computes:
            return INSUFFICIENT_RESOURCES
        one.computes.append(0)
        return _set(made, _handle(4, _digits(holder)[1], one.number, 0))

    def nvmlGpuInstanceGetComputeInstanceById(self, holder: Any, number: int, found: Any) -> int:
        _, one, _ = self._found(holder)
        if one is None or number not in one.computes:
            return NOT_FOUND
        return _set(found, _handle(4, _digits(holder)[1], one.number, number))

    def nvmlComputeInstanceDestroy(self, inside: Any) -> int:
        _, one, compute = self._found(inside)
        if one is None or one.is_busy:
            return NOT_FOUND if one is None else IN_USE
        one.computes.remove(compute)
        return 0

    def _found(self, handle: Any) -> tuple[PlayedGpu, GpuInstance | None, int]:
        kind, gpu, number, compute = _digits(handle)
        of = self.gpus[gpu]
        return of, next((one for one in of.instances if kind > 1 and one.number == number), None), compute


def _handle(kind: int, gpu: int, number: int = 0, compute: int = 0) -> int:
    return kind * _KIND + (gpu << 16) + (number << 8) + compute


def _digits(handle: Any) -> tuple[int, int, int, int]:
    digits = handle.value
    return digits // _KIND, (digits >> 16) & 0xFF, (digits >> 8) & 0xFF, digits & 0xFF


def _set(reference: Any, value: int) -> int:
    reference._obj.value = value
    return 0


def _write(text: Any, length: int, words: str) -> int:
    assert len(words) < length
    text.value = words.encode()
    return 0
