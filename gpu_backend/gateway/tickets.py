"""The tickets of sessions that were opened: of one, or of all that were asked for at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from gpu_backend.gateway.nodes import Nodes
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.gateway.sessions import Sessions
from gpu_backend.lifecycle import events as ev
from gpu_backend.lifecycle.states import Session, SessionState
from gpu_backend.wire.control import Denied, FromGateway, OpenSession, Ticket
from gpu_backend.wire.errors import RefusalCode

_STILL_STARTING = "Its executor is still starting; that takes some seconds when none is kept ready."
#: For a notebook as for a program; what the operator has set (executor_command, executor_ports) only they can mend.
_AGAIN = "Restart the kernel, or run the program again. If that does not help, show this to the pool's operator."
_IN_USE = "Not all are there that were asked for together, and others of them are in use."
_NOT_ALL = "It was asked for together with others, and not all of them are there."


class Tickets:
    """Hands them out."""

    def __init__(self, nodes: Nodes, sessions: Sessions, is_unused: Callable[[Session], bool]) -> None:
        """Tell by ``is_unused`` for which sessions nobody has come: they may be closed with others."""
        self._nodes = nodes
        self._sessions = sessions
        self._is_unused = is_unused

    def opened_for(self, key: str, waiter: str) -> list[Session]:
        """Return the sessions that somebody was given under the name that they ask with, the first first."""
        if not waiter:
            return []
        opened = [one for one in self._sessions.held() if (one.client_key, one.waiter) == (key, waiter)]
        return sorted(opened, key=order)

    async def again(self, opened: Sequence[Session], message: OpenSession, seconds: float) -> FromGateway | None:
        """Return the tickets of what was ``opened`` for several at once; None, and nothing is kept, if one is gone.

        The question may be an old one that comes late: what somebody has come for since is not given up for it.
        """
        if len(opened) == message.wish.sessions and all(one.state is not SessionState.LOST for one in opened):
            return await self.of_all([one.id for one in opened], message, seconds)
        if not all(self._is_unused(one) for one in opened):
            return Denied(message.request, RefusalCode.ENDED, _IN_USE, "Ask under another name.")
        self.close(one.id for one in opened)
        return None

    async def of_all(self, opened: Sequence[str], message: OpenSession, seconds: float) -> FromGateway:
        """Return the tickets of sessions once all are ready; if one of them cannot be had, none is kept."""
        outcomes = await asyncio.gather(*[self._outcome(one, seconds) for one in opened])
        failed = next((one for one in outcomes if isinstance(one, ev.Refuse)), None)
        if failed is not None:
            self.close(one for one in opened if self._is_unused(self._sessions.all[one]))
            return self.of(message.request, failed, RefusalCode.LAUNCH_FAILED)
        if None in outcomes and not message.waiter:
            # The asker knows no name by which to ask for the sessions again, so nobody could ever use them.
            self.close(opened, "It was not ready in time.")
        tickets: list[Ticket] = []
        for outcome in outcomes:
            answer = self.of(message.request, outcome, RefusalCode.LAUNCH_FAILED)
            if not isinstance(answer, Ticket):
                return answer
            tickets.append(answer)
        return replace(tickets[0], beside=tuple(tickets[1:]))

    def of(self, request: int, outcome: Session | ev.Refuse | None, code: RefusalCode) -> Ticket | Denied:
        """Return the ticket of a session, or ``code`` with the reason why there is none; None is not yet."""
        if outcome is None:
            return Denied(request, RefusalCode.STARTING, _STILL_STARTING, "Try again in some seconds.")
        if isinstance(outcome, ev.Refuse):
            if code is RefusalCode.ENDED:
                return denied(request, Refusal(code, outcome.reason or "It has ended.", ""))
            reason = f"The session cannot be had: {outcome.reason}"
            return denied(request, Refusal(code, reason, _AGAIN))
        device = self._nodes.device(outcome.node, outcome.ordinal)
        return Ticket(
            request, outcome.id, outcome.epoch, outcome.endpoints, outcome.secret, outcome.certificate,
            device.name if device is not None else outcome.device_kind, outcome.device_kind,
            outcome.memory_limit_bytes, outcome.lease_seconds, self._sessions.eviction(outcome),
        )  # fmt: skip

    def close(self, sessions: Iterable[str], reason: str = _NOT_ALL) -> None:
        """Close ``sessions``, as far as they are there."""
        for session in sessions:
            self._sessions.apply(ev.CloseWanted(session, reason))

    async def _outcome(self, session: str, seconds: float) -> Session | ev.Refuse | None:
        known = self._sessions.all[session]
        if known.state is SessionState.LOST:  # since it was looked at, and nobody has come for it yet
            return ev.Refuse(session, known.reason)
        return await self._sessions.wait_for(ev.TicketWanted(session, None), session, seconds)


def order(session: Session) -> tuple[float, str]:
    """Return what sorts sessions that were opened under one name: the first is the one whose ticket has the others."""
    return session.opened_at, session.id


def denied(request: int, refusal: Refusal) -> Denied:
    """Return the answer that says no."""
    return Denied(request, refusal.code, refusal.message, refusal.remedy)
