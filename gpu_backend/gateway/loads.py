"""Devices and what is on them, and what a session wants of one: the values that placement looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gpu_backend.wire.op_classes import BOUND_BY_MEMORY, OP_CLASSES

__all__ = ["UNKNOWN_MIX", "DeviceLoad", "Mix", "Tenant", "Tenants", "Wanted", "mix_of"]


class Mix(NamedTuple):
    """What a session uses of a device, as parts of its time: bound by its arithmetic, and by its memory."""

    compute: float = 0.25
    memory: float = 0.25


#: For so many mixes it is kept what they have in common with a device's tenants: nearly all newcomers have one.
_MOST_MIXES = 8
#: Of a session that has not computed yet.
UNKNOWN_MIX = Mix()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """For whom a device is wanted, and what they insist on. Labels are a user's own: others' say nothing of them."""

    user: str = ""
    memory_bytes: int = 0
    #: Guaranteed part of the device's time.
    request: float = 0.0
    #: Beside sessions of the user with this label, if there are any.
    affinity: str = ""
    #: Not beside sessions of the user with this label.
    anti_affinity: str = ""
    #: Only beside sessions of the user with this label, and nobody else's.
    exclusion: str = ""
    #: A device of its own.
    is_whole: bool = False
    #: How many of one node, all alike.
    devices: int = 1
    #: How many such places are wanted at once, each on another device of whichever node.
    sessions: int = 1
    mix: Mix = UNKNOWN_MIX


@dataclass(frozen=True, slots=True)
class Tenant:
    """A session that has a place on a device, or gets one."""

    wanted: Wanted

    @property
    def user(self) -> str:
        """Whose it is."""
        return self.wanted.user


class Tenants(tuple[Tenant, ...]):
    """Who has a place on one device. What placement asks of all of them is reckoned once, however often it is asked."""

    @cached_property
    def by_user(self) -> Mapping[str, list[Wanted]]:
        """What each user's sessions there insist on."""
        found: dict[str, list[Wanted]] = {}
        for tenant in self:
            found.setdefault(tenant.user, []).append(tenant.wanted)
        return found

    @cached_property
    def request(self) -> float:
        """The part of the device's time that is guaranteed to them in all."""
        return sum(tenant.wanted.request for tenant in self)

    @cached_property
    def keep_off(self) -> bool:
        """Whether any of them may keep others' sessions off."""
        return any(tenant.wanted.is_whole or tenant.wanted.exclusion for tenant in self)

    @cached_property
    def _same_halves(self) -> dict[Mix, float]:
        return {}

    def same_half(self, mix: Mix) -> float:
        """Return for how much of the time they and one with such a ``mix`` want the same half of the device, summed."""
        known = self._same_halves
        found = known.get(mix)
        if found is None:
            if len(known) >= _MOST_MIXES:
                known.clear()
            others = [tenant.wanted.mix for tenant in self]
            found = known[mix] = sum(mix.compute * other.compute + mix.memory * other.memory for other in others)
        return found


_NOBODY = Tenants()


@dataclass(frozen=True, slots=True)
class DeviceLoad:
    """A device that can be reached now, and what is on it."""

    node: str
    ordinal: int
    kind: str
    name: str
    total_bytes: int
    #: Most sessions that may share it.
    capacity: int
    #: Sessions that have a place on it.
    sessions: int = 0
    #: Sum of the memory that they have asked for, or were given as the pool's default; others count as nothing.
    promised_bytes: int = 0
    #: Executors ready on it: a session there starts at once.
    warm: int = 0
    #: How it is shared: the name of a policy.
    policy: str = ""
    #: What keeps its users apart, in words; empty if nothing does.
    wall: str = ""
    #: Why nothing but what executors report is known of who uses it; empty if that is seen from outside.
    unseen: str = ""
    #: Devices of one island reach each other's memory directly; "" where that is not known.
    island: str = ""
    #: What takes no new sessions, its node or it alone; empty if both do.
    drained: str = ""
    #: Whether it is a part of a GPU (MIG), which CUDA has alone or not at all.
    is_part: bool = False
    #: The group that it serves, and the users of it who may come; None where everybody may.
    group: str = ""
    members: frozenset[str] | None = None
    #: How its sessions share it at a time, in words; empty where they take turns.
    space: str = ""
    #: Why no session can begin there now; empty if it can.
    ailment: str = ""
    #: Who has a place on it.
    tenants: Tenants = _NOBODY
    #: Of a place that was found: further devices of its node that go with it, by their numbers.
    others: tuple[int, ...] = ()
    #: Of a place that was found: those of the sessions that are had with this one or not at all.
    apart: tuple[DeviceLoad, ...] = ()

    def admits(self, user: str) -> bool:
        """Tell whether sessions of a user may come."""
        return self.members is None or user in self.members

    @property
    def goes_with_others(self) -> bool:
        """Whether a session may have it together with other devices."""
        return not self.is_part and self.members is None

    @property
    def ordinals(self) -> tuple[int, ...]:
        """Of a place that was found: all its devices."""
        return (self.ordinal, *self.others)

    @property
    def places(self) -> tuple[DeviceLoad, ...]:
        """Of a place that was found: it, and those that are had with it."""
        return (self, *self.apart)


def mix_of(by_class: Sequence[float], busy: float) -> Mix:
    """Return what a session uses, by the GPU seconds of its classes of ops and the part of time that it computes."""
    seconds = dict(zip(OP_CLASSES, by_class, strict=False))
    memory = sum(seconds.get(name, 0.0) for name in BOUND_BY_MEMORY)
    total = sum(seconds.values())
    part = memory / total if total > 0 else 0.5
    return Mix(busy * (1 - part), busy * part)
