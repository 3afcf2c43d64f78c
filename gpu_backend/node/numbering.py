"""The numbers of a node's devices: sessions on record know them by these, so a device keeps its own.

The driver numbers what it sees in a row, and a GPU that is split is not among that: others would move up.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gpu_backend.node import launcher
from gpu_backend.node.inventory import Found
from gpu_backend.transport.private_files import write_private

__all__ = ["held_numbers", "noted_numbers", "numbered", "renumber"]

log = logging.getLogger("node.numbering")

#: In an agent's state directory: the number of each device, by its UUID.
_NOTE = "devices.json"


def numbered(devices: Sequence[Found], before: Mapping[str, int], held: Collection[int]) -> tuple[Found, ...]:
    """Return ``devices``, each with the number that it had ``before``, or one that nobody has.

    Parameters
    ----------
    held
        Numbers of devices that executors run on, be these devices there or not.
    """
    kept = {device.uuid: before[device.uuid] for device in devices if device.uuid in before}
    taken = {*kept.values(), *held}
    for device in devices:
        if device.uuid not in kept:
            own = device.ordinal
            kept[device.uuid] = own if own not in taken else next(n for n in range(len(taken) + 1) if n not in taken)
            taken.add(kept[device.uuid])
    return tuple(sorted((replace(one, ordinal=kept[one.uuid]) for one in devices), key=lambda one: one.ordinal))


def renumber(state: Path, devices: Sequence[Found], runtime_dir: str) -> tuple[Found, ...]:
    """Return ``devices`` with their numbers, which are noted in ``state`` for the next agent."""
    before, held = noted_numbers(state), held_numbers(runtime_dir)
    found = numbered(devices, before, held)
    now = {device.uuid: device.ordinal for device in found}
    gone = {uuid: number for uuid, number in before.items() if uuid not in now and number in held}
    try:
        write_private(state / _NOTE, msgspec.json.encode({**gone, **now}))
    except OSError as error:  # a full disk, say: the same devices would get the same numbers
        log.error("the numbers of devices cannot be noted: %s", error)
    return found


def noted_numbers(state: Path) -> dict[str, int]:
    """Return the number of each device that the last agent had, by UUID; nothing if there was none."""
    try:
        return msgspec.json.decode((state / _NOTE).read_bytes(), type=dict[str, int])
    except (OSError, msgspec.DecodeError):
        return {}


def held_numbers(runtime_dir: str) -> set[int]:
    """Return the numbers of the devices on which executors run."""
    running = [one for one in launcher.directories(runtime_dir) if launcher.process_in(one) is not None]
    configs = [config for one in running if (config := launcher.config_in(one)) is not None]
    return {number for config in configs for number in config.on_node}
