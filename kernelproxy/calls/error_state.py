"""What is done about numerical trouble, as ``cupyx.seterr`` says: each thread of the notebook for itself.

An executor runs the ops of all threads in one, so what holds there is what it was told last. While some thread hears of
matrices without an answer, every op that might is asked for, with nothing of another thread between the word and it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from weakref import WeakKeyDictionary, WeakSet

from kernelproxy.client import Client

IGNORE, RAISE = "ignore", "raise"
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
        self._chosen = _Chosen()
        self._raising: WeakSet[_Choice] = WeakSet()
        #: What the executor of each session was told last.
        self._told: WeakKeyDictionary[object, str] = WeakKeyDictionary()
        self._telling = threading.RLock()

    @property
    def linalg(self) -> str:
        """What this thread has done about matrices without an answer."""
        return self._chosen.choice.linalg

    def choose(self, linalg: str) -> None:
        """Have it done for this thread from here on."""
        choice = self._chosen.choice
        choice.linalg = linalg
        (self._raising.add if linalg == RAISE else self._raising.discard)(choice)
        with self._telling:
            self._tell()

    @property
    def linalg_may_raise(self) -> bool:
        """Whether any thread hears of matrices without an answer: then nothing of linear algebra surely succeeds."""
        return bool(self._raising) or self._told.get(self._client.pipeline) == RAISE

    def told(self) -> AbstractContextManager[None]:
        """Return a context in which the executor does as this thread has chosen."""
        return self._told_here() if self.linalg_may_raise else _AS_IT_IS

    @contextmanager
    def _told_here(self) -> Iterator[None]:
        with self._telling:
            self._tell()
            yield

    def _tell(self) -> None:
        pipeline = self._client.session.pipeline
        if self._told.get(pipeline, IGNORE) != self.linalg:
            pipeline.record("cupyx.seterr", (), 0, {"linalg": self.linalg})
            self._told[pipeline] = self.linalg
