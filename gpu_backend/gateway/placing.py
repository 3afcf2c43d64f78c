"""The rules by which a session gets one device and not another, each with its reason in words. Pure.

A rule is a cost: of the devices that have room, the one that costs least by the first rule is taken, of several the one
that costs least by the second, and so on. What a session insists on is no rule but a wall (`obstacle`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from gpu_backend.gateway.loads import DeviceLoad, Wanted

__all__ = [
    "DEFAULT_RULES", "RULES", "Around", "Rule", "all_open", "costs", "insists_on_nothing", "obstacle", "reason"
]  # fmt: skip


class Around:
    """What a session that is to be placed has of its user's others, anywhere: asked once and not for each device."""

    def __init__(self, wanted: Wanted, devices: Sequence[DeviceLoad]) -> None:
        self._wanted = wanted
        self._devices = devices

    @cached_property
    def islands(self) -> frozenset[str]:
        """The islands on which the user has sessions."""
        return frozenset(one.island for one in self._devices if self._wanted.user in one.tenants.by_user)

    @cached_property
    def has_excluded(self) -> bool:
        """Whether there is a device for sessions that exclude others as this one does."""
        return any(_excludes(one, self._wanted) for one in self._devices)

    @cached_property
    def has_label(self) -> bool:
        """Whether there are sessions that this one is to be beside."""
        return any(_has_label(one, self._wanted) for one in self._devices)


def obstacle(device: DeviceLoad, wanted: Wanted, around: Around) -> str:
    """Return why a session may not go to ``device`` though there is room; empty if it may."""
    if device.drained:
        return f"{device.drained} takes no new sessions, by the word of the pool's operator"
    if device.ailment:
        return f"{device.node}/{device.kind}{device.ordinal} cannot be used: {device.ailment}"
    if device.tenants and (why := _kept_off(device, wanted)):
        return why
    if wanted.exclusion and not device.tenants and around.has_excluded:
        return f"sessions of {wanted.exclusion!r} have a device already"
    if wanted.affinity and not _has_label(device, wanted) and around.has_label:
        return f"it is to be beside {wanted.affinity!r}, which is elsewhere"
    return ""


def insists_on_nothing(wanted: Wanted) -> bool:
    """Return whether only a device's own state can keep a session off it."""
    return not (wanted.is_whole or wanted.exclusion or wanted.anti_affinity or wanted.affinity)


def all_open(devices: Sequence[DeviceLoad]) -> bool:
    """Return whether nothing keeps a session off any of ``devices`` that insists on nothing: as nearly always."""
    return not any(one.drained or one.ailment or one.tenants.keep_off for one in devices)


def _kept_off(device: DeviceLoad, wanted: Wanted) -> str:
    """Return why a session may not be beside those who are on ``device``."""
    if not (wanted.is_whole or wanted.exclusion or wanted.anti_affinity or device.tenants.keep_off):
        return ""  # as nearly always; nobody has to be looked at one by one
    for tenant in device.tenants:
        theirs = tenant.wanted
        is_mine = theirs.user == wanted.user
        if wanted.is_whole:
            return "it wants a device of its own, and somebody is there"
        if theirs.is_whole:
            return "somebody has it for themselves"
        if (wanted.exclusion or theirs.exclusion) and not (is_mine and wanted.exclusion == theirs.exclusion):
            return "sessions that exclude others, or are excluded, are there"
        if is_mine and wanted.anti_affinity and wanted.anti_affinity == theirs.anti_affinity:
            return f"it is to be apart from {wanted.anti_affinity!r}, which is there"
    return ""


# --- rules ------------------------------------------------------------------------------------------------------------


def _load(device: DeviceLoad, wanted: Wanted, around: Around) -> float:
    return device.sessions / device.capacity


def _spread(device: DeviceLoad, wanted: Wanted, around: Around) -> float:
    return (device.sessions + len(device.tenants.by_user.get(wanted.user, ()))) / device.capacity


