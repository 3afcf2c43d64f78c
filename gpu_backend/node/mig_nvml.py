"""The driver's own word on GPUs split in hardware (MIG), through NVIDIA's management library. See its `nvml.h`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from gpu_backend.node.mig import DriverRefusal, Gpu, Instance, Mode, Profile, Status

__all__ = ["NvmlMig"]

#: NVML numbers kinds of profiles from 0 on, and refuses those that it does not know: R615 knows 18.
_KINDS_OF_PROFILES = 32
_LONGEST_NAME = 96
#: What came last of all that is asked here.
_NEWEST = "nvmlDeviceGetGpuInstanceProfileInfoV"
_ALL_ENGINES_SHARED = 0
#: What is answered for a kind of profile, or an instance, that is not there, or not for this process.
_NOT_THERE = (Status.INVALID_ARGUMENT, Status.NOT_SUPPORTED, Status.NO_PERMISSION, Status.NOT_FOUND)


class _GpuProfile(ctypes.Structure):
    """``nvmlGpuInstanceProfileInfo_v2_t``."""

    _fields_ = (
        ("version", ctypes.c_uint), ("id", ctypes.c_uint), ("p2p", ctypes.c_uint), ("slices", ctypes.c_uint),
        ("instances", ctypes.c_uint), ("multiprocessors", ctypes.c_uint), ("copy", ctypes.c_uint),
        ("decoder", ctypes.c_uint), ("encoder", ctypes.c_uint), ("jpeg", ctypes.c_uint), ("ofa", ctypes.c_uint),
        ("memory_mib", ctypes.c_ulonglong), ("name", ctypes.c_char * _LONGEST_NAME),
    )  # fmt: skip


class _ComputeProfile(ctypes.Structure):
    """``nvmlComputeInstanceProfileInfo_t``."""

    _fields_ = (
        ("id", ctypes.c_uint), ("slices", ctypes.c_uint), ("instances", ctypes.c_uint),
        ("multiprocessors", ctypes.c_uint), ("copy", ctypes.c_uint), ("decoder", ctypes.c_uint),
        ("encoder", ctypes.c_uint), ("jpeg", ctypes.c_uint), ("ofa", ctypes.c_uint),
    )  # fmt: skip


class _Memory(ctypes.Structure):
    """``nvmlMemory_t``."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class NvmlMig:
    """The real `MigDriver`."""

    def __init__(self, library: Any) -> None:
        self._library = library

    @classmethod
    def of(cls, name: str = "libnvidia-ml.so.1") -> NvmlMig | str:
        """Return it; or why there is none."""
        try:
            library = ctypes.CDLL(name)
        except OSError:
            return f"there is no NVML ({name})"
        if not hasattr(library, _NEWEST):
            return f"this NVML ({name}) is too old for MIG"
        status = library.nvmlInit_v2()
        return f"NVML does not start (status {status})" if status else cls(library)

    def gpus(self) -> list[Gpu]:
        """Return the GPUs that this process may see. One that has failed refuses all questions, and is none."""
        found = []
        for index in range(self._number("nvmlDeviceGetCount_v2")):
            with suppress(DriverRefusal):
                found.append(self._gpu(index))
        return found

    def profiles(self, gpu: Gpu) -> list[Profile]:
        """Return what instances of a GPU can be."""
        device, found = self._handle(gpu.uuid), []
        for kind in range(_KINDS_OF_PROFILES):
            info = _GpuProfile(version=ctypes.sizeof(_GpuProfile) | 2 << 24)
            if self._is_there(_NEWEST, device, kind, ctypes.byref(info)):
                name = info.name.decode(errors="replace").removeprefix("MIG ")
                found.append(Profile(info.id, name, info.instances, info.memory_mib << 20, info.multiprocessors))
        return found

    def free(self, gpu: Gpu, profile: Profile) -> int | None:
        """Return how many more instances of a profile fit; None where this process may not know."""
        count = ctypes.c_uint()
        call = "nvmlDeviceGetGpuInstanceRemainingCapacity"
        is_told = self._is_there(call, self._handle(gpu.uuid), profile.number, ctypes.byref(count))
        return count.value if is_told else None

    def instances(self, gpu: Gpu) -> list[Instance]:
        """Return the instances of a GPU that this process may use."""
        if gpu.mode is not Mode.ON:
            return []
        device = self._handle(gpu.uuid)
        parts = [ctypes.c_void_p() for _ in range(self._number("nvmlDeviceGetMaxMigDeviceCount", device))]
        call = "nvmlDeviceGetMigDeviceHandleByIndex"
        there = [part for n, part in enumerate(parts) if self._is_there(call, device, n, ctypes.byref(part))]
        return [self._instance(gpu, part) for part in there]

    def create(self, gpu: Gpu, profile: Profile) -> None:
        """Make a GPU instance, and in it one compute instance that has all of it. Both are made or none."""
        made, inside = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("nvmlDeviceCreateGpuInstance", self._handle(gpu.uuid), profile.number, ctypes.byref(made))
        try:
            # Where two have all the slices, the one with more multiprocessors; `max` takes the first of equals.
            all_of_it = max(self._compute_profiles(made), key=lambda one: (one.slices, one.multiprocessors))
            self._call("nvmlGpuInstanceCreateComputeInstance", made, all_of_it.id, ctypes.byref(inside))
        except BaseException:  # whatever it was: nothing stays half made
            self._call("nvmlGpuInstanceDestroy", made)
            raise

    def destroy(self, instance: Instance) -> None:
        """Remove a compute instance, and its GPU instance if no other is in that."""
        device, holder, inside = self._handle(instance.gpu), ctypes.c_void_p(), ctypes.c_void_p()
        self._call("nvmlDeviceGetGpuInstanceById", device, instance.gpu_instance, ctypes.byref(holder))
        self._call("nvmlGpuInstanceGetComputeInstanceById", holder, instance.compute_instance, ctypes.byref(inside))
        self._call("nvmlComputeInstanceDestroy", inside)
        gpu = next(one for one in self.gpus() if one.uuid == instance.gpu)
        if all(one.gpu_instance != instance.gpu_instance for one in self.instances(gpu)):
            self._call("nvmlGpuInstanceDestroy", holder)

    def _gpu(self, index: int) -> Gpu:
        device, now, then = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
        self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device))
        modes = Mode.NEVER, Mode.NEVER
        if self._is_there("nvmlDeviceGetMigMode", device, ctypes.byref(now), ctypes.byref(then)):
            modes = (Mode.ON if now.value else Mode.OFF), (Mode.ON if then.value else Mode.OFF)
        minor = self._number("nvmlDeviceGetMinorNumber", device)
        return Gpu(index, self._text("UUID", device), self._text("Name", device), minor, *modes)

    def _instance(self, gpu: Gpu, part: ctypes.c_void_p) -> Instance:
        memory = _Memory()
        self._call("nvmlDeviceGetMemoryInfo", part, ctypes.byref(memory))
        return Instance(
            uuid=self._text("UUID", part),
            gpu=gpu.uuid,
            profile=self._text("Name", part).rpartition("MIG ")[2],
            gpu_instance=self._number("nvmlDeviceGetGpuInstanceId", part),
            compute_instance=self._number("nvmlDeviceGetComputeInstanceId", part),
            total_bytes=memory.total,
        )

    def _compute_profiles(self, holder: ctypes.c_void_p) -> Iterator[_ComputeProfile]:
        for kind in range(_KINDS_OF_PROFILES):
            info = _ComputeProfile()
            call = "nvmlGpuInstanceGetComputeInstanceProfileInfo"
            if self._is_there(call, holder, kind, _ALL_ENGINES_SHARED, ctypes.byref(info)):
                yield info

    def _handle(self, uuid: str) -> ctypes.c_void_p:
        device = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(device))
        return device

    def _number(self, call: str, *of: ctypes.c_void_p) -> int:
        number = ctypes.c_uint()
        self._call(call, *of, ctypes.byref(number))
        return number.value

    def _text(self, what: str, device: ctypes.c_void_p) -> str:
        text = ctypes.create_string_buffer(_LONGEST_NAME)
        self._call(f"nvmlDeviceGet{what}", device, text, _LONGEST_NAME)
        return text.value.decode(errors="replace")

    def _is_there(self, call: str, *arguments: Any) -> bool:
        try:
            self._call(call, *arguments)
        except DriverRefusal as refusal:
            if refusal.status in _NOT_THERE:
                return False
            raise
        return True

    def _call(self, call: str, *arguments: Any) -> None:
        if status := getattr(self._library, call)(*arguments):
            raise DriverRefusal(call, status)
