"""What users are shown of the pool: their own in detail, of others only sums; operators see whose it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from time import time

import msgspec

from gpu_backend.gateway.accounts import GROUPINGS
from gpu_backend.gateway.admission import Account
from gpu_backend.gateway.directory import User
from gpu_backend.gateway.ledger import Ledger
from gpu_backend.gateway.loads import DeviceLoad
from gpu_backend.gateway.placement import placeable
from gpu_backend.gateway.queue import Waiter
from gpu_backend.gateway.sessions import Sessions
from gpu_backend.gateway.settings import GatewaySettings
from gpu_backend.gateway.several import most_together
from gpu_backend.lifecycle.states import HELD, Session, SessionState
from gpu_backend.wire.control import AskPool, AskUsage, Denied, FromGateway
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.views import (
    DeviceView,
    NodeView,
    PoolView,
    QuotaView,
    SessionView,
    UsageRow,
    UsageView,
    WaiterView,
)

#: Most rows of usage in one answer; the rest, which used least, is summed up.
_MOST_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Showing:
    """Makes the answers for people."""

    settings: GatewaySettings
    sessions: Sessions
    ledger: Ledger
    #: The devices that can be reached, with their load.
    loads: Callable[[], list[DeviceLoad]]
    #: Everybody who waits, in order.
    waiting: Callable[[], list[Waiter]]
    #: Every machine, of which these sessions are on record.
    nodes: Callable[[Iterable[Session]], tuple[NodeView, ...]]
    #: Seconds since 1970.
    started_at: float

    def pool(self, asker: User, message: AskPool) -> PoolView:
        """Return the pool as ``asker`` may see it."""
        sessions = [session for session in self.sessions.all.values() if session.state is not SessionState.CLOSED]
        used: Counter[tuple[str, int]] = Counter()
        busy: defaultdict[tuple[str, int], float] = defaultdict(float)
        for session in sessions:
            for ordinal, held, part in self.ledger.used_by_device(session):
                used[session.node, ordinal] += held
                busy[session.node, ordinal] += part
        loads = self.loads()
        devices = tuple(
            DeviceView(
                d.node, d.ordinal, d.kind, d.name, d.total_bytes, d.sessions, d.capacity,
                used[d.node, d.ordinal], min(1.0, busy[d.node, d.ordinal]), d.policy, d.wall, d.unseen,
                d.space, d.ailment,
            )
            for d in loads
        )  # fmt: skip
        settings = self.settings
        return PoolView(
            message.request, settings.pool, settings.version, asker.name, self.started_at, devices,
            tuple(self._session(session, asker) for session in sessions), self._line(asker), self.nodes(sessions),
            settings.engine, self._most_devices(loads),
        )  # fmt: skip

    def _most_devices(self, loads: list[DeviceLoad]) -> int:
        possible = placeable(loads, self.settings.needs_walls)
        able = [one for one in possible if one.capacity and not (one.ailment or one.drained)]
        return most_together(able, self.settings.gives_several_gpus)

    async def usage(self, asker: User, message: AskUsage) -> FromGateway:
        """Return what was used, as ``asker`` may see it, and the limits that hold for them."""
        if message.by not in GROUPINGS or not _is_day(message.since):
            text = f"Usage is told by {', '.join(GROUPINGS)} and since a day such as 2026-01-31."
            return Denied(message.request, RefusalCode.MALFORMED, text)
        rows = visible(await self.ledger.accounts.summary_aside(message.by, message.since), asker, message.by)
        held = [session for session in self.sessions.all.values() if session.state in HELD]
        quotas = tuple(limit for account in self.ledger.accounts_of(asker.name) for limit in limits_of(account, held))
        return UsageView(message.request, asker.name, message.by, message.since, tuple(rows), quotas)

    def _session(self, session: Session, asker: User) -> SessionView:
        mine = session.user == asker.name
        view = SessionView(
            "", "", "", str(session.state), session.epoch, session.node, session.ordinal, session.memory_limit_bytes,
            session.opened_at, mine, others=session.ordinals[1:],
        )  # fmt: skip
        if not (mine or asker.is_operator):
            return view
        report = self.ledger.last_report(session)
        usage = report.usage if report is not None else None
        return msgspec.structs.replace(
            view,
            session=session.id,
            user=session.user,
            label=session.label if mine else "",
            kind=self.ledger.terms(session).kind,
            used_bytes=report.used_bytes if report is not None else 0,
            peak_bytes=usage.peak_bytes if usage is not None else 0,
            gpu_seconds=usage.gpu_seconds if usage is not None else 0.0,
            moved_bytes=usage.received_bytes + usage.sent_bytes if usage is not None else 0,
            busy=self.ledger.busy(session),
            is_over_quota=self.ledger.is_over_quota(session.user),
            placed=session.placed,
        )

    def _line(self, asker: User) -> tuple[WaiterView, ...]:
        now = time()
        return tuple(
            WaiterView(
                place, one.user if one.user == asker.name or asker.is_operator else "",
                one.label if one.user == asker.name else "", max(0.0, now - one.since), one.user == asker.name,
            )
            for place, one in enumerate(self.waiting(), 1)
        )  # fmt: skip


def visible(rows: Sequence[UsageRow], asker: User, by: str) -> list[UsageRow]:
    """Return ``rows`` as ``asker`` may see them.

    Their own as they are. To an operator, other users' with name and session but without notebook; to everybody else
    their sum, day by day where days are told apart.
    """
    if by == "group" and not asker.is_operator:
        return _summed(rows, lambda row: row.day)
    own = [row for row in rows if row.user == asker.name]
    others = [row for row in rows if row.user != asker.name]
    if not asker.is_operator:
        others = _summed(others, lambda row: row.op_class if by == "class" else row.day)
    elif by == "notebook":
        others = _summed(others, lambda row: row.user)
    else:
        others = [msgspec.structs.replace(row, notebook="") for row in others]
    shown = sorted([*own, *others], key=lambda row: -row.gpu_seconds)
    return [*shown[:_MOST_ROWS], *_summed(shown[_MOST_ROWS:], lambda row: row.op_class)]


def limits_of(account: Account, held: Iterable[Session]) -> list[QuotaView]:
    """Return the limits of an account with how much of each is used."""
    theirs = [session for session in held if session.user in account.members]
    memory = sum(session.may_hold_bytes for session in theirs)
    quota = account.quota
    found = [
        QuotaView(account.whose, "sessions", len(theirs), quota.sessions),
        QuotaView(account.whose, "memory bytes", memory, quota.memory_bytes),
        *(
            QuotaView(account.whose, f"GPU seconds per {period}", account.spent.get(period, 0.0), limit)
            for period, limit in quota.gpu_seconds.items()
        ),
    ]
    return [one for one in found if one.limit]


def _summed(rows: Sequence[UsageRow], key: Callable[[UsageRow], str]) -> list[UsageRow]:
    sums: dict[str, UsageRow] = {}
    for row in rows:
        name = key(row)
        before = sums.get(name)
        named = row.user if name == row.user else ""
        first = UsageRow(named, row.group if named else "", "", "", row.day, 0, 0.0, 0, 0, 0, row.op_class)
        before = before if before is not None else first
        sums[name] = msgspec.structs.replace(
            before,
            sessions=before.sessions + row.sessions,
            gpu_seconds=before.gpu_seconds + row.gpu_seconds,
            peak_bytes=max(before.peak_bytes, row.peak_bytes),
            received_bytes=before.received_bytes + row.received_bytes,
            sent_bytes=before.sent_bytes + row.sent_bytes,
        )
    return list(sums.values())


def _is_day(text: str) -> bool:
    try:
        return not text or date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
