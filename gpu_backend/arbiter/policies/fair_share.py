"""GPU time by user, then group, with weights: the default."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, inf
from typing import ClassVar

from gpu_backend.arbiter.policies._usage import DecayedUsage
from gpu_backend.arbiter.views import DeviceView, SessionView, Slice, Suggestion

__all__ = ["FairShare"]


class FairShare:
    """One session at a time, of the user furthest below their share.

    Groups divide the device by their weights, users their group's part by theirs, and a user's sessions the user's
    part equally; so three notebooks get no more than one. Use decays, which lets the device follow who works now,
    and who was away comes back at most ``credit_seconds`` ahead of the others, which serves them at once and does
    not hand them the device for long. Time that nobody else wants costs nothing later.

    A pending short result of a user who is not above the mean of those who wait takes the device at once; other work
    of a user below their share takes it as soon as the holder has had ``hold_seconds``. What cannot be preempted is
    charged when it is measured, so an overrun is paid back by waiting.

    The rule is weighted fair queueing on measured time, with the decay of cluster schedulers; the constants are
    ours: turns of 20 ms cost under 1.5 % of the throughput and keep five-second shares within 2 % for a few users.

    Parameters
    ----------
    turn_seconds
        Longest turn while others wait.
    hold_seconds
        Shortest turn that only an urgent op may break.
    credit_seconds
        Most lead of a user who comes back, in GPU time per unit of weight.
    half_life_seconds
        After which use counts half.
    """

    name: ClassVar[str] = "fair_share"
    opens_idle: ClassVar[bool] = True
    is_work_conserving: ClassVar[bool] = True

    def __init__(
        self,
        turn_seconds: float = 0.02,
        hold_seconds: float = 0.002,
        credit_seconds: float = 0.02,
        half_life_seconds: float = 60.0,
    ) -> None:
        self._turn, self._hold, self._credit = turn_seconds, hold_seconds, credit_seconds
        self._half_life = half_life_seconds
        self._groups = DecayedUsage(half_life_seconds)
        self._users: dict[str, DecayedUsage] = {}  # by group
        self._active: frozenset[tuple[str, str]] = frozenset()  # users who wait, each with the group they wait in
        self._served: dict[str, int] = {}  # by session, the number of its last turn
        self._turns = 0
        self._holder = ""
        self._turn_start = 0.0

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return the holder's turn, or the next one's."""
        now = view.now
        self._account(view)
        waiting = view.waiting
        self._admit(waiting, now)
        if not waiting:
            self._holder = ""
            return Suggestion()
        if len(waiting) == 1:
            return self._grant(waiting[0], inf, now)
        best = self._best(waiting, now)
        holder = next((session for session in waiting if session.id == self._holder), None)
        if holder is None or best is holder:
            return self._grant(best, self._turn, now)
        ends = self._turn_start + max(self._turn, holder.op_seconds)
        if now >= ends or (best.is_urgent and best.terms.user != holder.terms.user):
            return self._grant(best, self._turn, now)
        if self._is_behind(best, holder, now):
            ends = min(ends, self._turn_start + self._hold)
        return self._grant(best, self._turn, now) if now >= ends else Suggestion((Slice(holder.id, ends),))

    def _grant(self, session: SessionView, seconds: float, now: float) -> Suggestion:
        if self._holder != session.id or now >= self._turn_start + self._turn:
            self._turns += 1
            self._served[session.id] = self._turns
            self._holder, self._turn_start = session.id, now
        return Suggestion((Slice(session.id, self._turn_start + seconds),))

    def _account(self, view: DeviceView) -> None:
        for charge in view.charges:
            terms = charge.terms
            self._of_group(terms.group).charge(terms.user, charge.seconds, terms.user_weight, view.now)
            self._groups.charge(terms.group, charge.seconds, terms.group_weight, view.now)
        for session in view.left:
            self._served.pop(session, None)

    def _of_group(self, group: str) -> DecayedUsage:
        return self._users.get(group) or self._users.setdefault(group, DecayedUsage(self._half_life))

    def _admit(self, waiting: tuple[SessionView, ...], now: float) -> None:
        """Let those who begin to wait in among those who did, so that nobody leads or lags by what was long ago."""
        users = frozenset([(session.terms.user, session.terms.group) for session in waiting])
        if users == self._active:
            return
        groups, before = {group for _, group in users}, {group for _, group in self._active}
        self._groups.admit(groups - before, before, self._credit, now)
        for group in groups | before:
            came = [user for user, theirs in users - self._active if theirs == group]
            stayed = [user for user, theirs in self._active if theirs == group]
            self._of_group(group).admit(came, stayed, self._credit, now)
        self._active = users

    def _best(self, waiting: tuple[SessionView, ...], now: float) -> SessionView:
        urgent = [session for session in waiting if session.is_urgent]
        if urgent:
            entitled = [session for session in urgent if self._is_entitled(session, now)]
            if entitled:
                return self._first(entitled, now)
        return self._first(waiting, now)

    def _first(self, sessions: Iterable[SessionView], now: float) -> SessionView:
        """Return the session of the group, then of the user, furthest below their share; the longest unserved one."""
        groups = {group for _, group in self._active}
        at = {group: self._groups.of(group, now) for group in groups} if len(groups) > 1 else {}
        least = {pair: self._users[pair[1]].of(pair[0], now) for pair in self._active}
        served = self._served

        def order(session: SessionView) -> tuple[float, float, int]:
            terms = session.terms
            return at.get(terms.group, 0.0), least[terms.user, terms.group], served.get(terms.session, 0)

        return min(sessions, key=order)

    def _is_entitled(self, session: SessionView, now: float) -> bool:
        """Return whether neither the user in their group nor the group on the device is above the others' mean."""
        group, usage = session.terms.group, self._users[session.terms.group]
        peers = [user for user, theirs in self._active if theirs == group]
        mean = fsum(usage.of(user, now) for user in peers) / len(peers)  # fsum: a set's order must not matter
        groups = {group for _, group in self._active}
        mean_group = fsum(self._groups.of(other, now) for other in groups) / len(groups)
        return usage.of(session.terms.user, now) <= mean and self._groups.of(group, now) <= mean_group

    def _is_behind(self, session: SessionView, holder: SessionView, now: float) -> bool:
        """Return whether ``session``'s user, or group, is more than a turn's credit below the holder's."""
        if session.terms.group != holder.terms.group:
            usage, mine, theirs = self._groups, session.terms.group, holder.terms.group
            weight = session.terms.group_weight
        else:
            usage, mine, theirs = self._users[session.terms.group], session.terms.user, holder.terms.user
            weight = session.terms.user_weight
        return usage.of(theirs, now) - usage.of(mine, now) > self._turn / weight
