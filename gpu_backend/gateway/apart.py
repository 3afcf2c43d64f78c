"""Where sessions go that are wanted at once, each on a device of its own: a place for all of them or for none. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpu_backend.gateway.loads import DeviceLoad
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.wire.errors import RefusalCode

__all__ = ["place_apart", "soonest"]

Devices = Sequence[DeviceLoad]
Place = Callable[[Devices], DeviceLoad | Refusal]
Add = Callable[[Devices, DeviceLoad], Devices]


def place_apart(devices: Devices, emptied: Devices, count: int, place: Place, add: Add) -> DeviceLoad | Refusal:
    """Return the place of the first of ``count`` sessions, with those of the others; or why they cannot be had.

    Each is placed as if those before it were there: as they keep apart, no choice takes a device from another that
    could have none else.

    Parameters
    ----------
    devices
        All devices, with their load.
    emptied
        The same as they would be if nobody were there, and nothing kept anybody off.
    count
        How many are wanted.
    place
        Finds the place of one.
    add
        Returns devices as they are with one more at a place.
    """
    found, refused = _one_by_one(devices, count, place, add)
    if refused is None:
        return replace(found[0], apart=tuple(found[1:]))
    if refused.code is not RefusalCode.POOL_FULL:
        return refused
    most = len(_one_by_one(emptied, count, place, add)[0])
    if most < count:
        return Refusal(
            RefusalCode.NO_DEVICE,
            f"{count} devices were asked for, with a session each; this pool has no more than {most} that can serve.",
            f"Ask for at most {most}.",
        )
    what = f"{count} devices were asked for, with a session each"
    if not found:
        return Refusal(refused.code, f"{what}; none can be had now. {refused.message}", refused.remedy)
    return Refusal(
        RefusalCode.POOL_FULL,
        f"{what}; {len(found)} at most can be had now.",
        f"Wait, or ask for {len(found)} of them.",
    )


def soonest(able: Devices, count: int, place: Place) -> list[DeviceLoad]:
    """Return the ``count`` devices of those that are ``able`` to serve that are likely to be free first; none if fewer.

    What could be had now comes first. Once it is kept nobody takes it, and of those that are full only sessions leave,
    so what is kept becomes more until it is enough.
    """
    if len(able) < count:
        return []

    def promise(device: DeviceLoad) -> tuple[bool, int, int]:
        is_free = isinstance(place([device]), DeviceLoad)
        return is_free, device.total_bytes - device.promised_bytes, device.capacity - device.sessions

    return sorted(able, key=promise, reverse=True)[:count]


def _one_by_one(devices: Devices, count: int, place: Place, add: Add) -> tuple[list[DeviceLoad], Refusal | None]:
    """Return as many places as there are, and why there are no more, if there are not enough."""
    found: list[DeviceLoad] = []
    while len(found) < count:
        spot = place(devices)
        if isinstance(spot, Refusal):
            return found, spot
        found.append(spot)
        devices = add(devices, spot)
    return found, None
