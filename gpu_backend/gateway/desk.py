"""The desk: what a user asks of the pool, and the one answer to it, within the time that is promised."""

from __future__ import annotations

from time import monotonic

from msgspec.structs import replace

from gpu_backend.gateway.directory import User
from gpu_backend.gateway.entitlements import refuse_wish
from gpu_backend.gateway.gathering import Gathering
from gpu_backend.gateway.ledger import Ledger
from gpu_backend.gateway.opening import Asker, Opening
from gpu_backend.gateway.sessions import Sessions
from gpu_backend.gateway.settings import GatewaySettings
from gpu_backend.gateway.showing import Showing
from gpu_backend.gateway.tickets import denied
from gpu_backend.lifecycle import events as ev
from gpu_backend.lifecycle.states import HELD, Session, SessionState
from gpu_backend.wire.channels import MOST_NAME, OpenChannel
from gpu_backend.wire.control import (
    AskPool,
    AskUsage,
    CloseSession,
    Denied,
    Done,
    FromGateway,
    LeaveQueue,
    OpenSession,
    RenewTicket,
    RestartSession,
    SetWish,
    Ticket,
)
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.groups import JoinGroup

#: What of a wish counts when a session is opened, and never again.
_SETTLED = ("affinity", "anti_affinity", "exclusion", "is_whole", "devices", "sessions")
Request = (
    OpenSession | RenewTicket | RestartSession | CloseSession | SetWish | LeaveQueue | OpenChannel | JoinGroup | AskPool
    | AskUsage
)  # fmt: skip


class Desk:
    """Answers requests whose sender is known."""

    def __init__(
        self, settings: GatewaySettings, sessions: Sessions, ledger: Ledger, opening: Opening, showing: Showing
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._ledger = ledger
        self._opening = opening
        self._showing = showing
        self._gathering = Gathering(sessions)

    async def answer(self, user: User, key: str, message: Request) -> FromGateway:
        """Return the answer to ``message``, which came from ``user`` with the public key ``key``."""
        asker = Asker(user, key, monotonic() + self._settings.answer_seconds)
        match message:
            case OpenSession():
                return await self._opening.open(asker, message)
            case RenewTicket():
                return await self._opening.renew(asker, message)
            case RestartSession():
                return await self._opening.restart(asker, message)
            case CloseSession():
                return self._close(user, message)
            case SetWish():
                return self._set_wish(user, message)
            case LeaveQueue():
                self._opening.leave(key, message.waiter)
                return Done(message.request)
            case OpenChannel():
                return self._open_channel(key, message)
            case JoinGroup():
                return await self._join_group(asker, message)
            case AskPool():
                return self._showing.pool(user, message)
            case AskUsage():
                return await self._showing.usage(user, message)

    def take_back(self, message: Request, answer: FromGateway) -> None:
        """Close what was opened for somebody who did not wait for the answer, and knows no name for it."""
        if isinstance(message, OpenSession) and not message.waiter and isinstance(answer, Ticket):
            for ticket in (answer, *answer.beside):
                self._sessions.apply(ev.CloseWanted(ticket.session, "Whoever asked for it did not wait for it."))

    def _close(self, user: User, message: CloseSession) -> FromGateway:
        session = self._sessions.all.get(message.session)
        if session is not None and (session.user == user.name or user.is_operator):
            by = "its owner" if session.user == user.name else "the pool's operator"
            self._sessions.apply(ev.CloseWanted(session.id, f"It was closed by {by}."))
            self._opening.close_beside(session)
        return Done(message.request)

    def _open_channel(self, key: str, message: OpenChannel) -> FromGateway:
        session, to = self._serving(key, message.session), self._serving(key, message.to)
        if session is None or to is None or session is to:
            why = "One of the two has no executor, or is no session of yours."
            return Denied(message.request, RefusalCode.UNKNOWN_SESSION, why)
        if not 0 < len(message.channel) <= MOST_NAME:
            return Denied(message.request, RefusalCode.MALFORMED, f"A channel's name has 1 to {MOST_NAME} characters.")
        if not self._sessions.dial(session, to, message.channel):
            return Denied(message.request, RefusalCode.STARTING, f"The node {session.node} cannot be reached now.")
        return Done(message.request)

    async def _join_group(self, asker: Asker, message: JoinGroup) -> FromGateway:
        if message.leaves:  # whatever became of the session by now
            return self._gathering.leave(asker.key, message)
        if self._serving(asker.key, message.session) is None:
            why = "The session that is to be in the group has no executor, or is none of yours."
            return Denied(message.request, RefusalCode.UNKNOWN_SESSION, why)
        return await self._gathering.join(asker, message)

    def _serving(self, key: str, name: str) -> Session | None:
        session = self._sessions.all.get(name)
        is_served = session is not None and session.state is SessionState.SERVING and session.client_key == key
        return session if is_served else None

    def _set_wish(self, user: User, message: SetWish) -> FromGateway:
        session = self._sessions.all.get(message.session)
        if session is None or session.state not in HELD or not (session.user == user.name or user.is_operator):
            return Denied(
                message.request, RefusalCode.UNKNOWN_SESSION,
                "The pool has no such session of yours: it has ended, or never was.", "Restart the kernel.",
            )  # fmt: skip
        refusal = refuse_wish(message.wish, self._ledger.rights(session.user))
        if refusal is not None:
            return denied(message.request, refusal)
        # Where it is was settled when it was opened; how it shares can change.
        settled = {name: getattr(session.wish, name) for name in _SETTLED}
        self._sessions.apply(ev.WishChanged(session.id, replace(message.wish, **settled)))
        return Done(message.request)
