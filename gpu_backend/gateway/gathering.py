"""Groups of processes in action: who waits for the others is told when all have come, and channels are opened then."""

from __future__ import annotations

from time import monotonic

from gpu_backend.gateway.changes import Changes
from gpu_backend.gateway.groups import Groups, Opening
from gpu_backend.gateway.opening import Asker
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.gateway.sessions import Sessions
from gpu_backend.gateway.tickets import denied
from gpu_backend.lifecycle.states import SessionState
from gpu_backend.wire.control import FromGateway
from gpu_backend.wire.groups import Group, JoinGroup

__all__ = ["Gathering"]


class Gathering:
    """Answers processes that come together. Nothing of it is kept: who still waits after a restart asks again."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._groups = Groups(self._is_serving)
        self._changes = Changes()

    async def join(self, asker: Asker, message: JoinGroup) -> FromGateway:
        """Return the answer to ``message``, about a session of the asker's: at once, or when the last one has come."""
        outcome = self._groups.join(asker.key, message, monotonic())
        if isinstance(outcome, Refusal):
            return denied(message.request, outcome)
        for opening in outcome.openings:
            self._open(opening)
        if outcome.missing:
            await self._changes.wait(asker.remaining)
            known = self._groups.known(asker.key, message)
            missing = () if known is not None else self._groups.missing(asker.key, message)
            return Group(message.request, missing, known.channels if known is not None else ())
        self._changes.tell()
        return Group(message.request, (), outcome.channels)

    def _open(self, opening: Opening) -> None:
        """Have the node told that is to open a channel; who waits for one hears what came of it from its executor."""
        by, to = self._sessions.all.get(opening.by), self._sessions.all.get(opening.to)
        if by is not None and to is not None:
            self._sessions.dial(by, to, opening.channel)

    def _is_serving(self, name: str) -> bool:
        session = self._sessions.all.get(name)
        return session is not None and session.state is SessionState.SERVING
