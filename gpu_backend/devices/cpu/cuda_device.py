"""``cupy.cuda.Device`` and what the runtime says of the devices that a CPU stands for."""

from __future__ import annotations

import os
from typing import Any

from gpu_backend.devices.cpu.cuda_errors import INVALID_DEVICE, INVALID_VALUE, CUDARuntimeError
from gpu_backend.devices.cpu.memory import LEDGER
from gpu_backend.devices.cpu.naming import public_class
from gpu_backend.devices.cpu.processor import processor_name
from gpu_backend.devices.cpu.several import DEVICES
from gpu_backend.devices.cpu.table import define_value
from gpu_backend.metering.machine import machine_bytes

#: Kernels are compiled as for this architecture (``__CUDA_ARCH__`` 900), so programs that ask are told the same.
COMPUTE_CAPABILITY = (9, 0)

#: The version of the CUDA whose behaviour is imitated.
CUDA_VERSION = 13000

_MAX_THREADS_PER_BLOCK = 1024
_SHARED_BYTES_PER_BLOCK = 48 << 10
_PCI_BUS_ID = "0000:{:02x}:00.0"


def check_ordinal(ordinal: int) -> int:
    """Return ``ordinal``, or raise CUDA's error unless a device has it."""
    return DEVICES.check(ordinal)


#: What does not depend on the machine.
_FIXED_PROPERTIES: dict[str, Any] = {
    "sharedMemPerBlock": _SHARED_BYTES_PER_BLOCK,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "maxThreadsPerBlock": _MAX_THREADS_PER_BLOCK,
    "maxThreadsDim": (1024, 1024, 64),
    "maxGridSize": (2147483647, 65535, 65535),
    "clockRate": 0,
    "totalConstMem": 65536,
    "major": COMPUTE_CAPABILITY[0],
    "minor": COMPUTE_CAPABILITY[1],
    "textureAlignment": 512,
    "texturePitchAlignment": 32,
    "kernelExecTimeoutEnabled": 0,
    "integrated": 1,
    "canMapHostMemory": 1,
    "computeMode": 0,
    "concurrentKernels": 0,
    "ECCEnabled": 0,
    "pciBusID": 0,
    "pciDeviceID": 0,
    "pciDomainID": 0,
    "tccDriver": 0,
    "memoryClockRate": 0,
    "memoryBusWidth": 64,
    "l2CacheSize": 1 << 20,
    "maxThreadsPerMultiProcessor": _MAX_THREADS_PER_BLOCK,
    "isMultiGpuBoard": 0,
    "cooperativeLaunch": 1,
    "cooperativeMultiDeviceLaunch": 0,
    "deviceOverlap": 0,
    "maxTexture1D": 0,
    "maxTexture2D": (0, 0),
    "maxTexture3D": (0, 0, 0),
    "asyncEngineCount": 0,
    "unifiedAddressing": 1,
    "streamPrioritiesSupported": 0,
    "globalL1CacheSupported": 1,
    "localL1CacheSupported": 1,
    "sharedMemPerMultiprocessor": _SHARED_BYTES_PER_BLOCK,
    "regsPerMultiprocessor": 65536,
    "managedMemory": 1,
    "multiGpuBoardGroupID": 0,
    "hostNativeAtomicSupported": 1,
    "singleToDoublePrecisionPerfRatio": 2,
    "pageableMemoryAccess": 1,
    "concurrentManagedAccess": 1,
    "computePreemptionSupported": 1,
    "canUseHostPointerForRegisteredMem": 1,
    "sharedMemPerBlockOptin": _SHARED_BYTES_PER_BLOCK,
    "pageableMemoryAccessUsesHostPageTables": 1,
    "directManagedMemAccessFromHost": 1,
    "uuid": b"\0" * 16,
}


def properties() -> dict[str, Any]:
    """Return what ``cudaGetDeviceProperties`` gives, of this machine's processor."""
    return {
        **_FIXED_PROPERTIES,
        "name": processor_name().encode(),
        "totalGlobalMem": machine_bytes()[1],
        "multiProcessorCount": os.cpu_count() or 1,
    }


