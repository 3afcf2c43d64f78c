"""Who waits for a place, in which order, and for how long: first come, first served, fair by user. Pure.

A session that a user holds, or another of theirs that waits ahead, puts a waiter back as far as `PATIENCE_SECONDS` of
waiting bring it forward. So of two users who wait the one who holds less comes first, of two who hold the same the one
who has waited longer, and nobody waits for ever however many come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from gpu_backend.gateway.loads import DeviceLoad, Wanted
from gpu_backend.gateway.placement import place, reserved, wanted_by, with_one_more
from gpu_backend.gateway.placing import DEFAULT_RULES
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.wire.wish import Wish

#: How long somebody must wait to come before a newcomer who holds one session less, seconds.
PATIENCE_SECONDS = 600.0
#: Fewer ended sessions than this say nothing about the next.
_FEWEST_LENGTHS = 3

Name = tuple[str, str]
#: Waiters of whom one is refused what the other is: kind, memory, what it insists on, whether it has lost its place.
_Need = tuple[str, int, Wanted, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """Somebody who waits, and for what. Times are seconds since 1970."""

    client_key: str
    #: A random name that its client made up, or the id of a session that has lost its place.
    waiter: str
    user: str
    label: str
    since: float
    kind: str
    memory_bytes: int
    #: Whether it is a session that has lost its place: the place counts as held, and is the one waited for.
    has_lease: bool = False
    #: Beside whom it wants to be, and how it wants to share.
    wish: Wish = field(default_factory=Wish)

    @property
    def wanted(self) -> Wanted:
        """What placement looks at."""
        return wanted_by(self.user, self.wish, self.memory_bytes)

    @property
    def name(self) -> Name:
        """The name that no other waiter has."""
        return self.client_key, self.waiter


def in_order(
    waiters: Iterable[Waiter], held: Mapping[str, int], weight: Callable[[str], float], now: float
) -> list[Waiter]:
    """Return ``waiters``, the next to be served first.

    Parameters
    ----------
    waiters
        Everybody who waits.
    held
        Sessions that each user holds.
    weight
        A user's weight: of two who wait, one of weight 2 may hold twice as much.
    now
        Seconds since 1970.
    """
    ahead: Counter[str] = Counter()
    ranked = []
    for waiter in sorted(waiters, key=lambda one: (one.since, one.name)):
        burden = (held.get(waiter.user, 0) - waiter.has_lease + ahead[waiter.user]) / weight(waiter.user)
        ahead[waiter.user] += waiter.wish.sessions
        ranked.append((burden - (now - waiter.since) / PATIENCE_SECONDS, waiter.since, waiter.name, waiter))
    return [entry[-1] for entry in sorted(ranked)]


def allot(
    ordered: Sequence[Waiter], devices: Sequence[DeviceLoad], rules: Sequence[str] = DEFAULT_RULES
) -> dict[Name, DeviceLoad | Refusal]:
    """Return the place of each waiter that has one now by the ``rules`` of placement, and why the others have none.

    Whoever is first takes first. One for whom there is no room keeps the most promising device to itself, or those who
    need little would pass it for ever: as many as it wants sessions at once. A user keeps what one of them waits for at
    a time, or who waits for much of many kinds would keep all. A session that has lost its place may have
    what is kept, but for another such session.
    """
    loads: Sequence[DeviceLoad] = devices
    #: The same for sessions that have lost their places, with what is kept for one of these alone: others may wait for
    #: what its notebook holds beside it, which goes on once it has a place, and frees nothing before.
    unkept: Sequence[DeviceLoad] = devices
    found: dict[Name, DeviceLoad | Refusal] = {}
    refused: dict[_Need, Refusal] = {}
    kept: set[_Need] = set()
    #: For what nothing can be kept, whoever wants it; apart for those with sessions of their own, which stay beside it.
    unkeepable: set[tuple[_Need, str]] = set()
    holders = {user for device in devices for user in device.tenants.by_user}
    keepers: set[str] = set()
    is_choosy = any(device.members is not None for device in devices)  # what one is refused another may get
    for waiter in ordered:
        wanted, memory_bytes = waiter.wanted, waiter.memory_bytes
        need = waiter.kind, memory_bytes, wanted if is_choosy or _insists(wanted) else Wanted(), waiter.has_lease
        there = unkept if waiter.has_lease else loads
        spot = refused.get(need) or place(there, waiter.kind, memory_bytes, wanted, rules)
        found[waiter.name] = spot
        if isinstance(spot, DeviceLoad):
            loads, unkept = [with_one_more(some, spot, wanted) for some in (loads, unkept)]
            continue
        refused[need] = spot
        whose = need, waiter.user if waiter.user in holders else ""
        if need in kept or waiter.user in keepers or whose in unkeepable:
            continue
        left = reserved(loads, waiter.kind, memory_bytes, wanted)
        if left is loads:
            unkeepable.add(whose)
            continue
        if waiter.has_lease:
            unkept = reserved(unkept, waiter.kind, memory_bytes, wanted)
        loads = left
        kept.add(need)
        keepers.add(waiter.user)
    return found


def _insists(wanted: Wanted) -> bool:
    named = wanted.affinity or wanted.anti_affinity or wanted.exclusion
    return bool(named or wanted.is_whole or wanted.devices > 1 or wanted.sessions > 1)


def expected_wait(position: int, places: int, lengths: Sequence[float]) -> float:
    """Return a guess at how long the waiter at ``position`` (from 1) waits, seconds; -1 without ground for one.

    As if each of ``places`` sessions ended at random, after as long on average as those that ended lately.
    """
    if places < 1 or len(lengths) < _FEWEST_LENGTHS:
        return -1.0
    return position * fmean(lengths) / places
