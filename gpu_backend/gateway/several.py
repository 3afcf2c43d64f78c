"""Where a session with several devices goes: all of one node and one kind, together or not at all. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from gpu_backend.gateway.loads import DeviceLoad
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.wire.errors import RefusalCode

__all__ = ["most_together", "place_several", "refuse_several_gpus"]

Cost = Callable[[DeviceLoad], tuple[Any, ...]]


def place_several(
    possible: Sequence[DeviceLoad], able: Sequence[DeviceLoad], count: int, cost: Cost
) -> DeviceLoad | Refusal:
    """Return the first of ``count`` devices, with the numbers of the others; or why they cannot be had.

    Of those that reach each other's memory directly they are taken before others, and then where the dearest of them
    costs least.

    Parameters
    ----------
    possible
        The devices to which the session may go now.
    able
        Those that could serve it if nobody else had a place there.
    cost
        What sorts a device to take first.
    """
    possible, able = _whole(possible), _whole(able)
    sets = [chosen for alike in _alike(possible) for chosen in _sets(alike, count, cost)]
    if sets:
        best = min(sets, key=lambda chosen: (not _are_linked(chosen), cost(chosen[-1])))
        return replace(best[0], others=tuple(one.ordinal for one in best[1:]))
    largest = max(map(len, _alike(able)), default=0)
    if largest < count:
        return Refusal(
            RefusalCode.NO_DEVICE,
            f"{count} devices of one node were asked for; no node of this pool has more than {largest} that can serve.",
            f"Ask for at most {largest}.",
        )
    free = max(map(len, _alike(possible)), default=0)
    return Refusal(
        RefusalCode.POOL_FULL,
        f"{count} devices of one node were asked for; {free} at most can be had together now.",
        f"Wait, or ask for {free} of them.",
    )


def most_together(devices: Iterable[DeviceLoad], gives_several_gpus: bool) -> int:
    """Return how many of ``devices`` one session may have, if nobody else has a place; 0 if there are none."""
    groups = _alike(devices)
    several = [len(_whole(one)) for one in groups if gives_several_gpus or one[0].kind != "cuda"]
    return max(several, default=0) or min(1, len(groups))


def refuse_several_gpus(devices: Iterable[DeviceLoad], kind: str, count: int) -> Refusal | None:
    """Return why nobody gets ``count`` devices of this ``kind`` together where no operator said so; None if they do.

    Several GPUs are not known to give what one gives, and an executor on several is not shut in from its neighbours.
    """
    if count == 1 or kind == "cpu" or not any(one.kind == "cuda" for one in devices):
        return None
    return Refusal(
        RefusalCode.NO_DEVICE,
        f"{count} GPUs were asked for, and this pool gives a session one.",
        "Ask for one GPU, or for CPU devices. What several would mean, the pool's operator finds under several_gpus in "
        "the reference of pool.toml.",
    )


def _whole(devices: Iterable[DeviceLoad]) -> list[DeviceLoad]:
    """Leave out what goes with no other.

    Parts of GPUs (MIG) reach no other's memory, and until R570 CUDA sees one of them and no more. Devices that are
    shared by MPS have a daemon each, and a process is a client of one.
    """
    return [one for one in devices if one.goes_with_others]


def _alike(devices: Iterable[DeviceLoad]) -> list[list[DeviceLoad]]:
    """Return those of one node and kind together."""
    found: defaultdict[tuple[str, str], list[DeviceLoad]] = defaultdict(list)
    for one in devices:
        found[one.node, one.kind].append(one)
    return list(found.values())


def _sets(devices: Sequence[DeviceLoad], count: int, cost: Cost) -> list[list[DeviceLoad]]:
    """Return the best ``count`` of these, and the best of each island, the cheapest device of each first."""
    islands: defaultdict[str, list[DeviceLoad]] = defaultdict(list)
    for one in devices:
        islands[one.island].append(one)
    groups = [devices, *(island for name, island in islands.items() if name)]
    return [sorted(group, key=cost)[:count] for group in groups if len(group) >= count]


def _are_linked(devices: Sequence[DeviceLoad]) -> bool:
    return bool(devices[0].island) and len({one.island for one in devices}) == 1
