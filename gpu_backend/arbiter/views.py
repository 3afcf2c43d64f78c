"""What a policy sees of a device, and what it may suggest. Frozen values."""

from __future__ import annotations

from math import inf

import msgspec

from gpu_backend.gate.terms import SessionTerms

__all__ = ["Charge", "DeviceView", "Grant", "SessionView", "Slice", "Suggestion"]


class SessionView(msgspec.Struct, frozen=True, gc=False):
    """One session at one moment."""

    terms: SessionTerms
    #: Ops that wait to be launched.
    queued_ops: int = 0
    #: Ops launched and not finished.
    in_flight_ops: int = 0
    #: Running estimate of one op's GPU time, ``(old + measured) / 2`` at every report; seconds, 0 if nothing is known.
    op_seconds: float = 0.0
    #: GPU time used since it joined, seconds.
    used_seconds: float = 0.0
    #: Time during which ops were queued, up to the present wait, seconds.
    waited_before_seconds: float = 0.0
    #: Since when ops have been queued without a break; infinity if none are.
    waiting_since: float = inf
    #: Whether somebody waits for a short result.
    is_urgent: bool = False
    #: Since when ops have been in flight of which none is done; infinity if none are in flight.
    in_flight_since: float = inf
    #: Running estimates, made as `op_seconds` is, of which parts of its ops' time are bound by arithmetic, and by
    #: memory, as far as the classes of its ops tell. What is left to 1 is not known; both are 0 before anything is.
    compute_part: float = 0.0
    memory_part: float = 0.0

    @property
    def id(self) -> str:
        """The session's id."""
        return self.terms.session

    @property
    def queued_seconds(self) -> float:
        """Estimated GPU time of what is queued and in flight."""
        return (self.queued_ops + self.in_flight_ops) * self.op_seconds

    def waited_seconds(self, now: float) -> float:
        """Return for how long ops have been queued in all, up to ``now``: what it ran in and what it waited in."""
        return self.waited_before_seconds + max(0.0, now - self.waiting_since)


class Charge(msgspec.Struct, frozen=True, gc=False):
    """GPU time that a session used since the policy was last asked. The session may have left since."""

    terms: SessionTerms
    seconds: float
    #: Ops finished in the same time.
    ops: int = 0


class Grant(msgspec.Struct, frozen=True, gc=False):
    """An opening in force."""

    session: str
    since: float
    until: float


class DeviceView(msgspec.Struct, frozen=True, gc=False):
    """A device at one moment."""

    #: Seconds on the arbiter's own scale. The only time that a policy knows.
    now: float
    #: Every session on the device, in the order in which they joined.
    sessions: tuple[SessionView, ...]
    #: Those with queued ops, in the order in which they began to wait.
    waiting: tuple[SessionView, ...]
    #: Openings in force that the policy suggested or the core made.
    granted: tuple[Grant, ...]
    #: What was used since the policy was last asked.
    charges: tuple[Charge, ...]
    #: Sessions that left since the policy was last asked.
    left: tuple[str, ...]
    #: Those with ops in flight, whether their gates are open or not.
    flying: tuple[SessionView, ...] = ()


class Slice(msgspec.Struct, frozen=True, gc=False):
    """A suggestion to let one session launch.

    Several slices at a time are served side by side, by the driver's own turns.
    """

    session: str
    #: When it ends; infinity for "when I say otherwise".
    until: float = inf
    #: Most ops in flight; 0 leaves it to the executor.
    window_ops: int = 0
    #: GPU time that may be used, seconds.
    budget_seconds: float = inf
    #: Part of the time that it may be busy, above 0 and at most 1.
    duty: float = 1.0


class Suggestion(msgspec.Struct, frozen=True, gc=False):
    """What a policy would do. Who waits and is not named is held back."""

    slices: tuple[Slice, ...] = ()
    #: When to ask again at the latest, though nothing should happen; infinity for never.
    ask_again_at: float = inf
