"""What happens on a device, and what is then to be done. Plain values; nothing here acts."""

from __future__ import annotations

import msgspec

from gpu_backend.gate.terms import SessionTerms

__all__ = [
    "Event",
    "Instruction",
    "OpenGate",
    "OpenLane",
    "Reported",
    "SessionJoined",
    "SessionLeft",
    "ShutGate",
    "TermsChanged",
    "TimePassed",
]

# --- events ---------------------------------------------------------------------------------------------------------


class SessionJoined(msgspec.Struct, frozen=True, tag=True):
    """An executor serves a session on this device from now on."""

    terms: SessionTerms


class TermsChanged(msgspec.Struct, frozen=True, tag=True):
    """A session is entitled to something else from now on."""

    terms: SessionTerms


class SessionLeft(msgspec.Struct, frozen=True, tag=True):
    """The session's executor is gone, orderly or not.

    ``used_seconds`` is GPU time used since its last report: measured where it still could be, else the arbiter's
    upper estimate, so that a death does not leave time uncounted.
    """

    session: str
    used_seconds: float = 0.0


class Reported(msgspec.Struct, frozen=True, tag=True, gc=False):
    """What an executor's page says that is new."""

    session: str
    #: GPU time used since its last report, seconds.
    used_seconds: float
    #: Ops finished since its last report.
    ops_done: int
    #: Ops that wait in the executor to be launched.
    queued_ops: int
    #: Ops launched and not yet finished.
    in_flight_ops: int = 0
    #: Whether somebody waits for the result of what is queued, and it is short.
    is_urgent: bool = False
    #: GPU time of the ops that finished which was counted before it was reported, seconds.
    ahead_seconds: float = 0.0
    #: Which parts of the time of the ops that finished went into such as are bound by arithmetic, and by memory; of the
    #: rest that is not known. -1 where nothing is told.
    compute_part: float = -1.0
    memory_part: float = -1.0


class TimePassed(msgspec.Struct, frozen=True, tag=True, gc=False):
    """A moment that :meth:`~gpu_backend.arbiter.scheduler.Scheduler.next_deadline` named has come."""


Event = SessionJoined | TermsChanged | SessionLeft | Reported | TimePassed

# --- instructions ---------------------------------------------------------------------------------------------------


class OpenGate(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Let a session launch, within these bounds. Replaces what was granted to it before."""

    session: str
    #: When the gate shuts by itself; infinity if only by instruction.
    until: float
    #: Most ops in flight; 0 leaves it to the executor.
    window_ops: int
    #: GPU time it may use in this opening, seconds.
    budget_seconds: float
    #: Part of the time it may be busy: it pauses ``(1 / duty - 1)`` times what an op took.
    duty: float


class ShutGate(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Let a session launch nothing more. What is in flight finishes; what is queued stays queued."""

    session: str


class OpenLane(msgspec.Struct, frozen=True, tag=True):
    """Let an idle session launch what is short and waited for without asking, and nothing else."""

    session: str
    #: GPU time it may use so, seconds; then it asks.
    budget_seconds: float


Instruction = OpenGate | ShutGate | OpenLane
