"""Who is how far below their share: groups of the device, users of their group, sessions of their user."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf

from gpu_backend.arbiter.policies._usage import DecayedUsage
from gpu_backend.gate.terms import SessionTerms

__all__ = ["Shares"]

#: A user, with the group in which they wait.
User = tuple[str, str]


class Shares:
    """Use at three levels, each divided by its weights; sessions of one user weigh the same.

    Of a user's sessions only those of the highest priority that wait are meant; the others come after them.

    Parameters
    ----------
    half_life_seconds
        After which use counts half.
    credit_seconds
        Most lead of a user, or group, who comes back, in GPU time per unit of weight.
    own_credit_seconds
        Most lead of a session that comes back before its user's others.
    """

    def __init__(self, half_life_seconds: float, credit_seconds: float, own_credit_seconds: float) -> None:
        self._half_life = half_life_seconds
        self._credit, self._own_credit = credit_seconds, own_credit_seconds
        self._groups = DecayedUsage(half_life_seconds)
        self._users: dict[str, DecayedUsage] = {}  # by group
        self._sessions: dict[User, DecayedUsage] = {}
        self._user_of: dict[str, User] = {}  # by session
        self._waiting: list[SessionTerms] = []
        self._active: dict[str, User] = {}  # sessions that wait
        self._has_siblings = False
        self._active_users: frozenset[User] = frozenset()
        self._active_groups: frozenset[str] = frozenset()

    # --- what was used ------------------------------------------------------------------------------------------------

    def charge(self, terms: SessionTerms, seconds: float, now: float) -> None:
        """Count what a session used; one that did not wait has no lead by what was long ago either."""
        user = (terms.group, terms.user)
        if self._active.get(terms.session) != user:
            self._admit_session(terms, now)
        if user not in self._active_users:
            if terms.group not in self._active_groups:
                self._groups.admit([terms.group], self._active_groups, self._credit, now)
            peers = [user for group, user in self._active_users if group == terms.group]
            self._in_group(terms.group).admit([terms.user], peers, self._credit, now)
        self._of_user(terms).charge(terms.session, seconds, 1.0, now)
        self._in_group(terms.group).charge(terms.user, seconds, terms.user_weight, now)
        self._groups.charge(terms.group, seconds, terms.group_weight, now)

    def forget(self, session: str) -> None:
        """Drop what is known of a session that left."""
        user = self._user_of.pop(session, None)
        theirs = None if user is None else self._sessions.get(user)
        if user is None or theirs is None:  # nothing was ever counted of it, and none is left of whom anything was
            return
        theirs.forget(session)
        if not len(theirs):
            del self._sessions[user]

    def admit(self, waiting: list[SessionTerms], now: float) -> None:
        """Let those who begin to wait in among those who did, so that nobody leads or lags by what was long ago."""
        if waiting == self._waiting:  # the same objects nearly always, which is seen at once
            return
        active = {each.session: (each.group, each.user) for each in waiting}
        for each in waiting:
            if self._active.get(each.session) != active[each.session]:
                self._admit_session(each, now)
        self._waiting, self._active = waiting, active
        users = frozenset(active.values())
        self._has_siblings = len(users) < len(active)
        if users == self._active_users:
            return
        groups, before = {group for group, _ in users}, {group for group, _ in self._active_users}
        self._groups.admit(groups - before, before, self._credit, now)
        for group in groups | before:
            came = [user for theirs, user in users - self._active_users if theirs == group]
            stayed = [user for theirs, user in self._active_users if theirs == group]
            self._in_group(group).admit(came, stayed, self._credit, now)
        self._active_users, self._active_groups = users, frozenset(groups)

    def _admit_session(self, terms: SessionTerms, now: float) -> None:
        peers = [each.session for each in self._peers(terms)]
        self._of_user(terms).admit([terms.session], peers, self._own_credit, now)

    def _peers(self, terms: SessionTerms) -> list[SessionTerms]:
        """Return the waiting sessions of the same user."""
        return [each for each in self._waiting if each.user == terms.user and each.group == terms.group]

    def _in_group(self, group: str) -> DecayedUsage:
        usage = self._users.get(group)
        if usage is None:
            usage = self._users[group] = DecayedUsage(self._half_life)
        return usage

    def _of_user(self, terms: SessionTerms) -> DecayedUsage:
        user = (terms.group, terms.user)
        if self._user_of.get(terms.session) != user:  # it is new, or has changed its group
            self.forget(terms.session)
            self._user_of[terms.session] = user
        usage = self._sessions.get(user)
        if usage is None:
            usage = self._sessions[user] = DecayedUsage(self._half_life)
        return usage

    # --- who comes first ----------------------------------------------------------------------------------------------

    def order(self, sessions: Sequence[SessionTerms]) -> list[tuple[float, ...]]:
        """Return for each of several sessions that wait what sorts the furthest below its share first."""
        users = self._users
        order: list[tuple[float, ...]]
        if len(self._active_groups) == 1:
            ranks = users[sessions[0].group].ranks
            order = [(ranks[each.user],) for each in sessions]
        else:
            groups = self._groups.ranks
            order = [(groups[each.group], users[each.group].ranks[each.user]) for each in sessions]
        if self._has_siblings:
            own = self._sessions
            order = [
                (*place, -each.priority, own[each.group, each.user].ranks[each.session])
                for place, each in zip(order, sessions, strict=True)
            ]
        return order

    def may_pass(self, terms: SessionTerms, now: float) -> bool:
        """Return whether neither session, user nor group is above the mean of those who wait."""
        own, peers = self._of_user(terms), self._peers(terms)
        if any(each.priority > terms.priority for each in peers):
            return False
        among = [own.of(each.session, now) for each in peers if each.priority == terms.priority]
        usage = self._in_group(terms.group)
        users = [usage.of(user, now) for group, user in self._active_users if group == terms.group]
        groups = [self._groups.of(group, now) for group in self._active_groups]
        return (
            own.of(terms.session, now) <= _mean(among)
            and usage.of(terms.user, now) <= _mean(users)
            and self._groups.of(terms.group, now) <= _mean(groups)
        )

    def is_behind(self, one: SessionTerms, other: SessionTerms, seconds: float, now: float) -> bool:
        """Return whether ``one`` is more than ``seconds`` of GPU time below ``other``, where they part."""
        if one.group != other.group:
            return self._groups.lead(other.group, one.group, now) > seconds / one.group_weight
        if one.user != other.user:
            return self._in_group(one.group).lead(other.user, one.user, now) > seconds / one.user_weight
        if one.priority != other.priority:
            return one.priority > other.priority
        return self._of_user(one).lead(other.session, one.session, now) > seconds


def _mean(used: list[float]) -> float:
    """Return the mean, where nobody is without bounds. Exact sums: a set's order must not matter."""
    return fsum(used) / len(used) if used else inf
