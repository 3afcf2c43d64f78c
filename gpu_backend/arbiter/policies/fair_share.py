"""GPU time by group, then user, then session, with weights: the default."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar

from gpu_backend.arbiter.policies._shares import Shares
from gpu_backend.arbiter.views import DeviceView, SessionView, Slice, Suggestion

__all__ = ["FairShare"]


class FairShare:
    """One session at a time, of the user furthest below their share.

    Groups divide the device by their weights, users their group's part by theirs, and a user's sessions the user's
    part equally; so three notebooks get no more than one. A user's session of a higher priority goes before their
    others, and before nobody else's. Use decays, which lets the device follow who works now,
    and who was away comes back at most ``credit_seconds`` ahead of the others, which serves them at once and does
    not hand them the device for long. Time that nobody else wants costs nothing later.

    A pending short result of who is not above the mean of those who wait (nor is their user) takes the device at once,
    mostly before anybody was asked: an idle session passes by itself until it has used ``lane_seconds``. Other work
    of who is below their share takes it as soon as the holder has had ``hold_seconds``. What cannot be preempted is
    charged when it is measured, so an overrun is paid back by waiting; and it is let finish first, for side by side
    with it nobody would be faster and the measured time of both would be that of both.

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
    own_credit_seconds
        Most lead of a session that comes back before its user's others: more, for it is at nobody else's cost, and a
        notebook that pauses after each result would lose what it could not ask for during other users' turns.
    half_life_seconds
        After which use counts half.
    long_op_seconds
        An op longer than this is let finish before another's turn begins, unless that one's op is urgent.
    patience_seconds
        For so long at most; then both run side by side.
    lane_seconds
        GPU time of short ops that may pass before the next look at the shares.
    """

    name: ClassVar[str] = "fair_share"
    opens_idle: ClassVar[bool] = True
    is_work_conserving: ClassVar[bool] = True
    divides_by_weights: ClassVar[bool] = True

    def __init__(
        self,
        turn_seconds: float = 0.02,
        hold_seconds: float = 0.002,
        credit_seconds: float = 0.02,
        own_credit_seconds: float = 0.1,
        half_life_seconds: float = 60.0,
        long_op_seconds: float = 0.003,
        patience_seconds: float = 0.25,
        lane_seconds: float = 0.01,
    ) -> None:
        self.lane_seconds = lane_seconds
        self._turn, self._hold = turn_seconds, hold_seconds
        self._long, self._patience = long_op_seconds, patience_seconds
        self._shares = Shares(half_life_seconds, credit_seconds, own_credit_seconds)
        self._served: dict[str, int] = {}  # by session, the number of its last turn
        self._turns = 0
        self._holder = ""
        self._turn_start = 0.0
        self._flying: list[SessionView] = []  # those with a long op under way
        self._breaking: dict[str, str] = {}  # by user, the session whose urgent op is under way

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return the holder's turn, or the next one's."""
        now = view.now
        self._account(view)
        waiting = view.waiting
        self._shares.admit([session.terms for session in waiting], now)
        if not waiting:
            self._holder = ""
            return Suggestion()
        best = self._best(waiting, now) if len(waiting) > 1 else waiting[0]
        holder = None
        for session in waiting:
            if session.terms.session == self._holder:
                holder = session
                break
        if holder is not None and best is not holder and now < self._longest_end(holder):
            ends = self._turn_end(holder, best, now)
            if now < ends:
                return Suggestion((Slice(holder.id, ends),))
        drained_at = self._drained_at(best, now)
        if drained_at > now:
            self._holder = ""
            return Suggestion(ask_again_at=drained_at)
        return self._grant(best, inf if len(waiting) == 1 else self._turn, now)

    def _turn_end(self, holder: SessionView, best: SessionView, now: float) -> float:
        """Return when the holder's turn ends for ``best``, who has more right to the device."""
        if best.is_urgent:
            return now
        if self._shares.is_behind(best.terms, holder.terms, self._turn, now):
            return self._turn_start + self._hold
        return self._longest_end(holder)

    def _longest_end(self, holder: SessionView) -> float:
        return self._turn_start + max(self._turn, holder.op_seconds)

    def _drained_at(self, chosen: SessionView, now: float) -> float:
        """Return until when to wait for others' long ops before ``chosen`` has its turn; ``now`` if it need not."""
        if not self._flying or chosen.id == self._holder or chosen.is_urgent:
            return now
        return max(
            [each.in_flight_since + self._patience for each in self._flying if each.id != chosen.id], default=now
        )

    def _grant(self, session: SessionView, seconds: float, now: float) -> Suggestion:
        if self._holder != session.id or now >= self._turn_start + self._turn:
            self._turns += 1
            self._served[session.id] = self._turns
            self._holder, self._turn_start = session.id, now
            if session.is_urgent:
                self._breaking[session.terms.user] = session.id
        return Suggestion((Slice(session.id, self._turn_start + seconds),))

    def _account(self, view: DeviceView) -> None:
        for charge in view.charges:
            self._shares.charge(charge.terms, charge.seconds, view.now)
        for left in view.left:
            self._served.pop(left, None)
            self._shares.forget(left)
        if self._breaking:
            busy = {session.id for session in view.sessions if session.is_urgent or session.in_flight_ops}
            self._breaking = {user: session for user, session in self._breaking.items() if session in busy}
        self._flying = [
            session
            for session in view.flying
            if session.op_seconds > self._long or view.now - session.in_flight_since > self._long
        ]

    def _best(self, waiting: tuple[SessionView, ...], now: float) -> SessionView:
        # What was taken for short and is not breaks in once, not with each of a user's notebooks.
        urgent = [
            each for each in waiting if each.is_urgent and self._breaking.get(each.terms.user, each.id) == each.id
        ]
        if urgent:
            entitled = [session for session in urgent if self.may_pass(session, now)]
            if entitled:
                return self._first(entitled)
        return self._first(waiting)

    def _first(self, sessions: Sequence[SessionView]) -> SessionView:
        """Return the session furthest below its share; of several the longest unserved one."""
        if len(sessions) == 1:
            return sessions[0]
        order = self._shares.order([session.terms for session in sessions])
        least = min(order)
        first = [session for session, place in zip(sessions, order, strict=True) if place == least]
        return min(first, key=lambda session: self._served.get(session.id, 0))

    def may_pass(self, session: SessionView, now: float) -> bool:
        """Return whether neither session, user nor group is above the mean of those who wait."""
        return self._shares.may_pass(session.terms, now)
