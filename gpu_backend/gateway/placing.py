"""The rules by which a session gets one device and not another, each with its reason in words. Pure.

A rule is a cost: of the devices that have room, the one that costs least by the first rule is taken, of several the one
that costs least by the second, and so on. What a session insists on is no rule but a wall (`obstacle`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gpu_backend.gateway.loads import DeviceLoad, Wanted

__all__ = ["DEFAULT_RULES", "RULES", "Rule", "costs", "obstacle", "reason"]


def obstacle(device: DeviceLoad, wanted: Wanted, devices: Sequence[DeviceLoad]) -> str:
    """Return why a session may not go to ``device`` though there is room; empty if it may."""
    if device.is_draining:
        return f"{device.node} takes no new sessions, by the word of the pool's operator"
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
    if wanted.exclusion and not device.tenants and any(_excludes(one, wanted) for one in devices):
        return f"sessions of {wanted.exclusion!r} have a device already"
    if wanted.affinity and not _has_label(device, wanted) and any(_has_label(one, wanted) for one in devices):
        return f"it is to be beside {wanted.affinity!r}, which is elsewhere"
    return ""


# --- rules ------------------------------------------------------------------------------------------------------------


def _load(device: DeviceLoad, wanted: Wanted, devices: Sequence[DeviceLoad]) -> float:
    return device.sessions / device.capacity


def _spread(device: DeviceLoad, wanted: Wanted, devices: Sequence[DeviceLoad]) -> float:
    own = sum(tenant.user == wanted.user for tenant in device.tenants)
    return (device.sessions + own) / device.capacity


def _best_fit(device: DeviceLoad, wanted: Wanted, devices: Sequence[DeviceLoad]) -> float:
    """What would be left of time and memory, in thousandths as KubeShare counts them."""
    time = 1 - sum(tenant.wanted.request for tenant in device.tenants) - wanted.request
    memory = (device.total_bytes - device.promised_bytes - wanted.memory_bytes) / max(1, device.total_bytes)
    return round(1000 * time) + round(1000 * memory) + (2000 if time < 0 else 0)


def _interference(device: DeviceLoad, wanted: Wanted, devices: Sequence[DeviceLoad]) -> float:
    """How much of the time its tenants and the newcomer would want the same half of the device."""
    mix = wanted.mix
    there = [tenant.wanted.mix for tenant in device.tenants]
    return sum(mix.compute * other.compute + mix.memory * other.memory for other in there)


def _near(device: DeviceLoad, wanted: Wanted, devices: Sequence[DeviceLoad]) -> float:
    return 0.0 if device.island and device.island in _islands_of(wanted, devices) else 1.0


class Rule(NamedTuple):
    """One way to prefer a device."""

    name: str
    cost: Callable[[DeviceLoad, Wanted, Sequence[DeviceLoad]], float]
    #: In words, for a device that was chosen by it.
    words: Callable[[DeviceLoad, Wanted, Sequence[DeviceLoad]], str]


#: Every rule by its name, with what an operator wants to know of it in its words.
RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("load", _load, lambda d, w, all: f"fewest sessions for its places ({d.sessions} of {d.capacity})"),
        Rule("spread", _spread, lambda d, w, all: _spread_in_words(d, w)),
        Rule("best_fit", _best_fit, lambda d, w, all: "least is left of its time and memory"),
        Rule("interference", _interference, lambda d, w, all: _interference_in_words(d, w)),
        Rule("near", _near, lambda d, w, all: f"linked to the devices of your other sessions (island {d.island})"),
    )
}  # fmt: skip
DEFAULT_RULES = ("spread",)


def costs(device: DeviceLoad, wanted: Wanted, devices: Sequence[DeviceLoad], rules: Sequence[str]) -> tuple[float, ...]:
    """Return what sorts the device to take first."""
    return tuple(RULES[name].cost(device, wanted, devices) for name in rules)


def reason(device: DeviceLoad, wanted: Wanted, devices: Sequence[DeviceLoad], rules: Sequence[str]) -> str:
    """Return in words why ``device`` was taken of ``devices``, as they were before.

    The walls that left it alone are named, then the first rule by which it is better than another that was possible.
    """
    possible = [one for one in devices if one.kind == device.kind and not obstacle(one, wanted, devices)]
    said = _insisted(device, wanted)
    for name in rules:
        rule = RULES[name]
        own = rule.cost(device, wanted, devices)
        if any(rule.cost(one, wanted, devices) > own for one in possible):
            return "; ".join([*said, f"{rule.words(device, wanted, devices)} (rule {name})"])
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
    own = sum(tenant.user == wanted.user for tenant in device.tenants)
    load = f"{device.sessions} of {device.capacity}, {own} yours"
    return f"fewest sessions for its places, your own counted twice ({load})"


def _interference_in_words(device: DeviceLoad, wanted: Wanted) -> str:
    same = _interference(device, wanted, ())
    return f"its sessions want the same half of it as this one in {100 * same:.0f} % of the time"


def _has_label(device: DeviceLoad, wanted: Wanted) -> bool:
    return any(t.user == wanted.user and t.wanted.affinity == wanted.affinity for t in device.tenants)


def _excludes(device: DeviceLoad, wanted: Wanted) -> bool:
    return any(t.user == wanted.user and t.wanted.exclusion == wanted.exclusion for t in device.tenants)


def _islands_of(wanted: Wanted, devices: Sequence[DeviceLoad]) -> set[str]:
    return {one.island for one in devices if any(tenant.user == wanted.user for tenant in one.tenants)}
