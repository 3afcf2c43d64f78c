"""Who is entitled to what, and what they have used: records, books and the last reports, put together."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from time import monotonic

from msgspec.structs import replace

from gpu_backend.gateway.accounts import Accounts, Owned, Reading
from gpu_backend.gateway.admission import PERIODS, Account, accounts_of, is_over_quota, period_start
from gpu_backend.gateway.amounts import memory_in_words
from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.entitlements import Entitlements, Quota, Rights
from gpu_backend.gateway.loads import Mix, mix_of
from gpu_backend.gateway.pool_shares import PoolShares
from gpu_backend.gateway.rates import Rates
from gpu_backend.gateway.seats import Seat
from gpu_backend.lifecycle.states import HELD, Session, SessionState
from gpu_backend.wire.control import Booked, ExecutorReport, NodeReport, Terms, Usage
from gpu_backend.wire.memory_rules import REST_OF_QUOTA

log = logging.getLogger("gateway.ledger")

#: For how long a sum from the books is taken as it was, seconds.
_FRESH_SECONDS = 1.0


class Ledger:
    """Answers what a user may have and has had. Writes what the nodes report into the books as it comes."""

    def __init__(
        self,
        directory: Directory,
        accounts: Accounts,
        defaults: Entitlements,
        default_memory_bytes: int = 0,
        steered_policies: frozenset[str] = frozenset(),
    ) -> None:
        """Use these records and books; ``defaults`` hold the quotas and rights of whom nothing is set for.

        Devices under ``steered_policies`` divide by weights.
        """
        self._steered = steered_policies
        self._default_memory_bytes = default_memory_bytes
        self._directory = directory
        self.accounts = accounts
        self._defaults = defaults
        self._entitlements: tuple[int, Entitlements] | None = None
        self._spent: dict[tuple[str, str], tuple[float, date, dict[str, float]]] = {}
        self._reports: dict[tuple[str, int], ExecutorReport] = {}
        self._earlier: dict[tuple[str, int], Usage] = {}
        self.rates = Rates()
        #: What part of each device its users are to have, so that their share is of the pool.
        self.pool = PoolShares()
        #: GPU seconds of every user, of all time.
        self.gpu_seconds = accounts.totals()

    # --- what is set --------------------------------------------------------------------------------------------------

    @property
    def entitlements(self) -> Entitlements:
        """All that the operator has set, as it is now."""
        version = self._directory.version()
        if self._entitlements is None or self._entitlements[0] != version:
            defaults = self._defaults
            now = Entitlements(
                defaults.user_quota, defaults.group_quota, defaults.default_rights,
                self._directory.groups(), self._directory.entitlements(),
            )  # fmt: skip
            self._entitlements = (version, now)
        return self._entitlements[1]

    def accounts_of(self, user: str) -> list[Account]:
        """Return the accounts that sessions of ``user`` count against."""
        entitlements = self.entitlements
        group = entitlements.group_of(user)
        spent = {"user": self._spent_by("user", user, entitlements.quota("user", user))}
        if group:
            spent["group"] = self._spent_by("group", group, entitlements.quota("group", group))
        return accounts_of(user, entitlements, spent)

    def members(self, group: str) -> frozenset[str]:
        """Return the users of ``group`` whose sessions are in it: who has used up their GPU time is in another."""
        in_it = (user for user, named in self.entitlements.groups.items() if named == group)
        return frozenset(user for user in in_it if not self.is_over_quota(user))

    def is_over_quota(self, user: str) -> bool:
        """Tell whether the GPU time of ``user`` or their group is used up."""
        return is_over_quota(self.accounts_of(user))

    def terms(self, session: Session) -> Terms:
        """Return a session's present part in the sharing of its device, by what its user has of the others."""
        terms = self._terms_of_pool(session)
        by = self.pool.weights((session.node, session.ordinal), session.user, terms.group)
        return replace(terms, user_weight=terms.user_weight * by.user, group_weight=terms.group_weight * by.group)

    def _terms_of_pool(self, session: Session) -> Terms:
        return self.entitlements.terms(session.user, session.wish, self.is_over_quota(session.user))

    def memory_rule(self, session: Session) -> str:
        """Return whose limit a session's memory limit is, in words for its user; "" if it has none."""
        if not session.memory_limit_bytes:
            return ""
        is_default = session.memory_limit_bytes == self._default_memory_bytes
        rule = "the pool's operator gives that to a session that asks for none" if is_default else "it asked for that"
        if not session.has_promise:
            rule = REST_OF_QUOTA
        of_all = self.entitlements.quota("user", session.user).memory_bytes
        return f"{rule}; all your sessions together may hold {memory_in_words(of_all)}" if of_all else rule

    def rights(self, user: str) -> Rights:
        """Return the most that ``user`` may ask for a session."""
        return self.entitlements.rights(user)

    # --- what was used ------------------------------------------------------------------------------------------------

    def note(self, session: Session, now: float) -> None:
        """Enter a session, or its end. ``now`` is in seconds since 1970."""
        self.accounts.note(self._owned(session), now if session.state is SessionState.CLOSED else None)

    def hear(self, node: str, report: NodeReport, sessions: Mapping[str, Session]) -> None:
        """Book what the executors of a node have used, and take in what their arbiters have counted."""
        now = monotonic()
        there: dict[int, list[tuple[Seat, Booked]]] = {device.ordinal: [] for device in report.devices}
        for executor in report.executors:
            session = sessions.get(executor.session)
            # And not where it was, or is said to be; nor for ever, where a node goes on telling of what was closed.
            is_there = session is not None and session.node == node and session.state is not SessionState.CLOSED
            ordinals, books = (executor.ordinal, *executor.others), (executor.booked, *executor.others_booked)
            for ordinal, booked in dict(
                zip(ordinals, books, strict=False)
            ).items():  # a device that is told twice is one
                if session is not None and is_there and ordinal in there and booked.at_seconds:
                    there[ordinal].append((self._seat(session, executor.epoch), booked))
        for device in report.devices:
            seats = [seat for seat, _ in there[device.ordinal]]
            rows = [_row(booked) for _, booked in there[device.ordinal]]
            self.pool.hear((node, device.ordinal), seats, rows, device.policy in self._steered)
        for executor in report.executors:
            self._reports[executor.session, executor.epoch] = executor
            self.rates.note(executor.session, executor.epoch, executor.usage.gpu_seconds, now)
            for name, booked in _books_by_device(executor):
                self.rates.note(name, executor.epoch, booked.used_seconds, now)
        self.book(((one.session, one.epoch, one.usage) for one in report.executors), sessions)

    def book(self, used: Iterable[tuple[str, int, Usage]], sessions: Mapping[str, Session]) -> None:
        """Book usage by session and epoch; what a session of nobody used is nobody's."""
        readings = [
            Reading(self._owned(session), epoch, usage)
            for name, epoch, usage in used
            if (session := sessions.get(name)) is not None and self._earlier.get((name, epoch)) != usage
        ]
        if not readings:
            return
        try:
            booked = self.accounts.book(readings, today())
        except sqlite3.Error as error:  # a full disk, say: the next report brings the same usage again
            log.error("usage could not be booked: %s", error)
            return
        for user, seconds in booked.items():
            self.gpu_seconds[user] = self.gpu_seconds.get(user, 0.0) + seconds
        for reading in readings:
            self._earlier[reading.owned.session, reading.epoch] = reading.usage

    def settle_shares(self, nodes: Iterable[str]) -> None:
        """Divide the pool anew among those who compute on ``nodes``, which are all that can be reached."""
        reached = frozenset(nodes)
        self.pool.forget(device for device in self.pool.devices if device[0] not in reached)
        self.pool.settle()

    def mixes(self) -> dict[str, Mix]:
        """Return what each session uses of its device, by the classes of its ops and how busy it is."""
        now = monotonic()
        return {
            name: mix_of(report.usage.by_class, self.rates.busy(name, epoch, now))
            for (name, epoch), report in self._reports.items()
        }

    def last_report(self, session: Session) -> ExecutorReport | None:
        """Return what the executor of a session's present epoch last said."""
        return self._reports.get((session.id, session.epoch))

    def is_unused(self, session: Session) -> bool:
        """Tell whether it is known that nobody came for ``session``; it is not before its executor was heard."""
        report = self.last_report(session)
        is_known = session.state is SessionState.OPENING or (report is not None and not report.usage.received_bytes)
        return is_known and session.epoch == 1

    def used_by_device(self, session: Session) -> list[tuple[int, int, float]]:
        """Return the number of each device of ``session``, how many bytes it holds there, how busy it keeps it.

        In equal parts where that is not told of each: by an agent of an older version, or without an arbiter.
        """
        report, now = self.last_report(session), monotonic()
        if report is None:
            return []
        count = len(session.ordinals)
        held = report.held if len(report.held) == count else (report.used_bytes // count,) * count
        names = [name for name, _ in _books_by_device(report)]
        busy = [self.rates.busy(name, session.epoch, now) for name in names]
        if len(names) != count:
            busy = [self.rates.busy(session.id, session.epoch, now, count)] * count
        return list(zip(session.ordinals, held, busy, strict=True))

    def busy(self, session: Session) -> float:
        """Return the part of its devices' time that ``session`` had in the last seconds, 0 to 1."""
        parts = [part for _, _, part in self.used_by_device(session)]
        return sum(parts) / len(parts) if parts else 0.0

    def forget(self, sessions: Mapping[str, Session]) -> None:
        """Drop what is remembered of sessions that are over."""
        held = {(one.id, one.epoch) for one in sessions.values() if one.state in HELD}
        for known in (self._reports, self._earlier):
            for key in [key for key in known if key not in held and (key[0], key[1] + 1) not in held]:
                del known[key]
        self.rates.forget(monotonic())

    # --- shared steps -------------------------------------------------------------------------------------------------

    def _seat(self, session: Session, epoch: int) -> Seat:
        terms = self._terms_of_pool(session)
        return Seat(f"{session.id}/{epoch}", session.user, terms.group, terms.user_weight, terms.group_weight)

    def _owned(self, session: Session) -> Owned:
        return Owned(
            session.id, session.user, self.entitlements.group_of(session.user), session.label, session.opened_at
        )

    def _spent_by(self, holder: str, name: str, quota: Quota) -> dict[str, float]:
        limited = [period for period in PERIODS if quota.gpu_seconds[period]]
        known, now, day = self._spent.get((holder, name)), monotonic(), today()
        if known is not None and now - known[0] < _FRESH_SECONDS and known[1] == day and set(limited) <= set(known[2]):
            return known[2]
        spent = {period: self.accounts.spent(holder, name, period_start(day, period)) for period in limited}
        self._spent[holder, name] = (now, day, spent)
        return spent


def _books_by_device(report: ExecutorReport) -> list[tuple[str, Booked]]:
    """Return what is on the books of each of several devices; of one alone it is known without, or of none yet."""
    books = (report.booked, *report.others_booked)
    if not report.others or not all(one.at_seconds for one in books):
        return []
    return [(f"{report.session}, device {place}", one) for place, one in enumerate(books)]


def _row(booked: Booked) -> tuple[float, float, float, float]:
    return booked.used_seconds, booked.wanted_seconds, booked.unused_seconds, booked.at_seconds


def today() -> date:
    """Return the present day at the pool's place."""
    return datetime.now().astimezone().date()
