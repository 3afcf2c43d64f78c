"""Waiting for a place in a full pool: what the user sees meanwhile, and how the wait ends."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from types import TracebackType

from gpu_backend.wire.control import LeaveQueue, OpenSession, Queued, RenewTicket
from gpu_backend.wire.errors import PoolError
from kernelproxy.session import gateway_client
from kernelproxy.session.amounts import seconds_in_words
from kernelproxy.session.notice import Notice
from kernelproxy.session.signs import Sign, Signs
from kernelproxy.settings import ClientSettings

#: How long leaving the queue may take, seconds; a silent waiter is taken to have left anyway.
_FAREWELL_SECONDS = 1.0


class Wait:
    """One wait. Nothing is shown before the first answer that says so; an interrupt leaves the queue."""

    def __init__(self, settings: ClientSettings, request: OpenSession | RenewTicket, signs: Signs) -> None:
        self._settings = settings
        self._request = request
        self._signs = signs
        self._since = self._heard = monotonic()
        self._notice: Notice | None = None
        self._other = signs.withdraw

    def __enter__(self) -> Wait:
        self._signs.withdraw = self._leave_queue
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signs.withdraw = self._other
        self._signs.settle(error)
        waited = _waited(monotonic() - self._since) or "less than a second"
        if kind is None:
            if self._notice is not None:
                self._notice.close(f"A place in the pool was free after {waited}.")
            return
        if self._notice is not None:
            self._notice.close(f"No place in the pool was free: left the queue after {waited}.")
        if not isinstance(error, PoolError):
            self._leave_queue()  # even where no answer came yet: the next one may have been a place

    def _leave_queue(self) -> None:
        if isinstance(self._request, OpenSession):
            with suppress(PoolError):
                leaving = LeaveQueue(0, self._request.waiter)
                gateway_client.request(self._settings, leaving, _FAREWELL_SECONDS)

    @property
    def silent_seconds(self) -> float:
        """How long no answer has come."""
        return monotonic() - self._heard

    @property
    def has_place(self) -> bool:
        """Whether the pool has said that we are in its queue."""
        return self._notice is not None

    def hear(self) -> None:
        """An answer has come, whatever it says."""
        self._heard = monotonic()

    def look(self, what: str) -> None:
        """Tell the user what else there is to wait for, unless they know that they are in the queue."""
        if self._notice is None:
            self._signs.look(self._since, lambda: Sign(what))

    def show(self, queued: Queued) -> None:
        """Tell the user how the wait goes."""
        self.hear()
        if self._notice is None:
            self._notice = self._signs.notices.of_queue()
        self._notice.show(in_words(queued, self._heard - self._since))


def in_words(queued: Queued, waited_seconds: float) -> str:
    """Return what the user is told: what is full, which place, how much longer, and what they can do."""
    if queued.expected_seconds < 0:
        guess = "how long that takes cannot be guessed yet"
    else:
        guess = f"a place may be free in about {_roughly(queued.expected_seconds)} (a guess from recent sessions)"
    waited = _waited(waited_seconds)
    give_up = f"Waiting for {waited}; interrupt to give up." if waited else "Interrupt to give up."
    return f"{queued.reason} You are number {queued.place} of {queued.length} in the queue; {guess}. {give_up}"


def _waited(seconds: float) -> str:
    """Return in words how long was waited; nothing for what is no second yet."""
    return seconds_in_words(round(seconds)) if seconds >= 1 else ""


def _roughly(seconds: float) -> str:
    if seconds < 90:
        return f"{max(10, round(seconds, -1)):.0f} s"
    if seconds < 5_400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"
