"""Where sessions go that are wanted at once, each on a device of its own: a place for all of them or for none. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from gpu_backend.gateway.loads import DeviceLoad
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.wire.errors import RefusalCode

__all__ = ["place_apart", "soonest"]

Devices = Sequence[DeviceLoad]
Place = Callable[[Devices], DeviceLoad | Refusal]
Emptied = Callable[[DeviceLoad], DeviceLoad]
Add = Callable[[Devices, DeviceLoad], Devices]


def place_apart(devices: Devices, emptied: Emptied, count: int, place: Place, add: Add) -> DeviceLoad | Refusal:
    """Return the place of the first of ``count`` sessions, with those of the others; or why they cannot be had.

    All are of one kind: what is computed on one device is to be what the other computes. Each is placed as if those
    before it were there: as they keep apart, no choice takes a device from another that could have none else.

    Parameters
    ----------
    devices
        All devices that would do, with their load.
    emptied
        Returns a device as it would be if nobody were there, and nothing kept anybody off.
    count
        How many are wanted.
    place
        Finds the place of one.
    add
        Returns devices as they are with one more at a place.
    """
    most = 0
    for alike in _of_one_kind(devices):
        # They are alike and keep apart, so each device that would take one takes one, and no second.
        free = [one for one in alike if one.sessions < one.capacity]
        able = [one for one in free if isinstance(place([one]), DeviceLoad)]
        most = max(most, len(able))
        if len(able) >= count and (found := _one_by_one(able, count, place, add)):
            return replace(found[0], apart=tuple(found[1:]))
    what = f"{count} devices were asked for, with a session each"
    refused = None if most else place(devices)
    if isinstance(refused, Refusal) and refused.code is not RefusalCode.POOL_FULL:
        return refused
    ever = _most_ever(devices, emptied, count, place)
    if ever < count:
        return Refusal(
            RefusalCode.NO_DEVICE,
            f"{what}; this pool has no more than {ever} that can serve.",
            f"Ask for at most {ever}.",
        )
    if isinstance(refused, Refusal):
        return Refusal(refused.code, f"{what}; none can be had now. {refused.message}", refused.remedy)
    return Refusal(
        RefusalCode.POOL_FULL, f"{what}; {most} at most can be had now.", f"Wait, or ask for {most} of them."
    )


def soonest(able: Devices, count: int, place: Place) -> list[DeviceLoad]:
    """Return the ``count`` devices of those that are ``able`` to serve that are likely to be free first; none if fewer.

    They are of one kind. What could be had now comes first. Once it is kept nobody takes it, and of those that are full
    only sessions leave, so what is kept becomes more until it is enough.
    """

    def promise(device: DeviceLoad) -> tuple[bool, int, int]:
        is_free = isinstance(place([device]), DeviceLoad)
        return is_free, device.total_bytes - device.promised_bytes, device.capacity - device.sessions

    for alike in _of_one_kind(able):
        if len(alike) >= count:
            return sorted(alike, key=promise, reverse=True)[:count]
    return []


def _of_one_kind(devices: Devices) -> list[Devices]:
    """Return those of each kind together, GPUs first."""
    found: defaultdict[str, list[DeviceLoad]] = defaultdict(list)
    for one in devices:
        found[one.kind].append(one)
    return [found[kind] for kind in sorted(found, key=lambda kind: (kind != "cuda", kind))]


def _most_ever(devices: Devices, emptied: Emptied, count: int, place: Place) -> int:
    """Return of how many devices of one kind a session each could be had if nobody else were there."""
    most = 0
    for alike in _of_one_kind(devices):
        if len(alike) > most:
            able = (one for one in alike if isinstance(place([emptied(one)]), DeviceLoad))
            most = max(most, sum(1 for _ in islice(able, count)))  # more than are wanted need not be counted
        if most >= count:
            break
    return most


def _one_by_one(able: Devices, count: int, place: Place, add: Add) -> list[DeviceLoad]:
    """Return ``count`` places; none if there are fewer."""
    found: list[DeviceLoad] = []
    while len(found) < count:
        spot = place(able)
        if isinstance(spot, Refusal):
            return []
        found.append(spot)
        able = add(able, spot)
    return found
