"""The walls around an executor, as its agent decides them: for which device, and whose places are kept from it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gpu_backend.executor import sandbox
from gpu_backend.executor.sandbox import Walls
from gpu_backend.node.inventory import Found
from gpu_backend.node.settings import NodeSettings

__all__ = ["gpu_devices", "level", "walls_around"]

#: What every GPU is reached by.
_OF_ALL_GPUS = ("/dev/nvidiactl", "/dev/nvidia-uvm")
#: Where the device nodes of parts of GPUs (MIG) are.
_OF_PARTS = "/dev/nvidia-caps"


def level(settings: NodeSettings, device: Found) -> str:
    """Return in words what keeps the users of a device apart; empty if nothing does."""
    kernel = sandbox.level() if settings.has_walls else ""
    if not kernel or device.kind != "cuda" or device.nodes:
        return kernel
    return f"{kernel}, all GPUs within reach"


def walls_around(settings: NodeSettings, devices: Sequence[Found], is_mps_client: bool = False) -> Walls | None:
    """Return the walls around an executor on ``devices``; None if there are none.

    ``is_mps_client`` says that it reaches them through an MPS daemon.
    """
    if not all(level(settings, device) for device in devices):
        return None
    private = (settings.runtime_dir, settings.log_dir, settings.cache_dir, os.path.dirname(settings.key_file))
    return Walls(
        private=tuple(path for path in (*private, *settings.private) if path),
        homes=tuple(_homes()),
        devices=tuple(dict.fromkeys(node for device in devices for node in gpu_devices(device))),
        has_several_gpus=settings.gives_several_gpus and len(devices) > 1 and devices[0].kind == "cuda",
        is_mps_client=is_mps_client,
        also_read=settings.sandbox_reads,
    )


def gpu_devices(device: Found) -> tuple[str, ...]:
    """Return the device nodes that an executor on ``device`` opens: of no other GPU, if they can be told apart."""
    if device.kind != "cuda":
        return ()
    caps = (_OF_PARTS,) if device.is_part else ()
    return (*_OF_ALL_GPUS, *(device.nodes or (*_any_gpu(), *caps)))


def _homes() -> set[str]:
    homes = {os.path.expanduser("~")}
    with suppress(KeyError):  # a container's user may have no name
        homes.add(pwd.getpwuid(os.geteuid()).pw_dir)
    return homes


def _any_gpu() -> list[str]:
    return sorted(str(path) for path in Path("/dev").glob("nvidia[0-9]*"))