#: ``cudaDeviceGetAttribute``: number of the attribute to the property that answers it.
ATTRIBUTES = {
    1: ("MaxThreadsPerBlock", "maxThreadsPerBlock"),
    8: ("MaxSharedMemoryPerBlock", "sharedMemPerBlock"),
    9: ("TotalConstantMemory", "totalConstMem"),
    10: ("WarpSize", "warpSize"),
    12: ("MaxRegistersPerBlock", "regsPerBlock"),
    13: ("ClockRate", "clockRate"),
    16: ("MultiProcessorCount", "multiProcessorCount"),
    18: ("Integrated", "integrated"),
    20: ("ComputeMode", "computeMode"),
    31: ("ConcurrentKernels", "concurrentKernels"),
    32: ("EccEnabled", "ECCEnabled"),
    36: ("MemoryClockRate", "memoryClockRate"),
    37: ("GlobalMemoryBusWidth", "memoryBusWidth"),
    38: ("L2CacheSize", "l2CacheSize"),
    39: ("MaxThreadsPerMultiProcessor", "maxThreadsPerMultiProcessor"),
    40: ("AsyncEngineCount", "asyncEngineCount"),
    41: ("UnifiedAddressing", "unifiedAddressing"),
    75: ("ComputeCapabilityMajor", "major"),
    76: ("ComputeCapabilityMinor", "minor"),
    78: ("StreamPrioritiesSupported", "streamPrioritiesSupported"),
    81: ("MaxSharedMemoryPerMultiprocessor", "sharedMemPerMultiprocessor"),
    82: ("MaxRegistersPerMultiprocessor", "regsPerMultiprocessor"),
    83: ("ManagedMemory", "managedMemory"),
    88: ("PageableMemoryAccess", "pageableMemoryAccess"),
    89: ("ConcurrentManagedAccess", "concurrentManagedAccess"),
    95: ("CooperativeLaunch", "cooperativeLaunch"),
    97: ("MaxSharedMemoryPerBlockOptin", "sharedMemPerBlockOptin"),
}


def attribute(number: int) -> int:
    """Return a device attribute by CUDA's number for it; 0 for those that a CPU has not."""
    if not 1 <= number <= 200:
        raise CUDARuntimeError(INVALID_VALUE)
    if number in (2, 3, 4):
        return int(properties()["maxThreadsDim"][number - 2])
    if number in (5, 6, 7):
        return int(properties()["maxGridSize"][number - 5])
    return int(properties()[ATTRIBUTES[number][1]]) if number in ATTRIBUTES else 0


@public_class("cupy.cuda.Device", "cupy.cuda.device.Device", module="cupy.cuda.device")
class Device:
    """A device that arrays live on.

    Parameters
    ----------
    device
        Its number, another ``Device``, or None for the current one.
    """

    def __init__(self, device: Any = None) -> None:
        self.id = DEVICES.current if device is None else int(device)
        self._before: list[int] = []

    def __int__(self) -> int:
        return self.id

    def __enter__(self) -> Device:
        self._before.append(DEVICES.current)
        return self.use()

    def __exit__(self, *args: object) -> None:
        DEVICES.use(self._before.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __lt__(self, other: Device) -> bool:
        return self.id < other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    @classmethod
    def from_pci_bus_id(cls, pci_bus_id: str) -> Device:
        """Return the device with this PCI bus id."""
        found = [number for number in range(DEVICES.count) if _PCI_BUS_ID.format(number) == pci_bus_id]
        if not found:
            raise CUDARuntimeError(INVALID_DEVICE)
        return cls(found[0])

    def use(self) -> Device:
        """Make this device the current one."""
        DEVICES.use(self.id)
        return self

    def synchronize(self) -> None:
        """Return at once: work is done when its call returns."""
        check_ordinal(self.id)

    @property
    def compute_capability(self) -> str:
        """Major and minor number in one string."""
        check_ordinal(self.id)
        return f"{COMPUTE_CAPABILITY[0]}{COMPUTE_CAPABILITY[1]}"

    @property
    def mem_info(self) -> tuple[int, int]:
        """(free, total) memory in bytes."""
        with self:
            return memory_info()

    @property
    def pci_bus_id(self) -> str:
        """The PCI bus id."""
        return _PCI_BUS_ID.format(check_ordinal(self.id))

    @property
    def attributes(self) -> dict[str, int]:
        """Attributes by CUDA's names."""
        check_ordinal(self.id)
        found = properties()
        return {name: int(found[key]) for name, key in ATTRIBUTES.values()}


def memory_info() -> tuple[int, int]:
    """Return (free, total) memory in bytes; what pools have cached counts as taken, as on a GPU."""
    free, total = machine_bytes()
    limit = LEDGER.quota_bytes
    return (min(free, max(0, limit - LEDGER.total_bytes)) if limit else free), total


def get_device_id() -> int:
    """Return the number of the current device."""
    return DEVICES.current


def get_compute_capability() -> str:
    """Return the compute capability of the current device."""
    return Device().compute_capability


define_value(get_device_id, "cupy.cuda.get_device_id", "cupy.cuda.device.get_device_id")
define_value(get_compute_capability, "cupy.cuda.device.get_compute_capability")
