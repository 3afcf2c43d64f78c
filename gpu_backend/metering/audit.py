"""What is counted of what an executor says that it used, and whether it obeys its gate. Pure: values in, values out.

An executor may run code of its user's making, so its word is taken within bounds. It cannot have used more than the
time that has passed. What was seen from outside and is not reported is counted all the same, beyond a tolerance that
those who report all never reach. Reports that come late, as of an op that takes seconds, are set off against what was
counted ahead of them, so nothing is counted twice. Times are seconds, of one executor.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpu_backend.wire.op_classes import OP_CLASSES, OpClass

__all__ = ["Account", "Conduct", "Look", "by_class"]

_OTHER_CLASS = OP_CLASSES.index(OpClass.OTHER)

#: Idle time that can be made up for by later reports: what a report says can be a little older than the report.
_MOST_CREDIT = 1.0
#: What may be unexplained in all, while ops are said to run (their time is reported when they are done), and else.
_CLAIMED_SLACK, _SLACK = 1.0, 0.15
#: So much of an exclusive turn, for which an executor said that it had work, is counted at least. Who reports all has
#: used nine tenths of it.
_TURN_PART = 0.5
#: How fast it is forgotten what was seen behind a shut gate, per second.
_FORGOTTEN = 0.05
#: How much of it is believed to be other work than ops, in all and per second: all that a notebook's credit lets it
#: send behind a shut gate, 256 MB and 16,384 ops, is received within one and a half.
_MOST_OTHER, _OTHER = 2.5, 0.05


class Look(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was seen of an executor between two looks at it."""

    #: How long that was.
    seconds: float
    #: For how long the device was seen to work for it, by somebody else than itself; None if nobody could tell. In all
    #: it is no longer than the time that passed.
    seen: float | None = None
    #: What part of that must be its ops: the rest is other work of the process.
    seen_part: float = 1.0
    #: What its reports added meanwhile.
    reported: float = 0.0
    #: For how long its gate was open, and whatever ran then may have been seen.
    open: float = 0.0
    #: What processor time it says to have spent behind its shut gate on other things than ops.
    other: float = 0.0
    #: For how long it alone held a turn, and said that it had work, the first moments of each turn aside.
    held: float = 0.0
    #: Whether it said, before or after, that an op runs; and whether both times.
    is_claiming: bool = False
    claims_on: bool = False
    #: Whether any op was done.
    has_progress: bool = False


class Account:
    """How much is counted for one executor.

    Parameters
    ----------
    reported
        What it has reported, and what was counted of that.
    ahead
        What was counted and not yet reported.
    credit
        How long it has been able to use the device while nobody counted. What it used just before may be reported late
        all the same.
    """

    def __init__(self, reported: float = 0.0, ahead: float = 0.0, credit: float = 0.0) -> None:
        #: What it has reported.
        self.reported = reported
        #: What was counted before it was reported.
        self.ahead = ahead
        self._credit = _MOST_CREDIT + credit
        self._unexplained = 0.0

    def pass_time(self, seconds: float, is_idle: bool) -> None:
        """Let time pass. ``is_idle`` says that nothing waits or runs, by its own word."""
        self._credit += seconds
        if is_idle:
            self._credit = min(self._credit, _MOST_CREDIT)

    def take(self, reported: float) -> float:
        """Take in what it has reported in all by now; return what is to be counted for it."""
        more = max(0.0, reported - self.reported)
        self.reported += more
        self._unexplained = max(-_SLACK, self._unexplained - more)
        covered = min(more, self.ahead)
        self.ahead -= covered
        counted = min(more - covered, self._credit)
        self._credit -= counted
        return counted

    def expect(self, seconds: float) -> float:
        """Count ahead of its reports what it must use, or have used; return what is to be counted for it."""
        counted = min(max(0.0, seconds), self._credit)
        self.ahead += counted
        self._credit -= counted
        return counted

    def compare(self, look: Look) -> float:
        """Compare what was reported, and taken, with what was seen; return what is to be counted ahead of reports."""
        must = look.seen_part * (look.seen or 0.0)
        must = max(must, _TURN_PART * look.held)
        if look.claims_on and not look.has_progress:
            must = max(must, look.seconds - look.open)  # it says itself that an op runs
        self._unexplained += must
        slack = _CLAIMED_SLACK if look.is_claiming else _SLACK
        unreported = self._unexplained - slack
        self._unexplained = min(self._unexplained, slack)
        return self.expect(unreported)


class Conduct:
    """Whether an executor computes behind its shut gate.

    Parameters
    ----------
    most_overrun
        For how long an op that runs when the gate shuts may go on while others want the device; 0 for ever.
    most_burnt
        What may be seen behind a shut gate before it counts as computing.
    """

    def __init__(self, most_overrun: float = 0.0, most_burnt: float = 0.4) -> None:
        self._most_overrun, self._most_burnt = most_overrun, most_burnt
        self._burnt = self._overrun = 0.0
        self._other = _MOST_OTHER

    def offence(self, look: Look) -> str:
        """Take in a look at a time in which others want the device; return why the executor must end, or nothing."""
        self._burnt = max(0.0, self._burnt - _FORGOTTEN * look.seconds)
        self._other = min(_MOST_OTHER, self._other + _OTHER * look.seconds)
        if look.is_claiming:
            is_on = look.claims_on and not look.has_progress
            self._overrun = self._overrun + max(0.0, look.seconds - look.open) if is_on else 0.0
            if 0 < self._most_overrun < self._overrun:
                return (
                    f"One op ran for {self._most_overrun:.0f} s beyond its turn while others waited for the device, "
                    "which is the most that this pool allows."
                )
            return ""
        self._overrun = 0.0
        burnt = max(0.0, (look.seen or 0.0) - look.open - look.reported)
        other = min(burnt, max(0.0, look.other), self._other)
        self._other -= other
        self._burnt += burnt - other
        if self._burnt > self._most_burnt:
            return "It kept the device busy while its gate was shut and it said that nothing ran."
        return ""


def by_class(total: float, claimed: Sequence[float]) -> tuple[float, ...]:
    """Return what was counted in all, split as the executor says; what it does not say is of no class known."""
    parts = [max(0.0, part) for part in claimed]
    said = sum(parts)
    if said > total:
        return tuple([part * total / said for part in parts])
    parts[_OTHER_CLASS] += total - said
    return tuple(parts)
