"""GPUs split in hardware (MIG): what can be split into what, and what an instance is. `mig_nvml` asks the driver."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum
from pathlib import Path
from typing import NamedTuple, Protocol

__all__ = ["DriverRefusal", "Gpu", "Instance", "MigDriver", "Mode", "Profile", "Status", "device_nodes", "in_sight"]

#: Where NVIDIA's driver says by which device node each instance is opened.
CAPABILITIES = Path("/proc/driver/nvidia/capabilities")


class Mode(Enum):
    """Whether a GPU is split."""

    NEVER = "cannot be split"
    OFF = "whole"
    ON = "split"


class Status(IntEnum):
    """Answers of NVML that mean something here, by its own numbers."""

    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    IN_USE = 19
    INSUFFICIENT_RESOURCES = 23


class DriverRefusal(Exception):
    """The driver said no. ``status`` is its own number for why, ``call`` what was asked."""

    def __init__(self, call: str, status: int) -> None:
        super().__init__(f"the driver refused {call} (status {status})")
        self.call, self.status = call, status


class Gpu(NamedTuple):
    """A GPU of this machine. Where ``pending`` is another mode than ``mode``, it waits for a reset."""

    #: Its number, as `nvidia-smi` has it.
    number: int
    uuid: str
    name: str
    #: The number of its device node.
    minor: int
    mode: Mode
    pending: Mode


class Profile(NamedTuple):
    """What an instance can be. ``most`` are as many as a GPU can have that has nothing else."""

    number: int
    name: str
    most: int
    memory_bytes: int
    multiprocessors: int


class Instance(NamedTuple):
    """A GPU instance with a compute instance in it: what CUDA takes for a device."""

    uuid: str
    #: The UUID of the GPU that it is a part of.
    gpu: str
    profile: str
    gpu_instance: int
    compute_instance: int
    total_bytes: int


class MigDriver(Protocol):
    """What is asked of a driver, by its operator's commands and by whoever lists a machine's devices.

    Every method raises `DriverRefusal` where the driver says no. None switches the mode of a GPU.
    """

    def gpus(self) -> list[Gpu]:
        """Return the GPUs that this process may see."""
        ...

    def profiles(self, gpu: Gpu) -> list[Profile]:
        """Return what instances of a GPU can be; nothing for one that cannot be split."""
        ...

    def free(self, gpu: Gpu, profile: Profile) -> int | None:
        """Return how many more instances of a profile fit; None where this process may not know."""
        ...

    def instances(self, gpu: Gpu) -> list[Instance]:
        """Return the instances of a GPU that this process may use."""
        ...

    def create(self, gpu: Gpu, profile: Profile) -> None:
        """Make a GPU instance, and in it one compute instance that has all of it. Both are made or none."""
        ...

    def destroy(self, instance: Instance) -> None:
        """Remove a compute instance, and its GPU instance if no other is in that."""
        ...


def in_sight(gpus: Sequence[Gpu], instances: Sequence[Instance], chosen: str | None) -> tuple[str, list[Instance]]:
    """Return as which CUDA is to see the whole GPUs, and the instances that are there beside them.

    CUDA must not be asked for both: until R570 a process that sees an instance sees no other device.

    Parameters
    ----------
    chosen
        What ``CUDA_VISIBLE_DEVICES`` says; None if it is not set.
    """
    if chosen is None:
        return ",".join(gpu.uuid for gpu in gpus if gpu.mode is not Mode.ON), list(instances)
    names = [name.strip() for name in chosen.split(",")]
    whole = [name for name in names if not name.startswith("MIG-")]
    return ",".join(whole), [one for one in instances if one.uuid in names]


def device_nodes(gpu: Gpu, instance: Instance, capabilities: Path = CAPABILITIES) -> list[str]:
    """Return the device nodes that open this instance and no other; none if the driver does not tell which."""
    folder = capabilities / f"gpu{gpu.minor}" / "mig" / f"gi{instance.gpu_instance}"
    minors = [_minor(folder / "access"), _minor(folder / f"ci{instance.compute_instance}" / "access")]
    if "" in minors:
        return []
    return [f"/dev/nvidia{gpu.minor}", *(f"/dev/nvidia-caps/nvidia-cap{minor}" for minor in minors)]


def _minor(access: Path) -> str:
    try:
        lines = access.read_text().splitlines()
    except OSError:
        return ""
    found = next((line.partition(":")[2].strip() for line in lines if line.startswith("DeviceFileMinor")), "")
    return found if found.isdigit() else ""
