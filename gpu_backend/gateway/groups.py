"""Groups of processes that come together: who is there, who is missing, and what does not fit. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from gpu_backend.gateway.refusals import Refusal
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.groups import MOST_ATTEMPT, MOST_GROUP_NAME, MOST_RANKS, JoinGroup
from gpu_backend.wire.words import printable

__all__ = ["Groups", "Opening", "Outcome"]

#: Whoever was not heard for so long has left, seconds: they ask again every two.
SILENT_SECONDS = 8.0
#: For how long it is known what became of a process, for whoever did not hear it, seconds.
KEPT_SECONDS = 60.0
#: Of one key: groups that come together at a time; and processes of which it is kept what became of them.
MOST_FORMING = 64
MOST_KEPT = 512
#: How often all groups are gone through for those who have left, seconds: there may be many users, who ask a lot.
LOOK_SECONDS = 0.5
_NAME_BYTES = 16
_EACH_ITS_OWN = "Give all processes of a group one n_devices and each a rank of its own, and each group another port."

#: Tells whether a session has an executor.
_IsServing = Callable[[str], bool]


class Opening(NamedTuple):
    """A channel that is to be opened: the executor of session ``by`` reaches that of ``to``."""

    by: str
    to: str
    channel: str


class Outcome(NamedTuple):
    """Which ranks are ``missing``; if none is, the ``channels`` to each, and ``openings``: what is to be opened now."""

    missing: tuple[int, ...] = ()
    channels: tuple[str, ...] = ()
    openings: tuple[Opening, ...] = ()


@dataclass(slots=True)
class _One:
    """A process that waits: since when, and when it was heard last."""

    session: str
    attempt: str
    since: float
    heard: float


@dataclass(slots=True)
class _Forming:
    """A group in the making."""

    size: int
    members: dict[int, _One] = field(default_factory=dict)
    #: Who wants to be what a member is, by attempt: that one may have left, and is waited for until it shows.
    rivals: dict[str, _One] = field(default_factory=dict)

    def missing(self) -> tuple[int, ...]:
        """Return the ranks that have not come."""
        return tuple(rank for rank in range(self.size) if rank not in self.members)

    def tidy(self, is_serving: _IsServing, now: float) -> None:
        """Let go of those who have left."""

        def has_left(one: _One) -> bool:
            return now - one.heard > SILENT_SECONDS or not is_serving(one.session)

        self.members = {rank: one for rank, one in self.members.items() if not has_left(one)}
        self.rivals = {attempt: one for attempt, one in self.rivals.items() if not has_left(one)}

    def drop(self, attempt: str) -> None:
        """Let go of one attempt."""
        self.members = {rank: one for rank, one in self.members.items() if one.attempt != attempt}
        self.rivals.pop(attempt, None)


@dataclass(slots=True)
class _Ours:
    """What there is of one key: groups in the making by name; what each process is told whose wait is over, by attempt.

    With the latter, until when it is kept; the eldest first.
    """

    forming: dict[str, _Forming] = field(default_factory=dict)
    over: dict[str, tuple[Outcome, float]] = field(default_factory=dict)

    def keep(self, attempt: str, outcome: Outcome, now: float) -> None:
        """Keep what an attempt is told from now on."""
        while len(self.over) >= MOST_KEPT:
            del self.over[next(iter(self.over))]
        self.over[attempt] = outcome, now + KEPT_SECONDS

    def tidy(self, is_serving: _IsServing, now: float) -> None:
        """Let go of those who have left, and of what everybody knows by now."""
        while self.over and next(iter(self.over.values()))[1] <= now:
            del self.over[next(iter(self.over))]
        for name, forming in list(self.forming.items()):
            forming.tidy(is_serving, now)
            if not forming.members:
                del self.forming[name]


class Groups:
    """All groups that come together now. ``is_serving`` tells whether a session has an executor."""

    def __init__(self, is_serving: _IsServing) -> None:
        self._is_serving = is_serving
        self._by_key: dict[str, _Ours] = {}
        self._next_look = 0.0

    def join(self, key: str, who: JoinGroup, now: float) -> Outcome | Refusal:
        """Take in that a process of the user with this key is, or still waits to be, one of a group."""
        self._look(now)
        if not _makes_sense(who):
            message = f"There is no rank {who.rank} among {who.size}: a group has 1 to {MOST_RANKS} ranks, and a name."
            return Refusal(RefusalCode.MALFORMED, message, "")
        if (known := self.known(key, who)) is not None:
            return known
        ours = self._by_key.setdefault(key, _Ours())
        forming = ours.forming.get(who.name)
        if forming is None:
            if len(ours.forming) >= MOST_FORMING:
                message = f"{MOST_FORMING} groups of yours are coming together already."
                return Refusal(RefusalCode.OVER_CREDIT, message, "Start the processes that they wait for.")
            forming = ours.forming[who.name] = _Forming(who.size)
        forming.tidy(self._is_serving, now)
        _let_go(forming, who)
        if conflict := _conflict(forming, who):
            return _beside(forming, who, now, *conflict)
        forming.rivals.pop(who.attempt, None)
        forming.members[who.rank] = _One(who.session, who.attempt, now, now)
        missing = forming.missing()
        return Outcome(missing) if missing else _whole(ours, who, now)

    def leave(self, key: str, who: JoinGroup, now: float) -> None:
        """Take in that a process has given up; what it said before may come later, and counts no more."""
        self._look(now)
        if not _makes_sense(who) or self.known(key, who) is not None:
            return
        ours = self._by_key.setdefault(key, _Ours())
        ours.keep(who.attempt, Outcome((who.rank,)), now)
        if (forming := ours.forming.get(who.name)) is not None:
            forming.drop(who.attempt)

    def known(self, key: str, who: JoinGroup) -> Outcome | None:
        """Return what became of a process; None if it waits still."""
        ours = self._by_key.get(key)
        return ours.over[who.attempt][0] if ours is not None and who.attempt in ours.over else None

    def missing(self, key: str, who: JoinGroup) -> tuple[int, ...]:
        """Return which ranks a process waits for: its own if that is all, as another has it still."""
        ours = self._by_key.get(key)
        forming = None if ours is None else ours.forming.get(who.name)
        return (forming.missing() if forming is not None else ()) or (who.rank,)

    def _look(self, now: float) -> None:
        """Now and then, let go of what is over; a group that somebody asks for is looked at then."""
        if now < self._next_look:
            return
        self._next_look = now + LOOK_SECONDS
        for key, ours in list(self._by_key.items()):
            ours.tidy(self._is_serving, now)
            if not ours.forming and not ours.over:
                del self._by_key[key]


def _beside(forming: _Forming, who: JoinGroup, now: float, holder: _One, message: str) -> Outcome | Refusal:
    """Refuse what does not fit to a ``holder`` that was heard since; until then have it wait."""
    rival = forming.rivals.get(who.attempt)
    if rival is None:
        if len(forming.rivals) >= MOST_RANKS:
            many = f"{MOST_RANKS} more processes of yours want to be in the group {_shown(who.name)} already."
            return Refusal(RefusalCode.OVER_CREDIT, many, _EACH_ITS_OWN)
        rival = forming.rivals[who.attempt] = _One(who.session, who.attempt, now, now)
    rival.heard = now
    if holder.heard > rival.since:
        del forming.rivals[who.attempt]
        return Refusal(RefusalCode.IN_USE, message, _EACH_ITS_OWN)
    return Outcome((who.rank,))


def _whole(ours: _Ours, who: JoinGroup, now: float) -> Outcome:
    """Have all who came know each other."""
    members = ours.forming.pop(who.name).members
    names = {pair: secrets.token_hex(_NAME_BYTES) for pair in combinations(sorted(members), 2)}
    told = {
        rank: tuple(names.get((min(rank, other), max(rank, other)), "") for other in range(who.size))
        for rank in members
    }
    if who.size > 1:  # one alone has nobody to make other channels with, if it asks again
        for rank, one in members.items():
            ours.keep(one.attempt, Outcome(channels=told[rank]), now)
    openings = [Opening(members[high].session, members[low].session, name) for (low, high), name in names.items()]
    return Outcome((), told[who.rank], tuple(openings))


def _makes_sense(who: JoinGroup) -> bool:
    fits = 0 <= who.rank < who.size <= MOST_RANKS
    return fits and 0 < len(who.name) <= MOST_GROUP_NAME and 0 < len(who.attempt) <= MOST_ATTEMPT


def _let_go(forming: _Forming, who: JoinGroup) -> None:
    """Forget what ``who`` was before: it asks again, or gave up and tries again."""
    for rank, one in list(forming.members.items()):
        if one.attempt == who.attempt or (one.session, rank) == (who.session, who.rank):
            del forming.members[rank]
    if not forming.members:
        forming.size = who.size


def _conflict(forming: _Forming, who: JoinGroup) -> tuple[_One, str] | None:
    """Return whom ``who`` does not fit to, and why; None if they can be in one group."""
    name = _shown(who.name)
    for rank, one in forming.members.items():
        if forming.size != who.size:
            return one, f"The group {name} is of {forming.size} processes for others, and of {who.size} for this one."
        if rank == who.rank:
            return one, f"Another process is rank {rank} of the group {name}."
        if one.session == who.session:
            return one, f"Rank {rank} and rank {who.rank} of the group {name} are of one session: each needs its own."
    return None


def _shown(name: str) -> str:
    return printable(name, MOST_GROUP_NAME)
