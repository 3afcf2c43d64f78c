"""Groups of processes in action: who waits for the others is told when all have come, and channels are opened then."""

from __future__ import annotations

from collections import Counter
from time import monotonic
from weakref import WeakValueDictionary

from gpu_backend.gateway.changes import Changes
from gpu_backend.gateway.groups import Groups, Opening, Outcome
from gpu_backend.gateway.opening import Asker
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.gateway.sessions import Sessions
from gpu_backend.gateway.tickets import denied
from gpu_backend.lifecycle.states import SessionState
from gpu_backend.wire.control import Done, FromGateway
from gpu_backend.wire.groups import Group, JoinGroup

__all__ = ["MOST_WAITING", "Gathering"]

#: Processes of one key whose answer waits for others at a time; the rest are told at once who is missing. Fewer than a
#: key's requests that may wait, or its sessions could not be renewed or closed meanwhile.
MOST_WAITING = 16


class Gathering:
    """Answers processes that come together. Nothing of it is kept: who still waits after a restart asks again."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._groups = Groups(self._is_serving)
        #: What those wait for who wait for one group, by their key and its name; it goes with the last of them.
        self._news: WeakValueDictionary[tuple[str, str], Changes] = WeakValueDictionary()
        self._waiting: Counter[str] = Counter()

    async def join(self, asker: Asker, message: JoinGroup) -> FromGateway:
        """Return the answer to ``message``, about a session of the asker's: at once, or when the last one has come."""
        outcome = self._groups.join(asker.key, message, monotonic())
        if isinstance(outcome, Refusal):
            return denied(message.request, outcome)
        if outcome.openings:
            for opening in outcome.openings:
                self._open(opening)
            self._tell(asker.key, message)
        elif outcome.missing:
            if self._waiting[asker.key] < MOST_WAITING:
                await self._wait(asker, message)
            outcome = self._groups.known(asker.key, message) or Outcome(self._groups.missing(asker.key, message))
        return Group(message.request, outcome.missing, outcome.channels)

    def leave(self, key: str, message: JoinGroup) -> FromGateway:
        """Forget a process that has given up."""
        self._groups.leave(key, message, monotonic())
        self._tell(key, message)
        return Done(message.request)

    async def _wait(self, asker: Asker, message: JoinGroup) -> None:
        """Wait until it is known what became of a process, or for as long as an answer may take."""
        news = self._news.setdefault((asker.key, message.name), Changes())
        self._waiting[asker.key] += 1
        try:
            while self._groups.known(asker.key, message) is None and asker.remaining > 0:
                await news.wait(asker.remaining)
        finally:
            self._waiting[asker.key] -= 1
            if not self._waiting[asker.key]:
                del self._waiting[asker.key]

    def _tell(self, key: str, message: JoinGroup) -> None:
        if (news := self._news.get((key, message.name))) is not None:
            news.tell()

    def _open(self, opening: Opening) -> None:
        """Have the node told that is to open a channel; who waits for one hears what came of it from its executor."""
        by, to = self._sessions.all.get(opening.by), self._sessions.all.get(opening.to)
        if by is not None and to is not None:
            self._sessions.dial(by, to, opening.channel)

    def _is_serving(self, name: str) -> bool:
        session = self._sessions.all.get(name)
        return session is not None and session.state is SessionState.SERVING
