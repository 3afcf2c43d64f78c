"""Who may have a session: limits against what is held and was used already. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from gpu_backend.gateway.amounts import memory_in_words
from gpu_backend.gateway.entitlements import Entitlements, Quota
from gpu_backend.gateway.refusals import Refusal, how_to_ask
from gpu_backend.lifecycle.states import HELD, Session
from gpu_backend.wire.errors import RefusalCode

#: Periods for which GPU time is limited: calendar days, weeks from Monday, and months, in the pool's local time.
PERIODS = ("day", "week", "month")
#: A session that has asked for no amount of memory is not given less than this, or than all that there is: it would
#: meet the end of it at its first array, instead of at its start.
_LEAST_BYTES = 64 << 20
_ASK = "or ask the pool's operator for more (`workbench pool quotas set`)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user, or a group in all, with their limits and what they have used of their GPU time."""

    #: "" for the user who asks, else the group's name.
    group: str = ""
    members: frozenset[str]
    quota: Quota
    #: GPU seconds used since the present period began, by period.
    spent: Mapping[str, float] = field(default_factory=dict)

    @property
    def whose(self) -> str:
        """How the user who asks is told whose limit it is."""
        return f"group {self.group}" if self.group else "you"


def accounts_of(user: str, entitlements: Entitlements, spent: Mapping[str, Mapping[str, float]]) -> list[Account]:
    """Return the accounts that a session of ``user`` counts against.

    Parameters
    ----------
    user
        Who asks.
    entitlements
        What the operator has set.
    spent
        GPU seconds by holder ("user" or "group"), then by period.
    """
    group = entitlements.group_of(user)
    own = Account(members=frozenset({user}), quota=entitlements.quota("user", user), spent=spent.get("user", {}))
    if not group:
        return [own]
    theirs = entitlements.quota("group", group)
    members = entitlements.members(group)
    return [own, Account(group=group, members=members, quota=theirs, spent=spent.get("group", {}))]


def admit(
    memory_bytes: int,
    sessions: Iterable[Session],
    accounts: Sequence[Account],
    today: date = date.min,
    waiting: Sequence[str] = (),
    count: int = 1,
) -> Refusal | None:
    """Return why ``count`` more sessions with ``memory_bytes`` may not be had; None if they may.

    Parameters
    ----------
    memory_bytes
        Device memory limit of what is asked for, on all its devices; 0 for no limit of its own.
    sessions
        All sessions of the pool.
    accounts
        Those that it would count against, as `accounts_of` returns them.
    today
        The present day, to say when a period ends.
    waiting
        The user of each session that waits for a place, if this one would have to as well.
    count
        How many sessions are asked for at once.
    """
    everything = [session for session in sessions if session.state in HELD]
    for account in accounts:
        held = [session for session in everything if session.user in account.members]
        queued = sum(user in account.members for user in waiting)
        refusal = (
            _too_many(account, held, queued, count)
            or _too_much_memory(account, held, memory_bytes)
            or _used_up(account, today)
        )
        if refusal is not None:
            return refusal
    return None


def left_bytes(sessions: Iterable[Session], accounts: Iterable[Account]) -> int:
    """Return the device memory that another session may have by all ``accounts``; 0 if none limits it.

    Only of use once `admit` has let the session in: then something is left.
    """
    everything = [session for session in sessions if session.state in HELD]
    limited = [account for account in accounts if account.quota.memory_bytes]
    return min((_left(account, everything) for account in limited), default=0)


def is_over_quota(accounts: Iterable[Account]) -> bool:
    """Tell whether the GPU time of any account is used up."""
    return any(_exhausted(account) for account in accounts)


def period_start(day: date, period: str) -> date:
    """Return the first day of the ``period`` in which ``day`` lies."""
    if period == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == "month" else day


def next_period(day: date, period: str) -> date:
    """Return the first day of the period after the one in which ``day`` lies."""
    longest = {"day": 1, "week": 7, "month": 31}[period]
    return period_start(period_start(day, period) + timedelta(days=longest), period)


def _too_many(account: Account, held: Sequence[Session], queued: int, count: int) -> Refusal | None:
    most = account.quota.sessions
    if not most or len(held) + queued + count <= most:
        return None
    wait = f", and {queued} more wait for a place" if queued else ""
    wait += f"; {count} more were asked for, one for each device" if count > 1 else ""
    if account.group:
        who = f"Your group {account.group} has {len(held)} of {most} sessions that it may have in this pool{wait}."
        return Refusal(RefusalCode.QUOTA, who, f"Shut down a kernel that nobody in the group needs, {_ASK}.")
    return Refusal(
        RefusalCode.QUOTA,
        f"You have {len(held)} of {most} sessions that you may have in this pool{_names(held)}{wait}.",
        f"Shut down a kernel that you do not need (Running Terminals and Kernels), {_ASK}.",
    )


def _too_much_memory(account: Account, held: Sequence[Session], memory_bytes: int) -> Refusal | None:
    most = account.quota.memory_bytes
    if not most:
        return None
    left = _left(account, held)
    if left >= (memory_bytes or min(_LEAST_BYTES, most)):
        return None
    whose = f"your group {account.group} may have" if account.group else "you may have"
    sessions = "1 session holds" if len(held) == 1 else f"{len(held)} sessions hold"
    taken = f"{sessions} {memory_in_words(most - left)}" if held else "No session holds any"
    asked = f"this one asks for {memory_in_words(memory_bytes)}" if memory_bytes else ""
    wanted = asked or f"{memory_in_words(left)} are left for another"
    said = f"{taken} of the {memory_in_words(most)} of device memory that {whose}{_names(held)}; {wanted}."
    if left >= _LEAST_BYTES:
        remedy = f"Ask for what is left: {how_to_ask(left)}. Or shut down a kernel that you do not need, {_ASK}."
    else:
        remedy = (
            "Shut down a kernel that you do not need (Running Terminals and Kernels). Where several are to fit, let "
            f"each ask for its part before it starts: {how_to_ask(most // 4)}. Or ask the pool's operator for more "
            "(`workbench pool quotas set`)."
        )
    return Refusal(RefusalCode.QUOTA, said, remedy)


def _left(account: Account, sessions: Iterable[Session]) -> int:
    held = sum(session.may_hold_bytes for session in sessions if session.user in account.members)
    return max(0, account.quota.memory_bytes - held)


def _used_up(account: Account, today: date) -> Refusal | None:
    period = _exhausted(account)
    if not period:
        return None
    used, most = account.spent[period], account.quota.gpu_seconds[period]
    who = f"Your group {account.group} has" if account.group else "You have"
    return Refusal(
        RefusalCode.QUOTA,
        f"{who} used {used:,.0f} of the {most:,.0f} GPU seconds that may be used in a {period}.",
        f"Wait for the next {period}, which begins on {next_period(today, period)}, {_ASK}.",
    )


def _exhausted(account: Account) -> str:
    limits = account.quota.gpu_seconds
    return next((p for p in PERIODS if limits[p] and account.spent.get(p, 0.0) >= limits[p]), "")


def _names(held: Sequence[Session]) -> str:
    labels = [session.label for session in held if session.label]
    return f" ({', '.join(labels[:5])}{', ...' if len(labels) > 5 else ''})" if labels else ""
