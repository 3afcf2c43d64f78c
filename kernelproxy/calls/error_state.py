"""What is done about numerical trouble, as ``cupyx.seterr`` says: each thread of the notebook for itself.

An executor runs the ops of all threads in one, so what holds there is what it was told last. While some thread hears of
matrices without an answer, every op that might is asked for, with nothing of another thread between the word and it:
unless that other has just looked, before the word was given.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from weakref import WeakSet, ref

from gpu_backend.wire.messages import Want
from kernelproxy.client import Client

IGNORE, RAISE = "ignore", "raise"
#: Of what was said and may not have been heard: it is said again.
_UNSURE = "unsure"
_AS_IT_IS = nullcontext()


class _Choice:
    """What one thread has chosen; it goes with the thread."""

    linalg = IGNORE


class _Chosen(threading.local):
    def __init__(self) -> None:
        self.choice = _Choice()


class ErrorState:
    """What is done about which kind of trouble."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # What a thread has chosen holds on all devices of a notebook, also on those that come later.
        first: ErrorState | None = None if client.first is client else client.first.part(ErrorState)
        self._chosen: _Chosen = _Chosen() if first is None else first._chosen
        self._raising: WeakSet[_Choice] = WeakSet() if first is None else first._raising
        #: Which executor was told something last, and what.
        self._told: tuple[object, str] = None, IGNORE
        #: True while nobody hears, nor was any executor told that somebody does: one look, for nearly every op.
        self._is_usual = not self._raising
        self._telling = threading.RLock()

    @property
    def linalg(self) -> str:
        """What this thread has done about matrices without an answer."""
        return self._chosen.choice.linalg

    def choose(self, linalg: str) -> None:
        """Have it done for this thread from here on."""
        choice = self._chosen.choice
        choice.linalg = linalg
        self._is_usual = False
        (self._raising.add if linalg == RAISE else self._raising.discard)(choice)
        with self._telling:
            self._tell()

    @property
    def linalg_may_raise(self) -> bool:
        """Whether any thread hears of matrices without an answer: then nothing of linear algebra surely succeeds."""
        if self._is_usual:
            return False
        may = bool(self._raising) or self._known() != IGNORE
        self._is_usual = not may
        return may

    def told(self) -> AbstractContextManager[None]:
        """Return a context in which the executor does as this thread has chosen."""
        return self._told_here() if self.linalg_may_raise else _AS_IT_IS

    @contextmanager
    def _told_here(self) -> Iterator[None]:
        with self._telling:
            self._tell()
            yield

    def _executor(self) -> object:
        """Return what tells the executor from every other: one that follows knows nothing of what was said."""
        pipeline = self._client.session.pipeline
        ticket = pipeline.connection.ticket
        return ref(pipeline), ticket.session, ticket.epoch

    def _known(self) -> str:
        executor, linalg = self._told
        return linalg if executor is not None and executor == self._executor() else IGNORE

    def _tell(self) -> None:
        if self._known() == self.linalg:
            return
        self._told = self._executor(), _UNSURE  # an interrupt may have it dropped
        self._client.session.pipeline.call("cupyx.seterr", (), Want.DESCRIPTION, {"linalg": self.linalg})
        self._told = self._executor(), self.linalg
