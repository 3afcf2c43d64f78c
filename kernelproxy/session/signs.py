"""Signs of life: one line that says what the notebook waits for, once that has taken a second.

Whoever waits looks here now and then with what it waits for; nothing is timed, made or shown for what ends sooner. One
line serves a whole cell: it is written over by each wait, and ends with what the last one was and the sum of all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import NamedTuple

from kernelproxy.session.amounts import bytes_in_words, seconds_in_words, shortened
from kernelproxy.session.notice import Notice, Notices

#: What ends within this time is not told, seconds.
SILENT_SECONDS = 1.0
#: Longer descriptions of a place in the user's code are cut.
_MOST_PLACE = 100


class Sign(NamedTuple):
    """What is waited for: ``what`` it is, how ``much`` of it, at which ``place`` in the user's code it was asked for.

    ``part``, from 0 to 1, is what is done of it, where that is known. ``is_op`` says that ``what`` is an operation's
    name; what was waited for together with it is part of the time.
    """

    what: str
    much: str = ""
    place: str = ""
    part: float | None = None
    is_op: bool = False

    def so_far(self, seconds: int) -> str:
        """Return what is shown while it goes on."""
        return f"{self.what}: {seconds_in_words(seconds)} so far{_joined(self.much, self.place)}"

    def over(self, seconds: float, raised: BaseException | None, sum_of_all: str) -> str:
        """Return what is shown when it is over, as it should be or by what was ``raised``."""
        took = seconds_in_words(round(seconds, 1))
        if raised is not None:
            how = "interrupted" if isinstance(raised, KeyboardInterrupt) else "failed"
            text = f"{self.what}: {how} after {took}"
        else:
            text = f"Waited {took} for {self.what}" if self.is_op else f"{self.what} took {took}"
        much = self.much if self.part is not None else ""
        return text + _joined(much, self.place, sum_of_all)


def _joined(*parts: str) -> str:
    return "".join([f" · {shortened(one, _MOST_PLACE)}" for one in parts if one])


class Transfer:
    """A transfer of ``total`` bytes in pieces."""

    def __init__(self, what: str, total: int, since: float) -> None:
        self.what = what
        self.total = total
        self.since = since
        #: Bytes that have arrived.
        self.done = 0

    def sign(self) -> Sign:
        """Return how far it is."""
        much = f"{bytes_in_words(self.done)} of {bytes_in_words(self.total)}"
        return Sign(self.what, much, part=self.done / self.total)


class Signs:
    """A client's line. Only the main thread writes it: what others wait for belongs to no cell."""

    def __init__(self, clock: Callable[[], float] = monotonic, notices: Notices | None = None) -> None:
        self._notices = notices or Notices()
        #: True while the line tells of a wait that goes on.
        self.is_shown = False
        #: The transfer that is under way, if it has several pieces.
        self.transfer: Transfer | None = None
        #: Asked before each question to the pool by whoever waits for its answer; what it raises ends the wait.
        self.heed: Callable[[], None] = _nothing
        #: Leaves the pool's queue for whoever waits there, whatever thread they are; does nothing if nobody does.
        self.withdraw: Callable[[], None] = _nothing
        #: Since when a lost connection is sought, by whatever thread; 0.0 while none is.
        self.lost_at = 0.0
        self._known = ""  # of why it is lost
        self._clock = clock
        self._notice: Notice | None = None
        self._sign = Sign("")
        self._since, self._told = 0.0, 0
        self._waits, self._seconds = 0, 0.0

    @property
    def notices(self) -> Notices:
        """Where waits are shown. Once it is another, the next wait has a line of its own there."""
        return self._notices

    @notices.setter
    def notices(self, notices: Notices) -> None:
        self._notices, self._notice = notices, None

    def begin_cell(self) -> None:
        """What comes belongs to another cell."""
        self.is_shown, self._notice = False, None
        self._waits, self._seconds = 0, 0.0

    def look(self, since: float, describe: Callable[[], Sign]) -> None:
        """Say what is waited for ``since``, if that is long and another second has passed."""
        seconds = int(self._clock() - since)
        if seconds < SILENT_SECONDS or (self._since, self._told) == (since, seconds):
            return
        if threading.current_thread() is not threading.main_thread():
            return
        self._since, self._told = since, seconds
        self._sign = _reconnecting(self._known) if self.lost_at else describe()
        self.is_shown = True
        with suppress(Exception):  # whatever is wrong with the place where it is shown, the wait goes on
            if self._notice is None:
                self._notice = self._notices.of_sign()
            self._notice.show(self._sign.so_far(seconds), self._sign.part)

    def settle(self, raised: BaseException | None = None) -> None:
        """The wait is over, as it should be or by what was ``raised``: say how long it took."""
        if not self.is_shown or self.transfer is not None:
            return
        self.is_shown = False
        seconds = self._clock() - self._since
        self._waits, self._seconds = self._waits + 1, self._seconds + seconds
        sum_of_all = f"{self._waits} such waits, {seconds_in_words(round(self._seconds, 1))} in all"
        if self._notice is not None:
            with suppress(Exception):  # as above
                self._notice.close(self._sign.over(seconds, raised, sum_of_all if self._waits > 1 else ""))

    @contextmanager
    def moving(self, what: str, total: int) -> Iterator[Transfer]:
        """Have all waits inside be one transfer of ``total`` bytes."""
        transfer = Transfer(what, total, self._clock())
        if self.transfer is not None or threading.current_thread() is not threading.main_thread():
            yield transfer
            return
        self.transfer = transfer
        raised: BaseException | None = None
        try:
            yield transfer
        except BaseException as error:  # whatever it is, it is only told how the transfer ended
            raised = error
            raise
        finally:
            self.transfer = None
            if self._sign.what == what:
                self._sign = self._sign._replace(much=bytes_in_words(transfer.done), part=transfer.done / total)
            self.settle(raised)
            del raised  # in a cycle with this frame it would keep arrays alive

    @contextmanager
    def reconnecting(self) -> Iterator[Callable[[str], None]]:
        """Have all who wait hear that the connection is sought.

        Gives what to call now and then meanwhile, with what is known by then of why it is lost.
        """
        since = self.lost_at = self._clock()
        self._known = ""
        is_ours = threading.current_thread() is threading.main_thread()
        try:
            yield partial(self._look_for_connection, since)
        except BaseException as error:  # as above
            self.lost_at = 0.0
            if is_ours:
                self.settle(error)
            raise
        self.lost_at = 0.0
        if is_ours:
            self.settle()

    def _look_for_connection(self, since: float, known: str) -> None:
        self._known = known
        self.look(since, lambda: _reconnecting(known))


def _nothing() -> None:
    """Do nothing."""


def _reconnecting(known: str) -> Sign:
    return Sign("Reconnecting to the pool", known)
