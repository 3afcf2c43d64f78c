"""The client of function calls: it takes a session when a call begins, and never another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from msgspec.structs import replace

from gpu_backend.wire.errors import PoolFull, SessionLost
from kernelproxy.client import Client, current
from kernelproxy.session.notice import Notice, Notices
from kernelproxy.stream.session import Session


@dataclass(frozen=True)
class Terms:
    """What the calls of a function ask of the pool; None leaves it to the user's own settings.

    ``gpu`` is the largest part of a device's time, ``timeout_seconds`` how long a call waits in the queue of a full
    pool, ``max_workers`` how many calls run or wait at the same time.
    """

    gpu: float | None = None
    memory_bytes: int | None = None
    timeout_seconds: float | None = None
    max_workers: int = 4


class Withdrawn(Exception):
    """Whoever waited for a place wants it no more."""


class CallClient(Client):
    """One session for calls of a function, from the first of them until it is closed, which is for good.

    It asks for what the current client would, but for ``terms``, and shows nobody that it waits.
    """

    #: A cell that is interrupted has not asked for what a function does.
    hears_interrupts = False

    def __init__(self, function: str, terms: Terms) -> None:
        base = current()
        self._queue = _LastWord()
        super().__init__(base.settings, Notices(self._queue.as_notice, self._queue.as_notice))
        usual = base.wishes.wished(base.settings)
        limit = usual.wish.limit if terms.gpu is None else terms.gpu
        self.wishes.said = replace(usual.wish, limit=limit, request=min(usual.wish.request, limit))
        self.wishes.memory_bytes = usual.memory_bytes if terms.memory_bytes is None else terms.memory_bytes
        self.wishes.label = f"function {function}"
        self._function = function
        self._timeout_seconds = terms.timeout_seconds
        self._is_closed = False

    def take(self, is_wanted: Callable[[], bool]) -> None:
        """Take a session unless there is one; wait for it as long as it ``is_wanted``.

        Raises
        ------
        Withdrawn
            If it is not wanted any more.
        PoolFull
            If the pool was full for longer than the terms allow.
        PoolError
            As `Client.open` does.
        """
        begun = monotonic()

        def heed() -> None:
            is_late = self._timeout_seconds is not None and monotonic() - begun >= self._timeout_seconds
            if not is_wanted() or (is_late and self._queue.word):
                raise Withdrawn

        self.signs.heed = heed
        try:
            _ = self.session  # taken here
        except Withdrawn:
            if not is_wanted():
                raise
            raise PoolFull(
                f"A call of {self._function} waited {self._timeout_seconds:g} s for a place in the pool and found "
                f"none: {self._queue.word} Call it again later, or give it a longer timeout."
            ) from None
        finally:
            self.signs.heed = self._take_no_other

    def open(self, label: str = "", may_wait: bool = True, sessions: int = 1) -> Session:
        """Open the session of the calls, if they are not over; raises as `Client.open` does."""
        if self._is_closed:
            raise SessionLost(
                f"This belongs to a session in which calls of {self._function} ran, and which was given back. What a "
                "function returns comes as NumPy arrays; to leave arrays in the pool between calls, make them inside "
                f"of `with {self._function}.kept() as ...`."
            )
        return super().open(label, may_wait, sessions)

    def close(self, release: bool | None = None) -> None:
        """Give the session back, and take none any more."""
        self._is_closed = True
        super().close(release)

    def _take_no_other(self) -> None:
        raise SessionLost(
            f"The session in which {self._function} ran has ended, and its arrays with it. Call the function again."
        )


class _LastWord:
    """What the pool last said about its queue: kept for an error, and shown to nobody."""

    def __init__(self) -> None:
        #: What is full, and which place we have; "" if we never waited.
        self.word = ""

    def as_notice(self) -> Notice:
        """Return the notice of a wait."""
        return self

    def show(self, text: str, part: float | None = None) -> None:
        """Keep what is said while the wait goes on, up to what was expected of it."""
        self.word = f"{text.partition(';')[0]}."

    def close(self, text: str) -> None:
        """Keep what was said before."""
