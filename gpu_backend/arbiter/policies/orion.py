"""Best-effort work beside priority work where the two want different things of the device, a little at a time."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from gpu_backend.arbiter.policies._bursts import BurstEstimate
from gpu_backend.arbiter.policies._pairing import Pairing
from gpu_backend.arbiter.policies._profiles import complement
from gpu_backend.arbiter.views import Charge, DeviceView, SessionView, Slice, Suggestion
from gpu_backend.gate.terms import SessionClass

__all__ = ["Orion"]

#: So much of the limit counts as all of it: what is left is not worth opening a gate for.
_FULL = 0.95


class Orion:
    """Priority work is launched at once, always; best-effort work beside it where their profiles complement.

    Taken from the paper and its code: ops of high priority are submitted as they come; best-effort ones freely while
    the high-priority client has no request in progress, and else only if their class, bound by arithmetic or by memory,
    differs from that of the high-priority op; an unknown class counts as compatible, which lets newcomers through until
    they are known; expected durations of submitted best-effort ops are summed, and once the sum exceeds a part of the
    length of a high-priority request no more of them begins until all of them have ended.

    Not done here: whether kernels run at the same time is not the policy's to say. Sessions are processes, and the
    driver runs kernels of two processes at the same time only under MPS; elsewhere it alternates between them, and what
    complements disturbs as much as what does not. There are no streams of higher priority between processes either, and
    a high-priority op waits for a best-effort one that runs. The test of sizes, that best-effort kernels need no more
    SMs than a threshold, is left out: how many SMs a kernel occupies cannot be seen. Where the original searches for
    that threshold by the time of high-priority iterations, best-effort work is here let beside high-priority work at
    all only while that finishes nine tenths of the ops in a second that it finishes alone; where it does not, it is
    tried again after five seconds. So on a device that alternates this policy is found to be priority, and a limit on
    what is outstanding. Profiles are made while sessions run, not beforehand, and of a session lately, not of each
    kernel: by the classes of its ops, of which products, solvers and transforms count as bound by arithmetic,
    elementwise ops, reductions and copies as bound by memory, a user's own kernels and others as unknown; with less
    than 60 % of either a session is unknown. A request is a run of ops between two moments at which nothing is queued.
    Sessions of the class best-effort are best-effort, and all others are of high priority, at once and without an order
    among them, where the original has exactly one. The part of a request, a tenth, is ours, and so is what it is at
    least: a limit below 2 ms would spend a good part of it on opening gates.

    Sources: eth-easl/orion at aded65d (src/scheduler/scheduler_eval.cpp); Strati et al., Orion, EuroSys 2024, doi
    10.1145/3627703.3629578.

    Parameters
    ----------
    request_part
        Part of the longest request of late that outstanding best-effort work may take.
    least_seconds
        What it may take however short requests are, and where none has ended lately.
    look_seconds
        How often it is looked whether high-priority ops in flight are done, while best-effort work waits for that.
    """

    name: ClassVar[str] = "orion"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = False

    def __init__(self, request_part: float = 0.1, least_seconds: float = 0.002, look_seconds: float = 0.0005) -> None:
        self._part, self._least, self._look = request_part, least_seconds, look_seconds
        self._requests: dict[str, BurstEstimate] = {}  # of each high-priority session
        self._pairing = Pairing()
        self._noted_at = 0.0
        self._was_busy = self._was_beside = False  # since then: high-priority work, and other work beside it
        self._spent = 0.0  # GPU time of best-effort ops since all of them had ended
        self._is_full = False  # whether nothing more begins until they have

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return endless slices for high-priority sessions, and what there is of the limit for the others."""
        high = [session for session in view.sessions if not _is_best_effort(session)]
        self._note(high, view)
        waiting = [session for session in view.waiting if _is_best_effort(session)]
        if not high:
            self._was_busy = False
            return Suggestion(tuple([Slice(session.id) for session in waiting]))
        busy = [session for session in high if session.queued_ops or session.in_flight_ops]
        beside = waiting
        if busy:
            may_pair = self._pairing.may_pair(view.now)
            beside = [session for session in waiting if may_pair and complement(session, busy)]
        slices = [Slice(session.id) for session in high]
        if beside and not self._is_full:
            slices += self._beside(beside, view.now)
        self._was_busy = any(session.queued_ops for session in busy)
        self._was_beside = bool(beside)
        return Suggestion(tuple(slices), self._ask_again_at(view.now, bool(waiting), bool(busy)))

    def _ask_again_at(self, now: float, is_waited: bool, is_busy: bool) -> float:
        if not (is_waited and is_busy):
            return inf
        return self._pairing.next_change(now) if self._was_busy else now + self._look

    def _beside(self, sessions: list[SessionView], now: float) -> list[Slice]:
        """Return slices of what is left of the limit; the op that reaches it may be longer than that."""
        left = self._limit(now) - self._spent
        part = left / len(sessions)
        return [
            Slice(
                session.id,
                now + max(left, self._look),
                window_ops=_window(part, session.op_seconds),
                budget_seconds=part,
            )
            for session in sessions
        ]

    def _note(self, high: list[SessionView], view: DeviceView) -> None:
        for gone in view.left:
            self._requests.pop(gone, None)
        for session in high:
            request = self._requests.get(session.id) or self._requests.setdefault(session.id, BurstEstimate())
            request.observe(session.queued_ops > 0, session.used_seconds, view.now)
        for key in self._requests.keys() - {session.id for session in high}:
            del self._requests[key]
        if self._was_busy:
            ops = sum([charge.ops for charge in view.charges if not _is_best_effort(charge)])
            self._pairing.note(view.now - self._noted_at, ops, self._was_beside, view.now)
        self._noted_at = view.now
        self._spent += sum([charge.seconds for charge in view.charges if _is_best_effort(charge)])
        limit = self._limit(view.now)
        self._is_full = self._is_full or self._spent >= _FULL * limit
        if self._is_full and not any(_is_best_effort(session) for session in view.flying):
            self._is_full, self._spent = False, 0.0

    def _limit(self, now: float) -> float:
        longest = max([request.seconds(now) for request in self._requests.values()], default=0.0)
        return max(self._least, self._part * longest)


def _is_best_effort(one: SessionView | Charge) -> bool:
    return one.terms.kind is SessionClass.BEST_EFFORT


def _window(seconds: float, op_seconds: float) -> int:
    """Return how many ops may be in flight; 0, which leaves it to the executor, before anything is known of them."""
    return max(1, int(seconds / op_seconds)) if op_seconds else 0
