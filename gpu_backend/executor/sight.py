"""What an executor sees before it decides what is next; see `loop`."""

from __future__ import annotations

from enum import Enum
from math import inf

import msgspec

from gpu_backend.executor.instructions import Wait

__all__ = ["SPIN_SECONDS", "Shut", "Told", "View"]

#: How long to look for room, or at least for the next message (see `Spinning`): a wake-up costs more than most ops.
SPIN_SECONDS = 60e-6


class Told(Enum):
    """What the arbiter knows since anything was done: nothing, what is due, or all there is."""

    NOTHING = 0
    DUE = 1
    ALL = 2


class Shut(msgspec.Struct, frozen=True, gc=False):
    """A gate that is shut."""

    #: Whether the arbiter was told that something short waits that somebody waits for.
    is_urgent: bool = False
    #: Whether only another's short op has it wait: for a moment, and nobody will ring.
    is_yielding: bool = False
    #: Whether it is open but for somebody's right of way, be that honoured or not any more.
    is_way_taken: bool = False
    #: How long, about, it is shut for a pause, so that nobody will ring: 0 if nobody can tell, None if for no pause.
    pause_seconds: float | None = None
    #: How long it is until it opens; 0 where nobody has said.
    opens_in: float = 0.0


class View(msgspec.Struct, frozen=True, gc=False):
    """Where an executor stands. What does not matter, for what is said before it, is left at its default."""

    #: Whether something has ended the session.
    is_over: bool = False
    #: Whether there is a session: someone's ops may come.
    is_assigned: bool = True
    #: Whether an op is there that may run now, for all that the notebook does: the answers before it are read.
    has_work: bool = False
    #: Whether the sockets were looked at since ops ran.
    has_looked: bool = True
    #: Whether the next op is not to be run any more.
    is_cancelled: bool = False
    #: What the next op waits for; None if it may be launched.
    wait: Wait | None = Wait.WORK
    #: The gate, where it is waited for.
    shut: Shut | None = None
    #: When anything was done last: ops ran, a message came, or a sleep was over.
    since: float = 0.0
    told: Told = Told.NOTHING
    #: Whether the last op that ran was answered: the notebook takes a while to ask for more.
    has_answered: bool = False
    #: Whether others want the device, so that short waits are worth a busy processor.
    is_contended: bool = False
    #: When to look at the leases, and how much memory is held.
    check_at: float = inf
    measure_at: float = inf
    #: Whether the device has something in flight.
    is_working: bool = False
    #: Whether there are answers that the sockets did not take.
    has_unsent: bool = False
    #: Whether what is in flight is of long ops, and what an op takes, about.
    works_long: bool = False
    op_seconds: float = 0.0
    spin_seconds: float = SPIN_SECONDS  #: for messages
    #: Whether there is anything to learn of the ops that came.
    has_lesson: bool = False
    #: When to go the way of the last question again, and until when at all.
    rehearse_at: float = inf
    rehearse_until: float = -inf
