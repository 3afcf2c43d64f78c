"""The core of an arbiter: events in, instructions out, time passed in. No I/O, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any

import msgspec

from gpu_backend.arbiter import events as ev
from gpu_backend.arbiter.overlap import Overlap
from gpu_backend.arbiter.policies.base import LetsShortOpsPass, SharingPolicy
from gpu_backend.arbiter.views import Charge, DeviceView, Grant, SessionView, Slice
from gpu_backend.gate.terms import SessionTerms

__all__ = ["Decision", "ImpossibleEvent", "Refusal", "Relief", "Scheduler"]

_LOG_LENGTH = 10_000
#: Idle sessions' gates are opened when nobody has waited for so long, seconds: not in each pause of a loop.
_QUIET_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Relief:
    """What the core grants on its own account, whatever the policy says, so that nobody starves.

    A session that has waited for ``after_seconds`` without an opening gets the device for ``slice_seconds``: at most
    one part in a thousand of its time for each session that a policy holds back.
    """

    after_seconds: float = 20.0
    slice_seconds: float = 0.02


class Refusal(msgspec.Struct, frozen=True):
    """A slice that the core did not grant, and why."""

    slice: Slice
    reason: str


class Decision(msgspec.Struct, frozen=True):
    """One line of the log: an event and what came of it."""

    now: float
    event: ev.Event
    instructions: tuple[ev.Instruction, ...]
    refusals: tuple[Refusal, ...] = ()


class ImpossibleEvent(Exception):
    """An event that cannot happen on the device as it is. Nothing has changed then."""


class Scheduler:
    """The sessions of one device, their gates, and a policy.

    Guarantees, whatever the policy and the order of events: only sessions on the device hold grants; a session that
    waits is let through at least every ``relief.after_seconds`` (a tenth more at worst); every second of GPU time is
    counted once, for the session's user; the same events at the same times lead to the same instructions.
    """

    def __init__(
        self, policy: SharingPolicy, relief: Relief | None = None, log_length: int | None = _LOG_LENGTH
    ) -> None:
        self._policy = policy
        self._opens_idle = policy.opens_idle
        self._passing = policy if isinstance(policy, LetsShortOpsPass) else None
        self._relief = relief or Relief()
        self._sessions: dict[str, SessionView] = {}
        self._waiting: dict[str, None] = {}
        self._grants: dict[str, ev.OpenGate] = {}
        self._since: dict[str, float] = {}
        self._standing: dict[str, None] = {}  # idle sessions whose gates stay open
        self._lanes: dict[str, None] = {}  # idle sessions whose short ops may pass those who wait
        self._quiet_since = -inf  # when the last one ceased to wait
        self._flying: dict[str, None] = {}  # sessions with ops in flight
        self._overlap = Overlap()
        self._shut_since: dict[str, float] = {}
        self._charges: dict[str, Charge] = {}
        self._left: list[str] = []
        self._used_by_user: dict[str, float] = {}
        self._now = -inf
        self._deadline = self._ask_again_at = self._next_relief = inf
        self._relieved: str | None = None
        #: The last decisions, oldest first; all of them if ``log_length`` is None.
        self.log: deque[Decision] = deque(maxlen=log_length)

    @property
    def sessions(self) -> Mapping[str, SessionView]:
        """The sessions on the device by their ids."""
        return MappingProxyType(self._sessions)

    @property
    def used_by_user(self) -> Mapping[str, float]:
        """GPU time by user, seconds, of sessions that left too."""
        return MappingProxyType(self._used_by_user)

    def is_open(self, session: str) -> bool:
        """Return whether the session's gate is open, by a grant or because it is idle."""
        return session in self._grants or session in self._standing

    def next_deadline(self) -> float:
        """Return when `TimePassed` will next have an effect; infinity if never."""
        return self._deadline

    def next_end(self) -> float:
        """Return when the first of the openings ends; infinity if none does."""
        return min((gate.until for gate in self._grants.values()), default=inf)

    def handle(self, event: ev.Event, now: float) -> tuple[ev.Instruction, ...]:
        """Take in ``event`` and return what is to be done, in this order.

        Raises
        ------
        ImpossibleEvent
            If the event cannot happen now, or time went back.
        """
        if now < self._now:
            raise ImpossibleEvent(f"{event} at {now} came after an event at {self._now}.")
        concerns_policy = self._apply(event, now)
        self._now = now
        if concerns_policy or now >= self._deadline:
            instructions, refusals = self._decide(now)
        else:
            instructions, refusals = (), ()
        if self.log.maxlen != 0:
            self.log.append(Decision(now, event, instructions, refusals))
        return instructions

    # --- events -------------------------------------------------------------------------------------------------------

    def _apply(self, event: ev.Event, now: float) -> bool:
        """Change what the event changes; return whether the policy is to be asked."""
        if isinstance(event, ev.Reported):
            return self._report(event, now)
        if isinstance(event, ev.TimePassed):
            return False
        if isinstance(event, ev.SessionJoined):
            if event.terms.session in self._sessions:
                raise ImpossibleEvent(f"Session {event.terms.session} is on the device already.")
            self._sessions[event.terms.session] = SessionView(event.terms)
            if event.terms.session in self._left:  # it comes back before the policy heard that it was gone
                self._left.remove(event.terms.session)
        elif isinstance(event, ev.TermsChanged):
            session = self._known(event, event.terms.session)
            self._sessions[event.terms.session] = msgspec.structs.replace(session, terms=event.terms)
        else:
            self._leave(event, now)
        return True

    def _report(self, event: ev.Reported, now: float) -> bool:
        key, used, done, flying = event.session, event.used_seconds, event.ops_done, event.in_flight_ops
        is_waiting = event.queued_ops > 0
        old = self._known(event, key)
        if used < 0 or done < 0 or event.queued_ops < 0 or flying < 0:
            raise ImpossibleEvent(f"{event} has a negative count.")
        is_beside = bool(flying or self._flying) or not self._overlap.is_clear
        if is_beside:
            used = self._own(old, used, now)
        op_seconds, waited, since = old.op_seconds, old.waited_before_seconds, old.waiting_since
        if used or done:
            self._charge(old.terms, used, done)
        if done and used + event.ahead_seconds:
            measured = (used + event.ahead_seconds) / done
            op_seconds = (op_seconds + measured) / 2 if op_seconds else measured
        compute, memory = old.compute_part, old.memory_part
        if event.compute_part >= 0 or event.memory_part >= 0:
            compute, memory = _bound(event, compute, memory)
        was_waiting = since < inf
        if is_waiting and not was_waiting:
            since = now
            self._waiting[key] = None
            if key not in self._grants:
                self._shut_since[key] = now
        elif was_waiting and not is_waiting:
            waited, since = waited + now - since, inf
            del self._waiting[key]
            self._shut_since.pop(key, None)
            self._quiet_since = now
        flying_since = now if done or not old.in_flight_ops else old.in_flight_since
        self._sessions[key] = SessionView(
            old.terms, event.queued_ops, flying, op_seconds, old.used_seconds + used, waited, since,
            event.is_urgent, flying_since if flying else inf, compute, memory,
        )  # fmt: skip
        if is_beside:
            self._note_flying(self._sessions[key], now)
        has_drained = old.in_flight_ops > 0 and not flying and key not in self._grants
        has_passed = used > 0 and key in self._lanes
        return has_drained or has_passed or was_waiting != is_waiting or event.is_urgent != old.is_urgent

    def _note_flying(self, session: SessionView, now: float) -> None:
        if session.in_flight_ops:
            self._flying[session.id] = None
            self._overlap.fly(session.id, session.op_seconds, session.in_flight_since)
        else:
            self._flying.pop(session.id, None)
            self._overlap.land(session.id)
        self._overlap.note(now)

    def _own(self, session: SessionView, seconds: float, now: float) -> float:
        """Return what ``session`` is charged for: of time in which others' long ops ran too, its part."""
        self._overlap.note(now)
        return self._overlap.own(seconds, session.id, now) if seconds > 0 else seconds

    def _leave(self, event: ev.SessionLeft, now: float) -> None:
        session = self._known(event, event.session)
        if event.used_seconds < 0:
            raise ImpossibleEvent(f"{event} has a negative time.")
        if event.used_seconds:
            self._charge(session.terms, self._own(session, event.used_seconds, now))
        if event.session in self._waiting:
            self._quiet_since = now
        tables: tuple[dict[str, Any], ...] = (
            self._sessions, self._waiting, self._grants, self._standing, self._lanes, self._since,
            self._shut_since, self._flying,
        )  # fmt: skip
        for table in tables:
            table.pop(event.session, None)
        self._overlap.land(event.session)
        self._overlap.note(now)
        self._left.append(event.session)

    def _charge(self, terms: SessionTerms, seconds: float, ops: int = 0) -> None:
        self._used_by_user[terms.user] = self._used_by_user.get(terms.user, 0.0) + seconds
        before = self._charges.get(terms.session)
        if before is not None:
            seconds, ops = seconds + before.seconds, ops + before.ops
        self._charges[terms.session] = Charge(terms, seconds, ops)

    def _known(self, event: ev.Event, session: str) -> SessionView:
        known = self._sessions.get(session)
        if known is None:
            raise ImpossibleEvent(f"{event} concerns a session that is not on the device.")
        return known

    # --- decisions ----------------------------------------------------------------------------------------------------

    def _decide(self, now: float) -> tuple[tuple[ev.Instruction, ...], tuple[Refusal, ...]]:
        passed = self._charges.keys() & self._lanes.keys() if self._lanes else set()
        suggested = self._relieve(now)
        if suggested is None:
            suggestion = self._policy.suggest(self._view(now))
            self._ask_again_at = suggestion.ask_again_at
            suggested = suggestion.slices
        accepted, refusals = self._accept(suggested, now)
        instructions = self._settle(accepted, passed, now)
        deadline = inf
        for gate in self._grants.values():
            deadline = min(deadline, gate.until)
        # Both may pass while the core relieves somebody; the end of that grant is then the next deadline.
        if now < self._ask_again_at < deadline:
            deadline = self._ask_again_at
        if self._shut_since and now < self._next_relief < deadline:
            deadline = self._next_relief
        if not self._waiting and self._opens_idle and len(self._standing) < len(self._sessions):
            deadline = min(deadline, self._quiet_since + _QUIET_SECONDS)
        self._deadline = deadline
        return instructions, refusals

    def _view(self, now: float) -> DeviceView:
        sessions = self._sessions
        view = DeviceView(
            now,
            tuple(sessions.values()),
            tuple([sessions[key] for key in self._waiting]),
            tuple([Grant(key, self._since[key], gate.until) for key, gate in self._grants.items()]),
            tuple(self._charges.values()),
            tuple(self._left),
            tuple([sessions[key] for key in self._flying]) if self._flying else (),
        )
        self._charges.clear()
        self._left.clear()
        return view

    def _relieve(self, now: float) -> tuple[Slice, ...] | None:
        """Return the slice of a session that waited too long, or None if the policy is to decide."""
        holder = self._relieved
        if holder is not None:
            grant = self._grants.get(holder)
            if grant is not None and holder in self._waiting and now < grant.until:
                return (Slice(holder, grant.until),)
            self._relieved = None
        if now < self._next_relief and self._next_relief < inf:
            return None
        self._next_relief = now + self._relief.after_seconds / 10
        starving = min(self._shut_since, key=self._shut_since.__getitem__, default=None)
        if starving is None or now - self._shut_since[starving] < self._relief.after_seconds:
            return None
        self._relieved = starving
        return (Slice(starving, now + max(self._relief.slice_seconds, self._sessions[starving].op_seconds)),)

    def _accept(self, suggested: tuple[Slice, ...], now: float) -> tuple[dict[str, Slice], tuple[Refusal, ...]]:
        accepted: dict[str, Slice] = {}
        refusals: list[Refusal] = []
        for part in suggested:
            if part.session not in self._sessions:
                refusals.append(Refusal(part, "no such session is on this device"))
            elif part.session in accepted:
                refusals.append(Refusal(part, "suggested twice"))
            elif not (part.until > now and part.budget_seconds >= 0 and 0 < part.duty <= 1 and part.window_ops >= 0):
                refusals.append(Refusal(part, "not an end to come, a budget, a duty or a window"))
            else:
                accepted[part.session] = part
        return accepted, tuple(refusals)

    def _settle(self, accepted: dict[str, Slice], passed: set[str], now: float) -> tuple[ev.Instruction, ...]:
        """Bring the gates to what was accepted; return the changes, those that shut first.

        ``passed`` are those whose short ops have passed others since the last time.
        """
        shut: list[ev.Instruction] = []
        opened: list[ev.Instruction] = []
        is_quiet = self._opens_idle and not self._waiting
        for key in [key for key in self._grants if key not in accepted]:
            del self._grants[key], self._since[key]
            if key in self._waiting:
                self._shut_since[key] = now
                shut.append(ev.ShutGate(key))
            elif is_quiet:
                self._standing[key] = None
                opened.append(_standing_gate(key))
            else:
                shut.append(self._lane_or_shut(key, now))
        if self._waiting and self._standing:  # from now on everybody asks first
            shut += [self._lane_or_shut(key, now) for key in self._standing if key not in accepted]
            self._standing.clear()
        if passed or not self._lanes.keys().isdisjoint(self._waiting):
            for key in [key for key in self._lanes if key in passed or key in self._waiting]:
                if key not in accepted:
                    shut.append(self._lane_or_shut(key, now))
        for key, part in accepted.items():
            gate = ev.OpenGate(key, part.until, part.window_ops, part.budget_seconds, part.duty)
            before = self._grants.get(key)
            if before is None:
                self._standing.pop(key, None)
                self._lanes.pop(key, None)
                self._since[key] = now
                self._shut_since.pop(key, None)
            if gate != before:
                self._grants[key] = gate
                opened.append(gate)
        if is_quiet and now >= self._quiet_since + _QUIET_SECONDS:
            opened += self._open_idle()
        return (*shut, *opened)

    def _lane_or_shut(self, key: str, now: float) -> ev.Instruction:
        """Return what an idle session gets while somebody waits."""
        policy = self._passing
        if policy is not None and key not in self._waiting and policy.may_pass(self._sessions[key], now):
            self._lanes[key] = None
            return ev.OpenLane(key, policy.lane_seconds)
        self._lanes.pop(key, None)
        return ev.ShutGate(key)

    def _open_idle(self) -> list[ev.Instruction]:
        held = self._standing.keys() | self._grants.keys()
        fresh = [key for key in self._sessions if key not in held]
        self._standing.update(dict.fromkeys(fresh))
        self._lanes.clear()
        return [_standing_gate(key) for key in fresh]

    def validate(self) -> None:
        """Check what must always hold.

        Raises
        ------
        AssertionError
            If it does not.
        """
        sessions = self._sessions
        assert set(self._waiting) == {key for key, session in sessions.items() if session.queued_ops}
        assert set(self._waiting) == {key for key, session in sessions.items() if session.waiting_since < inf}
        assert set(self._grants) <= set(sessions), "a grant to nobody"
        assert not set(self._grants) & set(self._standing)
        assert set(self._grants) == set(self._since)
        assert set(self._standing) <= set(sessions)
        assert set(self._lanes) <= set(sessions) - set(self._waiting) - set(self._grants) - set(self._standing)
        assert not (self._standing and self._waiting), "a gate that stands open beside somebody who waits"
        assert set(self._flying) == {key for key, session in sessions.items() if session.in_flight_ops}
        assert set(self._shut_since) == set(self._waiting) - set(self._grants)
        assert all(gate.until > self._now for gate in self._grants.values()), "a grant that has ended"
        present = sum(session.used_seconds for session in sessions.values())
        assert present <= sum(self._used_by_user.values()) * (1 + 1e-9) + 1e-9, "time that no user was charged for"


def _bound(event: ev.Reported, compute: float, memory: float) -> tuple[float, float]:
    """Return by what a session's ops are bound, after ``event`` and by what was estimated before."""
    now, more = min(1.0, max(0.0, event.compute_part)), min(1.0, max(0.0, event.memory_part))
    more = min(more, 1.0 - now)
    return ((compute + now) / 2, (memory + more) / 2) if compute or memory else (now, more)


def _standing_gate(session: str) -> ev.OpenGate:
    return ev.OpenGate(session, inf, 0, inf, 1.0)
