"""What a session has cost so far, for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counters:
    """Counted since the session was opened in this process."""

    #: Ops sent.
    ops: int = 0
    #: Messages that carried them.
    batches: int = 0
    #: Ops whose answer had to be waited for.
    round_trips: int = 0
