"""What a session is, and the states it goes through.

::

              admitted                executor ready               closed by its owner
    (nothing) ────────▶ OPENING ──────────────────────▶ SERVING ───────────────────────▶ CLOSING
                          │  ▲                            │  │ restart: OPENING, epoch + 1   │
       first launch failed│  │ticket renewed: epoch + 1   │  └──────────▶                    │ executor gone
                          ▼  │                            ▼ executor died                    ▼
                       CLOSED └────────────────────────  LOST ────────────────────────────▶ CLOSED
                                                              lease ran out, or it was over
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from gpu_backend.wire.wish import Wish


class SessionState(StrEnum):
    """How far a session is."""

    OPENING = "opening"  #: an executor is being had for the present epoch
    SERVING = "serving"  #: an executor holds the session; its ticket may be given
    LOST = "lost"  #: the executor is gone and the arrays with it; the lease still holds the user's place
    CLOSING = "closing"  #: the executor was told to stop and still holds its place on the device
    CLOSED = "closed"  #: nothing is left but the record


#: States in which a session counts against its user's limit.
HELD = frozenset({SessionState.OPENING, SessionState.SERVING, SessionState.LOST})
#: States in which a session takes up a place on a device.
PLACED = frozenset({SessionState.OPENING, SessionState.SERVING, SessionState.CLOSING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A notebook kernel's place in the pool, at one moment."""

    id: str
    user: str
    #: Public key (Z85) of the client that opened it; no other may have its ticket.
    client_key: str
    #: For people, shown to the owner only.
    label: str
    #: Where its executor is, or last was.
    node: str
    ordinal: int
    device_kind: str
    memory_limit_bytes: int
    #: Whether so much is kept free for it on its device. Not for one that asked for none: its limit is a mere bound.
    has_promise: bool = True
    #: How long its client may be silent, seconds.
    lease_seconds: float
    #: When it was opened, seconds since 1970; for people, decides nothing.
    opened_at: float
    state: SessionState
    #: Grows with every executor that the session is given.
    epoch: int
    endpoints: tuple[str, ...] = ()
    #: What the executor and its client prove to each other that they know, in hexadecimal.
    secret: str = field(default="", repr=False)
    #: SHA-256 of the executor's certificate, in hexadecimal.
    certificate: str = ""
    #: When the state ends by itself, in the machine's time.
    deadline: float = inf
    #: Why it is lost, closing or closed.
    reason: str = ""
    #: How it wants to share its device.
    wish: Wish = field(default_factory=Wish)
    #: The name under which its client asked for it; who asks the same again, the answer being lost, is given this one.
    waiter: str = ""
    #: Why it is on its device and not on another, in words.
    placed: str = ""
    #: Further devices of the node that it has; the memory limit is that of each.
    others: tuple[int, ...] = ()

    @property
    def ordinals(self) -> tuple[int, ...]:
        """All its devices of its node."""
        return (self.ordinal, *self.others)

    @property
    def may_hold_bytes(self) -> int:
        """Most memory that it may hold on all its devices; 0 for no limit."""
        return self.memory_limit_bytes * len(self.ordinals)
