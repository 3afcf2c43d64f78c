"""Where a session goes: of the devices that have room for it, the best by the rules (`placing`). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpu_backend.gateway.amounts import memory_in_words
from gpu_backend.gateway.apart import place_apart, soonest
from gpu_backend.gateway.loads import UNKNOWN_MIX, DeviceLoad, Mix, Tenant, Tenants, Wanted
from gpu_backend.gateway.placing import DEFAULT_RULES, RULES, Around, all_open, costs, insists_on_nothing, obstacle
from gpu_backend.gateway.refusals import Refusal, how_to_ask
from gpu_backend.gateway.several import place_several
from gpu_backend.lifecycle.states import PLACED, Session
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.wish import Wish


def with_sessions(
    devices: Iterable[DeviceLoad], sessions: Iterable[Session], mixes: Mapping[str, Mix] | None = None
) -> list[DeviceLoad]:
    """Return ``devices`` with the load that ``sessions`` put on them; ``mixes`` tell what they use, by their ids."""
    tenants: dict[tuple[str, int], list[Tenant]] = {}
    for session in sessions:
        if session.state in PLACED:
            promised = session.memory_limit_bytes if session.has_promise else 0
            mix = (mixes or {}).get(session.id, UNKNOWN_MIX)
            tenant = Tenant(wanted_by(session.user, session.wish, promised, mix))
            for ordinal in session.ordinals:
                tenants.setdefault((session.node, ordinal), []).append(tenant)
    return [_loaded(device, tenants.get((device.node, device.ordinal), [])) for device in devices]


def wanted_by(user: str, wish: Wish, memory_bytes: int, mix: Mix = UNKNOWN_MIX) -> Wanted:
    """Return what placement looks at of a session."""
    return Wanted(
        user=user, memory_bytes=memory_bytes, request=wish.request, affinity=wish.affinity,
        anti_affinity=wish.anti_affinity, exclusion=wish.exclusion, is_whole=wish.is_whole, devices=wish.devices,
        sessions=wish.sessions, mix=mix,
    )  # fmt: skip


def refuse_unwalled(devices: Sequence[DeviceLoad], is_operator: bool) -> Refusal | None:
    """Return why a user gets no session on any of ``devices``, for want of walls between users; None if they may.

    An operator's own executor holds nothing from which the operator must be kept.
    """
    bare = _bare(devices)
    if is_operator or not bare or walled(devices):
        return None
    return Refusal(
        RefusalCode.NO_DEVICE,
        f"Nothing would keep you and the pool's other users apart on {', '.join(sorted(bare))}: its system cannot shut "
        "executors in, so whoever has a session there could read the arrays of all others and the pool's keys.",
        "Ask the pool's operator for a Linux that can (5.13 or newer, with Landlock and seccomp); `workbench doctor` "
        "tells them more.",
    )


def placeable(devices: list[DeviceLoad], needs_walls: bool) -> list[DeviceLoad]:
    """Return the devices to which sessions may go: where one node has walls, none goes to another without."""
    return (walled(devices) or devices) if needs_walls else devices


def walled(devices: Iterable[DeviceLoad]) -> list[DeviceLoad]:
    """Return the devices of those nodes on which every user is kept from the others."""
    all_of_them = list(devices)
    bare = _bare(all_of_them)
    return [device for device in all_of_them if device.node not in bare]


def _bare(devices: Iterable[DeviceLoad]) -> set[str]:
    return {device.node for device in devices if not device.wall}


def place(
    devices: Sequence[DeviceLoad],
    kind: str,
    memory_bytes: int,
    wanted: Wanted | None = None,
    rules: Sequence[str] = DEFAULT_RULES,
) -> DeviceLoad | Refusal:
    """Return the device for a session, with all that goes with it; or why there is none.

    Parameters
    ----------
    devices
        All devices that can be reached, with their load.
    kind
        "cuda", "cpu", or "" for any; a GPU is preferred then.
    memory_bytes
        The session's memory limit; 0 for none of its own.
    wanted
        For whom it is, and what they insist on.
    rules
        By which of the devices with room the best is taken, the first rule first.
    """
    wanted = wanted or Wanted(memory_bytes=memory_bytes)
    if wanted.sessions == 1:
        return _place_one(devices, kind, memory_bytes, wanted, rules)
    one = replace(wanted, sessions=1)
    return place_apart(
        [device for device in devices if kind in ("", device.kind)] or devices,
        lambda device: replace(_left_by_others(device, ""), drained="", ailment=""),
        wanted.sessions,
        lambda some: _place_one(some, kind, memory_bytes, one, rules),
        lambda some, spot: with_one_more(some, spot, one),
    )


def _place_one(
    devices: Sequence[DeviceLoad], kind: str, memory_bytes: int, wanted: Wanted, rules: Sequence[str]
) -> DeviceLoad | Refusal:
    fitting = [device for device in devices if kind in ("", device.kind)]
    strangers, fitting = fitting, [device for device in fitting if device.members is None or device.admits(wanted.user)]
    if strangers and not fitting:
        return _of_others(strangers)
    free = [d for d in fitting if d.sessions < d.capacity and d.promised_bytes + memory_bytes <= d.total_bytes]
    if not free:
        return _no_room(devices, fitting, kind, memory_bytes)
    around = Around(wanted, fitting)
    possible = free
    if not (insists_on_nothing(wanted) and all_open(free)):
        obstacles = [obstacle(one, wanted, around) for one in free]
        possible = [one for one, why in zip(free, obstacles, strict=True) if not why]
        if not possible:
            return _kept_away(set(obstacles), has_wishes=not insists_on_nothing(wanted))
    if wanted.devices == 1:
        return _best(possible, wanted, around, rules)

    def cost(device: DeviceLoad) -> tuple[object, ...]:
        return (device.kind != "cuda", *costs(device, wanted, around, rules), -device.warm, device.node, device.ordinal)

    large = [device for device in fitting if device.total_bytes >= memory_bytes]
    return place_several(possible, large, wanted.devices, cost)


def _best(possible: Sequence[DeviceLoad], wanted: Wanted, around: Around, rules: Sequence[str]) -> DeviceLoad:
    """Return the device to take first: a rule is asked only of those that are equal by the rules before it."""
    left = [one for one in possible if one.kind == "cuda"] or possible
    for name in rules:
        if len(left) == 1:
            break
        rule = RULES[name]
        found = [rule.cost(one, wanted, around) for one in left]
        least = min(found)
        left = [one for one, cost in zip(left, found, strict=True) if cost == least]
    return min(left, key=lambda one: (-one.warm, one.node, one.ordinal))


def with_one_more(devices: Sequence[DeviceLoad], spot: DeviceLoad, wanted: Wanted) -> list[DeviceLoad]:
    """Return ``devices`` as they are once a session that is ``wanted`` is at ``spot``, with those that go with it."""
    taken = {(one.node, ordinal) for one in spot.places for ordinal in one.ordinals}
    tenant = Tenant(replace(wanted, sessions=1))
    return [_loaded(d, [tenant], d) if (d.node, d.ordinal) in taken else d for d in devices]


def reserved(
    devices: Sequence[DeviceLoad], kind: str, memory_bytes: int, wanted: Wanted | None = None
) -> Sequence[DeviceLoad]:
    """Return ``devices`` as they are for others while somebody waits for the device that will have room soonest.

    That is taken to be the one with the most free memory among those that could ever serve; nobody else gets it. Who
    waits for several has so many kept: of its node, or of any for as many sessions. What would not serve even if all
    others had left, for what sessions of the waiter's own take there, is kept for nobody: it might be for ever. If
    there is nothing to keep, ``devices`` themselves are returned.
    """
    wanted = wanted or Wanted(memory_bytes=memory_bytes)
    one, count = replace(wanted, devices=1, sessions=1), wanted.devices
    alone = ((d, place([_left_by_others(d, wanted.user)], kind, memory_bytes, one)) for d in devices)
    fitting = [d for d, found in alone if isinstance(found, DeviceLoad) and (d.goes_with_others or count == 1)]
    if wanted.sessions > 1:
        all_kept = soonest(fitting, wanted.sessions, lambda some: place(some, kind, memory_bytes, one))
    else:
        all_kept = _of_one_node(fitting, count)
    if not all_kept:
        return devices
    return [replace(d, sessions=d.capacity) if any(d is one for one in all_kept) else d for d in devices]


def _of_one_node(fitting: Sequence[DeviceLoad], count: int) -> list[DeviceLoad]:
    """Return ``count`` of the ``fitting`` devices to keep for one session, all of one node and kind; none if fewer."""
    together = Counter((d.node, d.kind) for d in fitting)
    able = [d for d in fitting if together[d.node, d.kind] >= count]
    if not able:
        return []
    kept = max(able, key=lambda d: (d.total_bytes - d.promised_bytes, d.capacity - d.sessions))
    alike = [d for d in able if (d.node, d.kind) == (kept.node, kept.kind) and d is not kept]
    return [kept, *sorted(alike, key=lambda d: d.sessions / d.capacity)[: count - 1]]


def refuse_beside_own(devices: Sequence[DeviceLoad], kind: str, memory_bytes: int, wanted: Wanted) -> Refusal | None:
    """Return why ``wanted`` has no place while its user's own sessions are there, even if all others left.

    None if it would have one then, or if that is not for the user's own sessions.
    """
    own = [_left_by_others(device, wanted.user) for device in devices]
    found = place(own, kind, memory_bytes, wanted)
    if not isinstance(found, Refusal) or not any(device.tenants for device in own):
        return None
    if isinstance(place([_left_by_others(device, "") for device in devices], kind, memory_bytes, wanted), Refusal):
        return None
    return Refusal(
        found.code,
        f"Beside your own sessions there is no place for it, even if all others left. Of you alone: {found.message}",
        "Shut down a session of yours, or ask for less.",
    )


def _left_by_others(device: DeviceLoad, user: str) -> DeviceLoad:
    """Return ``device`` as it is when all but the sessions of ``user`` have left."""
    return _loaded(device, [Tenant(wanted) for wanted in device.tenants.by_user.get(user, ())])


def _no_room(devices: Sequence[DeviceLoad], fitting: Sequence[DeviceLoad], kind: str, memory_bytes: int) -> Refusal:
    """Return why none of ``fitting``, the ``devices`` of that kind, has room."""
    if not fitting:
        return _no_device(devices, kind)
    large = [device for device in fitting if device.total_bytes >= memory_bytes]
    if large:
        return _full(large)
    most = max(device.total_bytes for device in fitting)
    return Refusal(
        RefusalCode.QUOTA,
        f"{memory_in_words(memory_bytes)} were asked for; the largest device here has {memory_in_words(most)}.",
        f"Ask for less: {how_to_ask(most)}.",
    )


def _no_device(devices: Sequence[DeviceLoad], kind: str) -> Refusal:
    if not devices:
        return Refusal(
            RefusalCode.NO_DEVICE,
            "No node of the pool can be reached at the moment.",
            "Try again in some seconds; if it stays so, ask the pool's operator to run `workbench pool status`.",
        )
    kinds = ", ".join(sorted({device.kind for device in devices}))
    return Refusal(
        RefusalCode.NO_DEVICE,
        f"The pool has no device of kind {kind!r}; it has: {kinds}.",
        "Ask for one of these, or leave the kind open.",
    )


def _of_others(devices: Sequence[DeviceLoad]) -> Refusal:
    groups = ", ".join(sorted({repr(device.group) for device in devices}))
    return Refusal(
        RefusalCode.NO_DEVICE,
        f"All devices that would do are shared by MPS and serve a group each, {groups}, whose sessions end with each "
        "other; yours are in none of them.",
        "Ask the pool's operator for another device, or to be in such a group. Who is, and has used up their GPU time, "
        "gets a session there when they have some again.",
    )


def _full(devices: Sequence[DeviceLoad]) -> Refusal:
    used, capacity = sum(d.sessions for d in devices), sum(d.capacity for d in devices)
    promised, total = sum(d.promised_bytes for d in devices), sum(d.total_bytes for d in devices)
    memory = f"; {memory_in_words(promised)} of {memory_in_words(total)} of memory are promised" if promised else ""
    return Refusal(
        RefusalCode.POOL_FULL,
        f"The pool is full: {used} of {capacity} places are taken{memory}.",
        "Try again when somebody has shut down a kernel, or ask for less memory.",
    )


def _kept_away(obstacles: set[str], has_wishes: bool) -> Refusal:
    remedy = "ask for one without that wish" if has_wishes else "ask the pool's operator"
    return Refusal(
        RefusalCode.POOL_FULL,
        f"There is room, and the session may not go there: {'; '.join(sorted(obstacles))}.",
        f"Wait until a device is free for it, or {remedy}.",
    )


def _loaded(device: DeviceLoad, more: Sequence[Tenant], before: DeviceLoad | None = None) -> DeviceLoad:
    """Return ``device`` with ``more`` tenants, beside those of ``before``."""
    known = before or replace(device, sessions=0, promised_bytes=0, tenants=Tenants())
    promised = sum(tenant.wanted.memory_bytes for tenant in more)
    return replace(
        device, sessions=known.sessions + len(more), promised_bytes=known.promised_bytes + promised,
        tenants=Tenants((*known.tenants, *more)),
    )  # fmt: skip
