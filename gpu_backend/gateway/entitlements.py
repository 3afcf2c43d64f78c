"""What users and groups are entitled to: shares, rights and quotas, and what follows for one session. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast

from gpu_backend.gate.terms import SessionClass
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.lifecycle.states import Session
from gpu_backend.opstream.devices import MOST_DEVICES
from gpu_backend.wire.bounds import MOST_BYTES, MOST_COUNT, MOST_GPU_SECONDS, PRIORITY
from gpu_backend.wire.control import Terms
from gpu_backend.wire.errors import RefusalCode, quoted
from gpu_backend.wire.wish import Wish

#: "user" or "group".
Holder = Literal["user", "group"]
Value = float | str
#: Classes from the least demanding to the most.
CLASSES = (SessionClass.BEST_EFFORT, SessionClass.INTERACTIVE, SessionClass.PRODUCTION)
#: The group, beside the real ones, of all sessions whose GPU time is used up, and its weight: they run on what others
#: leave. Within their own groups they would still take a group's share where nobody else in it wants any.
OVER_QUOTA_GROUP = "over quota"
OVER_QUOTA_WEIGHT = 0.001
#: Longest label of placement, characters.
_LONGEST_WORD = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a user, or a group in all, may hold and use; 0 means no limit."""

    sessions: int = 0
    memory_bytes: int = 0
    gpu_seconds_per_day: float = 0.0
    gpu_seconds_per_week: float = 0.0
    gpu_seconds_per_month: float = 0.0

    @property
    def gpu_seconds(self) -> dict[str, float]:
        """The limits on GPU time, by period."""
        return {
            "day": self.gpu_seconds_per_day,
            "week": self.gpu_seconds_per_week,
            "month": self.gpu_seconds_per_month,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The most that a user may ask for a session, and what sessions get that ask for nothing."""

    largest_class: str = SessionClass.INTERACTIVE
    largest_request: float = 0.0
    largest_limit: float = 1.0
    highest_priority: int = 0
    #: What the operator gives without being asked may also be asked for; "" is interactive, as far as that is allowed.
    default_class: str = ""
    default_request: float = 0.0
    default_priority: int = 0
    #: Most devices that a user's sessions may have to themselves.
    whole_devices: int = 0

    @property
    def most(self) -> Wish:
        """The most of everything that may be asked for."""
        classes = [SessionClass(name) for name in (self.largest_class, self.default_class) if name]
        return Wish(
            str(max(classes, key=CLASSES.index)),
            max(self.largest_request, self.default_request),
            self.largest_limit,
            max(self.highest_priority, self.default_priority),
        )


#: What `workbench pool shares set` and `workbench pool quotas set` can set, with what it is converted to.
SETTABLE: Mapping[str, type] = {
    "weight": float, **{one.name: type(one.default) for one in (*fields(Rights), *fields(Quota))}
}  # fmt: skip
#: The most of each. A weight's least is so much below 1 as its most is above.
_MOST: Mapping[str, float] = {
    "weight": 1_000_000.0, "largest_request": 1.0, "largest_limit": 1.0, "default_request": 1.0,
    "highest_priority": PRIORITY.most, "default_priority": PRIORITY.most, "whole_devices": MOST_COUNT,
    "sessions": MOST_COUNT, "memory_bytes": MOST_BYTES,
    **{f"gpu_seconds_per_{period}": MOST_GPU_SECONDS for period in Quota().gpu_seconds},
}  # fmt: skip
_LEAST_WEIGHT = 1 / _MOST["weight"]


def checked(name: str, text: str) -> Value:
    """Return the value of the settable ``name`` that ``text`` stands for.

    Raises
    ------
    ValueError
        If it is none; the message says what would be.
    """
    if name in ("largest_class", "default_class"):
        if text not in CLASSES:
            raise ValueError(f"{quoted(text)} is no class; there are {', '.join(CLASSES)}.")
        return text
    try:
        value: float = SETTABLE[name](text)
    except ValueError:
        raise ValueError(f"{name} is a number, and {quoted(text)} is none.") from None
    must_be_some = name in ("weight", "largest_limit")
    if not value >= 0 or (must_be_some and value == 0):  # true for NaN as well
        raise ValueError(f"{name} is {text}; it must be {'above 0' if must_be_some else 'at least 0'}.")
    if name in ("largest_request", "largest_limit", "default_request") and value > 1:
        raise ValueError(f"{name} is {text}; it is a part of a device, between 0 and 1.")
    if value != within_bounds(name, value):
        least = f"{_LEAST_WEIGHT:.6f}" if name == "weight" else "0"
        raise ValueError(f"{name} is {text:.60}; it must be between {least} and {_MOST[name]:.0f}.")
    return value


def within_bounds(name: str, value: Value) -> Value:
    """Return what is on record for the settable ``name``, or the nearest to it that can be: the record may be older."""
    if isinstance(value, str):
        return value
    return max(min(value, _MOST[name]), _LEAST_WEIGHT if name == "weight" else 0)


@dataclass(frozen=True, slots=True)
class Entitlements:
    """All that the operator has set, and what holds where nothing is set."""

    user_quota: Quota = Quota()
    group_quota: Quota = Quota()
    default_rights: Rights = Rights()
    #: The group of each user who has one.
    groups: Mapping[str, str] = field(default_factory=dict)
    #: What was set, by holder and name.
    given: Mapping[tuple[Holder, str], Mapping[str, Value]] = field(default_factory=dict)

    def group_of(self, user: str) -> str:
        """Return the group of ``user``; "" for none."""
        return self.groups.get(user, "")

    def members(self, group: str) -> frozenset[str]:
        """Return the users in ``group``."""
        return frozenset(user for user, theirs in self.groups.items() if theirs == group)

    def weight(self, holder: Holder, name: str) -> float:
        """Return the weight of a user or a group; 1 where none is set."""
        return float(self._given(holder, name).get("weight", 1.0))

    def quota(self, holder: Holder, name: str) -> Quota:
        """Return what a user, or a group in all, may hold and use."""
        default = self.user_quota if holder == "user" else self.group_quota
        return cast(Quota, _with(default, self._given(holder, name)))

    def rights(self, user: str) -> Rights:
        """Return the most that ``user`` may ask for: what is set for them, else for their group, else for all."""
        return cast(Rights, _with(self.rights_of_group(self.group_of(user)), self._given("user", user)))

    def rights_of_group(self, group: str) -> Rights:
        """Return the most that members of ``group`` may ask for unless something else is set for one of them."""
        return cast(Rights, _with(self.default_rights, self._given("group", group)))

    def terms(self, user: str, wish: Wish, is_over_quota: bool = False) -> Terms:
        """Return a session's part in the sharing of its device."""
        wish = within(wish, self.rights(user))
        group, weight = self.group_of(user), self.weight("user", user)
        if is_over_quota:
            return Terms(OVER_QUOTA_GROUP, weight, OVER_QUOTA_WEIGHT, SessionClass.BEST_EFFORT, 0.0, wish.limit)
        group_weight = self.weight("group", group) if group else 1.0
        return Terms(group, weight, group_weight, wish.kind, wish.request, wish.limit, wish.priority)

    def _given(self, holder: Holder, name: str) -> Mapping[str, Value]:
        return self.given.get((holder, name), {})


def refuse_wish(wish: Wish, rights: Rights) -> Refusal | None:
    """Return why a session may not have what it wishes; None if it may."""
    if wish.kind and wish.kind not in CLASSES:
        return _wrong(f"There is no class {quoted(wish.kind)}; there are {', '.join(CLASSES)}.")
    if not (0 <= wish.request <= wish.limit <= 1 and wish.limit > 0):  # false for NaN as well
        return _wrong(
            f"A request of {wish.request:g} and a limit of {wish.limit:g} were asked for; it must be "
            "0 <= request <= limit <= 1, and the limit above 0."
        )
    if not PRIORITY.least <= wish.priority <= PRIORITY.most:
        return _wrong(f"A priority of {wish.priority} was asked for; there are {PRIORITY}.")
    if not 1 <= wish.devices <= MOST_DEVICES:
        return _wrong(f"{wish.devices} devices were asked for; a session has 1 to {MOST_DEVICES} of one node.")
    if wish.sessions != 1 and (why := _not_at_once(wish)):
        return _wrong(why)
    if max(map(len, (wish.affinity, wish.anti_affinity, wish.exclusion))) > _LONGEST_WORD:
        return _wrong(f"A label of placement has at most {_LONGEST_WORD} characters.")
    most = rights.most
    if wish.kind and within(wish, rights).kind != wish.kind:
        return _beyond(f"the class {wish.kind}", f"{most.kind} is the largest")
    if wish.request > most.request:
        return _beyond(f"a guaranteed part of {wish.request:g} of a device", f"{most.request:g} is the most")
    if wish.limit < 1 and wish.limit > rights.largest_limit:
        return _beyond(f"up to {wish.limit:g} of a device", f"{rights.largest_limit:g} is the most")
    if wish.priority > most.priority:
        return _beyond(f"the priority {wish.priority}", f"{most.priority} is the highest")
    return None


def refuse_own_device(wish: Wish, rights: Rights, held: Iterable[Session]) -> Refusal | None:
    """Return why a user who has these sessions may not have another device to themselves; None if they may."""
    if not (wish.is_whole or wish.exclusion):
        return None
    own = [one for one in held if one.wish.is_whole or one.wish.exclusion]
    if not wish.is_whole and any(one.wish.exclusion == wish.exclusion for one in own):
        return None  # it goes where those are
    devices = len({(one.node, ordinal) for one in own for ordinal in one.ordinals})
    if devices + wish.devices * wish.sessions <= rights.whole_devices:
        return None
    already = f", and you have {devices} already" if devices else ""
    return _beyond("a device that nobody else uses", f"{rights.whole_devices} is the most", already)


def within(wish: Wish, rights: Rights) -> Wish:
    """Return ``wish`` as far as ``rights`` allow, and what the operator gives where it asks for nothing."""
    most = rights.most
    limit = min(wish.limit, most.limit)
    asked = SessionClass(wish.kind or rights.default_class or SessionClass.INTERACTIVE)
    kind = min(asked, SessionClass(most.kind), key=CLASSES.index)
    request = min(wish.request or rights.default_request, most.request, limit)
    return Wish(str(kind), request, limit, min(wish.priority or rights.default_priority, most.priority))


def _with(default: Quota | Rights, given: Mapping[str, Value]) -> Quota | Rights:
    names = {one.name for one in fields(default)}
    changes: dict[str, Any] = {name: value for name, value in given.items() if name in names}
    return replace(default, **changes) if changes else default


def _not_at_once(wish: Wish) -> str:
    """Return why so many sessions are not to be had at once; "" if they are."""
    if not 1 <= wish.sessions <= MOST_DEVICES:
        return f"{wish.sessions} sessions were asked for at once; there are 1 to {MOST_DEVICES}."
    if wish.devices != 1 or not wish.anti_affinity:
        return "Sessions that are asked for at once have one device each, and a label by which they keep apart."
    if wish.exclusion or wish.affinity:
        label = "exclusion" if wish.exclusion else "affinity"
        return (
            f"Sessions that are asked for at once keep apart, so they cannot have the {label} "
            f"{quoted(wish.exclusion or wish.affinity)} in common."
        )
    return ""


def _wrong(message: str) -> Refusal:
    return Refusal(RefusalCode.MALFORMED, message, "Correct it with %gpu class, the settings file or the option.")


def _beyond(asked: str, most: str, held: str = "") -> Refusal:
    return Refusal(
        RefusalCode.QUOTA,
        f"You asked for {asked}; in this pool {most} that you may have{held}.",
        "Ask for less, or ask the pool's operator for the right to it (`workbench pool shares set`).",
    )
