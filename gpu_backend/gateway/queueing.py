"""The queue in action: who stands in it, and who has left it without a word."""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic, time

from gpu_backend.gateway.changes import Changes
from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.loads import DeviceLoad
from gpu_backend.gateway.placing import DEFAULT_RULES
from gpu_backend.gateway.queue import Name, Waiter, allot, in_order
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.lifecycle.states import HELD, Session

log = logging.getLogger("gateway.queueing")

#: Whoever has not asked again for so long waits no more, seconds; clients ask every two seconds.
SILENT_SECONDS = 8.0

Loads = Callable[[], list[DeviceLoad]]
Held = Callable[[], list[Session]]


class Line:
    """Everybody who waits for a place, on record so that a restarted gateway keeps the order."""

    def __init__(
        self,
        directory: Directory,
        changes: Changes,
        loads: Loads,
        sessions: Held,
        weight: Callable[[str], float],
        rules: Sequence[str] = DEFAULT_RULES,
    ) -> None:
        """Take over who waited when the gateway was last heard; they have the usual time to ask again."""
        #: The rules of placement, the first first.
        self.rules = tuple(rules)
        self._directory = directory
        self._changes = changes
        self._loads = loads
        self._sessions = sessions
        self._weight = weight
        self._waiters: dict[Name, Waiter] = {one.name: one for one in directory.waiting()}
        self._heard: dict[Name, float] = dict.fromkeys(self._waiters, monotonic())
        self._known: tuple[int, int] | None = None
        self._ordered: list[Waiter] = []
        self._allotment: dict[Name, DeviceLoad | Refusal] = {}

    def __contains__(self, name: Name) -> bool:
        return name in self._waiters

    def __len__(self) -> int:
        return len(self._waiters)

    def hear(self, waiter: Waiter) -> Waiter:
        """Let somebody wait, or go on to; return them with the time since when they do."""
        known = self._waiters.get(waiter.name)
        self._heard[waiter.name] = monotonic()
        if known is not None:
            return known
        self._waiters[waiter.name] = waiter
        with _recorded_if_possible():
            self._directory.wait(waiter)
        self._changes.tell()
        return waiter

    def anew(self, waiter: Waiter) -> Waiter:
        """Let somebody leave who waits for something else than they ask for now: what is found is for what they asked.

        Return them as they come again. With as many devices as before they keep their turn: how much memory is meant
        where none was named, say, changes with what else their user has.
        """
        known = self._waiters.get(waiter.name)
        if known is None or _asked(known) == _asked(waiter):
            return waiter
        self.leave(waiter.name)
        return replace(waiter, since=known.since) if _how_many(known) == _how_many(waiter) else waiter

    def leave(self, name: Name) -> bool:
        """Let somebody wait no more; tell whether they did."""
        if self._waiters.pop(name, None) is None:
            return False
        del self._heard[name]
        with _recorded_if_possible():
            self._directory.wait_no_more(*name)
        self._changes.tell()
        return True

    def expire(self) -> None:
        """Let those go who were not heard for a while."""
        horizon = monotonic() - SILENT_SECONDS
        for name in [name for name, heard in self._heard.items() if heard < horizon]:
            self.leave(name)

    def ordered(self) -> list[Waiter]:
        """Return everybody who waits, the next to be served first."""
        self._settle()
        return self._ordered

    def spot(self, waiter: Waiter) -> DeviceLoad | Refusal:
        """Return the place that somebody can have now, after those who come before them; they need not wait yet."""
        if waiter.name in self._waiters:
            self._settle()
            return self._allotment[waiter.name]
        return allot(self._order([*self._waiters.values(), waiter]), self._loads(), self.rules)[waiter.name]

    def _settle(self) -> None:
        # Once for each change and not for each waiter; once a second at least, because waiting moves people forward.
        now = (self._changes.count, int(monotonic()))
        if now != self._known:
            self._ordered = self._order(list(self._waiters.values()))
            self._allotment = allot(self._ordered, self._loads(), self.rules)
            self._known = now

    def _order(self, waiters: list[Waiter]) -> list[Waiter]:
        held = Counter(session.user for session in self._sessions() if session.state in HELD)
        return in_order(waiters, held, self._weight, time())


def _asked(waiter: Waiter) -> tuple[object, ...]:
    return waiter.kind, waiter.memory_bytes, waiter.wish, waiter.has_lease


def _how_many(waiter: Waiter) -> tuple[object, ...]:
    return waiter.kind, waiter.wish.devices, waiter.wish.sessions, waiter.has_lease


@contextmanager
def _recorded_if_possible() -> Iterator[None]:
    """Go on where the disk is full: what is lost if the gateway ends then is an order, and not who waits."""
    try:
        yield
    except sqlite3.Error as error:
        log.error("the queue cannot be recorded: %s", error)
