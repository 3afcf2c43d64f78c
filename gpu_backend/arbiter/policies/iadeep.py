"""Sessions side by side where that was measured to disturb them least, and in turns where taking turns is better."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from gpu_backend.arbiter.policies._interference import Interference
from gpu_backend.arbiter.views import DeviceView, SessionView, Slice, Suggestion

__all__ = ["IADeep"]

#: Two who take turns each take twice as long as alone: an interference of 1 + 1. Side by side must be better by more
#: than the scatter of what is measured.
_TURNS = 2.0
_MARGIN = 0.9
#: A turn has so many ops of everybody in it, for their number to say anything, unless it would take longer than this.
_FEWEST_OPS = 4
_LONGEST = 1.0


class IADeep:
    """Who was served longest ago has the next turn, with the session beside which the two disturb each other least.

    Taken from the paper's code: interference is measured, as the sum over those who run together of (time together -
    time alone) / time alone; for a mix that was seen the measured value holds, for another a prediction once there are
    more than 21 measurements, and before that nought, so that what is unknown is tried; the least value wins.

    Not done here: the original chooses a GPU of a cluster for a training job that stays there; on one device the choice
    is who has it together, for one turn, and among them may be nobody: where the least interference is no better than
    taking turns, a session has its turn alone. A notebook has no mini-batches whose time could be compared, so it is
    the ops finished in a second of a turn, together against alone; every tenth turn of a session is its own, that its
    rate alone is known as it is now. The more its ops differ, the less that says. The prediction is the mean of what
    was measured of mixes of the same classes (bound by arithmetic, by memory, unknown), not a random forest. Mixes are
    pairs. Batch sizes are not tuned, for a notebook declares none, which leaves out half of the original. Side by side
    gains where kernels of two processes run at the same time, which is under MPS, or where one leaves the device idle
    while it waits for its host; elsewhere this policy finds that it does not, and becomes turns in a circle. Nothing is
    said about users: a user's three notebooks have three turns.

    Sources: buzy-coder/IADeep at 78ca7f6 (iadeep-scheduler-extender, pkg/cache/nodeinfo.go, pkg/methods); Chen et al.,
    SC 2023, doi 10.1145/3581784.3607060.

    Parameters
    ----------
    turn_seconds
        Length of a turn; four ops of those in it where these take longer, up to a second.
    alone_every
        Every so many turns of a session are its own.
    """

    name: ClassVar[str] = "iadeep"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = True

    def __init__(self, turn_seconds: float = 0.05, alone_every: int = 10) -> None:
        self._turn, self._alone_every = turn_seconds, alone_every
        self._interference = Interference()
        self._served: dict[str, int] = {}  # by session, the number of its last turn
        self._turns: dict[str, int] = {}  # how many each has had
        self._number = 0
        self._holders: tuple[str, ...] = ()
        self._start, self._length = 0.0, 0.0
        self._ops: dict[str, int] = {}  # finished in this turn

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return the turn in progress, or the next one."""
        self._account(view)
        waiting = {session.id: session for session in view.waiting}
        if not waiting:
            self._holders = ()
            return Suggestion()
        present = [key for key in self._holders if key in waiting]
        if not present or not self._lasts(len(waiting), view.now):
            if present:
                self._measure(waiting, view.now)
            self._begin(view.waiting, view.now)
            present = list(self._holders)
        end = inf if len(waiting) == 1 else self._start + self._length
        return Suggestion(tuple([Slice(key, end) for key in present]))

    def _lasts(self, waiting: int, now: float) -> bool:
        return waiting == 1 or now < self._start + self._length

    def _account(self, view: DeviceView) -> None:
        for gone in view.left:
            for table in (self._served, self._turns, self._ops):
                table.pop(gone, None)
            self._interference.forget(gone)
        for charge in view.charges:
            if charge.terms.session in self._ops:
                self._ops[charge.terms.session] += charge.ops

    def _measure(self, waiting: dict[str, SessionView], now: float) -> None:
        """Note what was done in the turn that ends, if everybody in it had something to do all the time."""
        seconds = now - self._start
        holders = [waiting[key] for key in self._holders if key in waiting]
        if any(each.waiting_since > self._start or self._ops.get(each.id, 0) < _FEWEST_OPS for each in holders):
            return
        rates = [self._ops[each.id] / seconds for each in holders]
        if len(self._holders) == 1:
            self._interference.note_alone(holders[0].id, rates[0])
        elif len(holders) == 2 and all(self._interference.is_known(each.id) for each in holders):
            self._interference.note_together(holders[0], holders[1], (rates[0], rates[1]), now)

    def _begin(self, waiting: tuple[SessionView, ...], now: float) -> None:
        first = min(waiting, key=lambda session: self._served.get(session.id, 0))
        partner = self._partner(first, waiting, now)
        chosen = [first] if partner is None else [first, partner]
        self._number += 1
        for session in chosen:
            self._served[session.id] = self._number
            self._turns[session.id] = self._turns.get(session.id, 0) + 1
        self._holders = tuple([session.id for session in chosen])
        self._ops = dict.fromkeys(self._holders, 0)
        op_seconds = max([session.op_seconds for session in chosen])
        several = min(_LONGEST, _FEWEST_OPS * len(chosen) * op_seconds)
        self._start, self._length = now, max(self._turn, several, op_seconds)

    def _partner(self, first: SessionView, waiting: tuple[SessionView, ...], now: float) -> SessionView | None:
        """Return who is to have the turn with ``first``, or None if it is better alone."""
        known, turns = self._interference, self._turns.get(first.id, 0)
        others = [each for each in waiting if each is not first and known.is_known(each.id)]
        if not others or not known.is_known(first.id) or turns % self._alone_every == 0:
            return None
        best = min(others, key=lambda other: (known.of(first, other, now), self._served.get(other.id, 0)))
        return best if known.of(first, best, now) < _MARGIN * _TURNS else None