def _best_fit(device: DeviceLoad, wanted: Wanted, around: Around) -> float:
    """What would be left of time and memory, in thousandths as KubeShare counts them."""
    time = 1 - device.tenants.request - wanted.request
    memory = (device.total_bytes - device.promised_bytes - wanted.memory_bytes) / max(1, device.total_bytes)
    return round(1000 * time) + round(1000 * memory) + (2000 if time < 0 else 0)


def _interference(device: DeviceLoad, wanted: Wanted, around: Around) -> float:
    """How much of the time its tenants and the newcomer would want the same half of the device."""
    return device.tenants.same_half(wanted.mix)


def _near(device: DeviceLoad, wanted: Wanted, around: Around) -> float:
    return 0.0 if device.island and device.island in around.islands else 1.0


class Rule(NamedTuple):
    """One way to prefer a device."""

    name: str
    cost: Callable[[DeviceLoad, Wanted, Around], float]
    #: In words, for a device that was chosen by it.
    words: Callable[[DeviceLoad, Wanted], str]


#: Every rule by its name, with what an operator wants to know of it in its words.
RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("load", _load, lambda d, w: f"fewest sessions for its places ({d.sessions} of {d.capacity})"),
        Rule("spread", _spread, lambda d, w: _spread_in_words(d, w)),
        Rule("best_fit", _best_fit, lambda d, w: "least is left of its time and memory"),
        Rule("interference", _interference, lambda d, w: _interference_in_words(d, w)),
        Rule("near", _near, lambda d, w: f"linked to the devices of your other sessions (island {d.island})"),
    )
}  # fmt: skip
DEFAULT_RULES = ("spread",)


def costs(device: DeviceLoad, wanted: Wanted, around: Around, rules: Sequence[str]) -> tuple[float, ...]:
    """Return what sorts the device to take first."""
    return tuple([RULES[name].cost(device, wanted, around) for name in rules])


def reason(device: DeviceLoad, wanted: Wanted, devices: Sequence[DeviceLoad], rules: Sequence[str]) -> str:
    """Return in words why ``device`` was taken of ``devices``, as they were before.

    The walls that left it alone are named, then the first rule by which it is better than another that was possible.
    """
    around = Around(wanted, devices)
    possible = [one for one in devices if one.kind == device.kind and not obstacle(one, wanted, around)]
    said = _insisted(device, wanted)
    for name in rules:
        rule = RULES[name]
        own = rule.cost(device, wanted, around)
        if any(rule.cost(one, wanted, around) > own for one in possible):
            return "; ".join([*said, f"{rule.words(device, wanted)} (rule {name})"])
    if said:
        return "; ".join(said)
    return "no other device is possible" if len(possible) < 2 else "as good as any other"


def _insisted(device: DeviceLoad, wanted: Wanted) -> list[str]:
    said = []
    if wanted.is_whole:
        said.append("nobody else is on it, and nobody comes")
    if wanted.exclusion:
        said.append(f"only sessions of {wanted.exclusion!r} are on it")
    if wanted.affinity and _has_label(device, wanted):
        said.append(f"beside {wanted.affinity!r}")
    if wanted.anti_affinity:
        said.append(f"apart from {wanted.anti_affinity!r}")
    return said


def _spread_in_words(device: DeviceLoad, wanted: Wanted) -> str:
    own = _own(device, wanted)
    load = f"{device.sessions} of {device.capacity}, {own} yours"
    return f"fewest sessions for its places, your own counted twice ({load})"


def _interference_in_words(device: DeviceLoad, wanted: Wanted) -> str:
    same = _interference(device, wanted, Around(wanted, ()))
    return f"its sessions want the same half of it as this one in {100 * same:.0f} % of the time"


def _own(device: DeviceLoad, wanted: Wanted) -> int:
    return len(device.tenants.by_user.get(wanted.user, ()))


def _has_label(device: DeviceLoad, wanted: Wanted) -> bool:
    return any(theirs.affinity == wanted.affinity for theirs in device.tenants.by_user.get(wanted.user, ()))


def _excludes(device: DeviceLoad, wanted: Wanted) -> bool:
    return any(theirs.exclusion == wanted.exclusion for theirs in device.tenants.by_user.get(wanted.user, ()))
