"""What a simulated device showed: shares, delays, utilisation."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gpu_backend.arbiter.simulation.trace import Cell
from gpu_backend.gate.terms import SessionTerms

__all__ = ["Outcome", "Watch", "merged", "quantile"]

_WINDOW_SECONDS = 5.0


class Outcome(msgspec.Struct, frozen=True):
    """Figures of one device, or of several together."""

    #: For each window of 5 s and each user who had work in all of it beside another such user: how far their part was
    #: from their weighted share of what those users got, as a fraction of that share.
    share_errors: list[float]
    #: For each short cell, how much later it ended than it would have alone, seconds.
    delays: list[float]
    #: For each longer cell, how many times longer it took than alone.
    slowdowns: list[float]
    #: Device seconds: in all, with somebody's work on the device, and of work done.
    total_seconds: float
    wanted_seconds: float
    useful_seconds: float

    @property
    def utilisation(self) -> float:
        """Work done in the time in which there was some, as a fraction; 1 where there was none."""
        return self.useful_seconds / self.wanted_seconds if self.wanted_seconds else 1.0


def merged(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the figures of several devices together."""
    every = list(outcomes)
    return Outcome(
        [error for outcome in every for error in outcome.share_errors],
        [delay for outcome in every for delay in outcome.delays],
        [slowdown for outcome in every for slowdown in outcome.slowdowns],
        sum(outcome.total_seconds for outcome in every),
        sum(outcome.wanted_seconds for outcome in every),
        sum(outcome.useful_seconds for outcome in every),
    )


def quantile(values: list[float], part: float) -> float:
    """Return the value below which ``part`` of ``values`` lie; 0 for none."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else 0.0


class Watch:
    """Gathers the figures of one device while it runs."""

    def __init__(self, terms: Iterable[SessionTerms]) -> None:
        #: When the present window ends, seconds.
        self.window_end = _WINDOW_SECONDS
        self._weights = {each.user: each.user_weight for each in terms}
        self._busy = dict.fromkeys(self._weights, 0)
        self._used = dict.fromkeys(self._weights, 0.0)
        self._paused = set(self._weights)
        self._errors: list[float] = []
        self._delays: list[float] = []
        self._slowdowns: list[float] = []
        self._working = 0
        self._wanted = self._useful = 0.0

    def began(self, user: str) -> None:
        """One of the user's sessions has work now."""
        self._busy[user] += 1
        self._working += 1

    def ended(self, user: str, delay_seconds: float, cell: Cell) -> None:
        """One of the user's sessions has finished a cell, so much later than alone."""
        self._busy[user] -= 1
        self._working -= 1
        if not self._busy[user]:
            self._paused.add(user)
        if cell.is_urgent:
            self._delays.append(max(0.0, delay_seconds))
        else:
            self._slowdowns.append(1 + max(0.0, delay_seconds) / cell.seconds)

    def used(self, user: str, seconds: float) -> None:
        """Count GPU time of a user."""
        self._used[user] += seconds

    def passed(self, seconds: float, useful: float, is_running: bool) -> None:
        """Count time that went by, and the work done in it."""
        if self._working or is_running:
            self._wanted += seconds
        self._useful += useful

    def end_window(self) -> None:
        """Judge the window that ends, and begin the next."""
        steady = [user for user in self._weights if user not in self._paused and self._busy[user]]
        if len(steady) > 1:
            level = sum(self._used[user] for user in steady) / sum(self._weights[user] for user in steady)
            if level > 0:
                self._errors += [abs(self._used[user] / self._weights[user] - level) / level for user in steady]
        for user in self._used:
            self._used[user] = 0.0
        self._paused = {user for user, busy in self._busy.items() if not busy}
        self.window_end += _WINDOW_SECONDS

    def outcome(self, seconds: float) -> Outcome:
        """Return the figures after ``seconds`` in all."""
        return Outcome(self._errors, self._delays, self._slowdowns, seconds, self._wanted, self._useful)
