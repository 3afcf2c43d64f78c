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
#: For how long it is known what became of a group, for whoever did not hear it, seconds.
KEPT_SECONDS = 60.0
#: Groups of one key that come together at a time; and processes of which it is kept.
MOST_FORMING = 64
MOST_KEPT = 4096
_NAME_BYTES = 16
_EACH_ITS_OWN = "Give all processes of a group one n_devices and each a rank of its own, and each group another port."

#: A group in the making, by its user's key and its name; and one process's attempt to be in it.
_Name = tuple[str, str]
_Attempt = tuple[str, str]


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
class _Member:
    session: str
    attempt: str
    heard: float


@dataclass(slots=True)
class _Forming:
    size: int
    members: dict[int, _Member] = field(default_factory=dict)
    #: Since when others want to be what a member is, by attempt: it may have left, and is waited for until that shows.
    rivals: dict[str, float] = field(default_factory=dict)

    def missing(self) -> tuple[int, ...]:
        """Return the ranks that have not come."""
        return tuple(rank for rank in range(self.size) if rank not in self.members)


class Groups:
    """All groups that come together now. ``is_serving`` tells whether a session has an executor."""

    def __init__(self, is_serving: Callable[[str], bool]) -> None:
        self._is_serving = is_serving
        self._forming: dict[_Name, _Forming] = {}
        #: What each process of a whole group is told, and until when that is kept; the eldest first.
        self._met: dict[_Attempt, tuple[tuple[str, ...], float]] = {}

    def join(self, key: str, who: JoinGroup, now: float) -> Outcome | Refusal:
        """Take in that a process of the user with this key is, or still waits to be, one of a group."""
        self._forget(now)
        if not _makes_sense(who):
            message = f"There is no rank {who.rank} among {who.size}: a group has 1 to {MOST_RANKS} ranks, and a name."
            return Refusal(RefusalCode.MALFORMED, message, "")
        if (known := self.known(key, who)) is not None:
            return known
        forming = self._forming.get((key, who.name))
        if forming is None:
            if sum(key == its for its, _ in self._forming) >= MOST_FORMING:
                message = f"{MOST_FORMING} groups of yours are coming together already."
                return Refusal(RefusalCode.OVER_CREDIT, message, "Start the processes that they wait for.")
            forming = self._forming[key, who.name] = _Forming(who.size)
        _let_go(forming, who)
        if conflict := _conflict(forming, who):
            return self._beside(forming, who, now, *conflict)
        forming.rivals.pop(who.attempt, None)
        forming.members[who.rank] = _Member(who.session, who.attempt, now)
        missing = forming.missing()
        return Outcome(missing) if missing else self._whole(key, who, now)

    def known(self, key: str, who: JoinGroup) -> Outcome | None:
        """Return what became of a process's group; None if some are missing still."""
        met = self._met.get((key, who.attempt))
        return None if met is None else Outcome(channels=met[0])

    def missing(self, key: str, who: JoinGroup) -> tuple[int, ...]:
        """Return which ranks a process waits for: its own if that is all, as another has it still."""
        forming = self._forming.get((key, who.name))
        return (forming.missing() if forming is not None else ()) or (who.rank,)

    @staticmethod
    def _beside(forming: _Forming, who: JoinGroup, now: float, holder: _Member, message: str) -> Outcome | Refusal:
        """Refuse what does not fit to a ``holder`` that was heard since; until then have it wait."""
        since = forming.rivals.setdefault(who.attempt, now)
        if holder.heard > since:
            del forming.rivals[who.attempt]
            return Refusal(RefusalCode.IN_USE, message, _EACH_ITS_OWN)
        return Outcome((who.rank,))

    def _whole(self, key: str, who: JoinGroup, now: float) -> Outcome:
        """Have all who came know each other."""
        members = self._forming.pop((key, who.name)).members
        names = {pair: secrets.token_hex(_NAME_BYTES) for pair in combinations(sorted(members), 2)}
        for rank, one in members.items():
            to_each = tuple(names.get((min(rank, other), max(rank, other)), "") for other in range(who.size))
            self._met[key, one.attempt] = to_each, now + KEPT_SECONDS
        openings = [Opening(members[high].session, members[low].session, name) for (low, high), name in names.items()]
        return Outcome((), self._met[key, who.attempt][0], tuple(openings))

    def _forget(self, now: float) -> None:
        """Let go of those who have left, and of what everybody knows by now."""
        while self._met and (len(self._met) > MOST_KEPT or next(iter(self._met.values()))[1] <= now):
            del self._met[next(iter(self._met))]
        for name, forming in list(self._forming.items()):
            for rank, one in list(forming.members.items()):
                if now - one.heard > SILENT_SECONDS or not self._is_serving(one.session):
                    del forming.members[rank]
            for rival, since in list(forming.rivals.items()):
                if now - since > 2 * SILENT_SECONDS:
                    del forming.rivals[rival]
            if not forming.members:
                del self._forming[name]


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


def _conflict(forming: _Forming, who: JoinGroup) -> tuple[_Member, str] | None:
    """Return whom ``who`` does not fit to, and why; None if they can be in one group."""
    name = printable(who.name, MOST_GROUP_NAME)
    for rank, one in forming.members.items():
        if forming.size != who.size:
            return one, f"The group {name} is of {forming.size} processes for others, and of {who.size} for this one."
        if rank == who.rank:
            return one, f"Another process is rank {rank} of the group {name}."
        if one.session == who.session:
            return one, f"Rank {rank} and rank {who.rank} of the group {name} are of one session: each needs its own."
    return None
