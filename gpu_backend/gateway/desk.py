"""The desk: what a user asks of the pool, and the one answer to it, within the time that is promised."""

from __future__ import annotations

import asyncio
import secrets
from time import monotonic, time

from gpu_backend.gateway.admission import Refusal, admit
from gpu_backend.gateway.directory import User
from gpu_backend.gateway.nodes import Nodes
from gpu_backend.gateway.placement import DeviceLoad, place, with_sessions
from gpu_backend.gateway.sessions import Sessions
from gpu_backend.gateway.settings import GatewaySettings
from gpu_backend.lifecycle import events as ev
from gpu_backend.lifecycle.states import HELD, Session, SessionState
from gpu_backend.wire.control import (
    AskPool,
    CloseSession,
    Denied,
    DeviceView,
    Done,
    FromGateway,
    OpenSession,
    PoolView,
    RenewTicket,
    RestartSession,
    SessionView,
    Ticket,
)
from gpu_backend.wire.errors import RefusalCode

Request = OpenSession | RenewTicket | RestartSession | CloseSession | AskPool

_MOST_BYTES = 1 << 60
_LONGEST_LABEL = 200
_STILL_STARTING = "Its executor is still starting; that takes some seconds when none is kept ready."


class Desk:
    """Answers requests whose sender is known."""

    def __init__(self, settings: GatewaySettings, nodes: Nodes, sessions: Sessions) -> None:
        self._settings = settings
        self._nodes = nodes
        self._sessions = sessions
        self._started_at = time()

    async def answer(self, user: User, key: str, message: Request) -> FromGateway:
        """Return the answer to ``message``, which came from ``user`` with the public key ``key``."""
        deadline = monotonic() + self._settings.answer_seconds
        match message:
            case OpenSession():
                return await self._open(user, key, message, deadline)
            case RenewTicket():
                return await self._renew(user, key, message, deadline)
            case RestartSession():
                return await self._restart(user, key, message, deadline)
            case CloseSession():
                return self._close(user, message)
            case AskPool():
                return self._view(user, message)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _open(self, user: User, key: str, message: OpenSession, deadline: float) -> FromGateway:
        if not 0 <= message.memory_bytes <= _MOST_BYTES:
            return Denied(message.request, RefusalCode.MALFORMED, f"{message.memory_bytes} is no number of bytes.")
        memory_bytes = message.memory_bytes or self._settings.default_memory_bytes
        await self._some_node(deadline)
        refusal = admit(user.name, memory_bytes, self._sessions.all.values(), self._settings.limits)
        if refusal is not None:
            return _denied(message.request, refusal)
        spot = place(self._loads(), message.device_kind[:16], memory_bytes)
        if isinstance(spot, Refusal):
            return _denied(message.request, spot)
        session = secrets.token_hex(8)
        admitted = ev.SessionAdmitted(
            session=session, user=user.name, client_key=key, label=_readable(message.label), place=_place(spot),
            memory_limit_bytes=memory_bytes, lease_seconds=self._settings.lease_seconds, opened_at=time(),
        )  # fmt: skip
        outcome = await self._sessions.wait_for(admitted, session, deadline - monotonic())
        if outcome is None:
            # The asker does not know the session's name yet, so nobody could ever use it.
            self._sessions.apply(ev.CloseWanted(session, "It was not ready in time."))
        return self._ticket(message.request, outcome, RefusalCode.LAUNCH_FAILED)

    async def _renew(self, user: User, key: str, message: RenewTicket, deadline: float) -> FromGateway:
        session = self._owned(message, user, key)
        if isinstance(session, Denied):
            return session
        spot: ev.Place | None = None
        if session.state is SessionState.LOST:
            await self._some_node(deadline)
            found = place(self._loads(), session.device_kind, session.memory_limit_bytes)
            if isinstance(found, Refusal):
                return _denied(message.request, found)
            spot = _place(found)
        wanted = ev.TicketWanted(session.id, spot)
        return await self._again(message.request, wanted, deadline)

    async def _restart(self, user: User, key: str, message: RestartSession, deadline: float) -> FromGateway:
        session = self._owned(message, user, key)
        if isinstance(session, Denied):
            return session
        await self._some_node(deadline)
        spot = ev.Place(session.node, session.ordinal, session.device_kind)
        if session.state is SessionState.LOST or session.node not in self._nodes.names():
            found = place(self._loads(), session.device_kind, session.memory_limit_bytes)
            if isinstance(found, Refusal):
                return _denied(message.request, found)
            spot = _place(found)
        wanted = ev.RestartWanted(session.id, spot)
        return await self._again(message.request, wanted, deadline)

    async def _again(self, request: int, wanted: ev.TicketWanted | ev.RestartWanted, deadline: float) -> FromGateway:
        outcome = await self._sessions.wait_for(wanted, wanted.session, deadline - monotonic())
        held = self._sessions.all[wanted.session].state in HELD
        return self._ticket(request, outcome, RefusalCode.LAUNCH_FAILED if held else RefusalCode.ENDED)

    def _close(self, user: User, message: CloseSession) -> FromGateway:
        session = self._sessions.all.get(message.session)
        if session is not None and (session.user == user.name or user.is_operator):
            by = "its owner" if session.user == user.name else "the pool's operator"
            self._sessions.apply(ev.CloseWanted(session.id, f"It was closed by {by}."))
        return Done(message.request)

    def _view(self, user: User, message: AskPool) -> FromGateway:
        sessions = self._sessions.all.values()
        devices = tuple(
            DeviceView(d.node, d.ordinal, d.kind, d.name, d.total_bytes, d.sessions, d.capacity, d.policy)
            for d in with_sessions(self._nodes.devices(), sessions)
        )
        shown = tuple(_view(s, user) for s in sessions if s.state is not SessionState.CLOSED)
        settings = self._settings
        return PoolView(message.request, settings.pool, settings.version, user.name, self._started_at, devices, shown)

    # --- shared steps -------------------------------------------------------------------------------------------------

    async def _some_node(self, deadline: float) -> None:
        """Give agents the time to be heard: just after a start, nobody has been yet."""
        while not self._nodes.names() and (remaining := deadline - monotonic()) > 0:
            try:
                await asyncio.wait_for(self._nodes.next_report(), remaining)
            except TimeoutError:
                return

    def _loads(self) -> list[DeviceLoad]:
        return with_sessions(self._nodes.devices(), self._sessions.all.values())

    def _owned(self, message: RenewTicket | RestartSession, user: User, key: str) -> Session | Denied:
        session = self._sessions.all.get(message.session)
        if session is None or session.user != user.name:
            return Denied(
                message.request, RefusalCode.UNKNOWN_SESSION,
                "The pool has no such session of yours: it has ended, or never was.", "Restart the kernel.",
            )  # fmt: skip
        if session.client_key != key:
            return Denied(
                message.request, RefusalCode.NOT_AUTHORIZED, "The session was opened with another key of yours.",
                "Use that key, or restart the kernel for a session of its own.",
            )  # fmt: skip
        return session

    def _ticket(self, request: int, outcome: Session | ev.Refuse | None, code: RefusalCode) -> FromGateway:
        if outcome is None:
            return Denied(request, RefusalCode.STARTING, _STILL_STARTING, "Try again in some seconds.")
        if isinstance(outcome, ev.Refuse):
            return Denied(request, code, f"The session cannot be had: {outcome.reason}", "Restart the kernel.")
        device = self._nodes.device(outcome.node, outcome.ordinal)
        return Ticket(
            request, outcome.id, outcome.epoch, outcome.endpoints, outcome.server_key,
            device.name if device is not None else outcome.device_kind, outcome.device_kind,
            outcome.memory_limit_bytes, outcome.lease_seconds,
        )  # fmt: skip


def _denied(request: int, refusal: Refusal) -> Denied:
    return Denied(request, refusal.code, refusal.message, refusal.remedy)


def _place(device: DeviceLoad) -> ev.Place:
    return ev.Place(device.node, device.ordinal, device.kind)


def _readable(label: str) -> str:
    return "".join(c for c in label[:_LONGEST_LABEL] if c.isprintable())


def _view(session: Session, asker: User) -> SessionView:
    mine = session.user == asker.name
    return SessionView(
        session.id if mine or asker.is_operator else "", session.user if mine or asker.is_operator else "",
        session.label if mine else "", str(session.state), session.epoch, session.node, session.ordinal,
        session.memory_limit_bytes, session.opened_at, mine,
    )  # fmt: skip
