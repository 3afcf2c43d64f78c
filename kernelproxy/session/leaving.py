"""The end of a process: sessions of its clients are given back, and queues are left."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Protocol

from kernelproxy.session.lease import FAREWELL_SECONDS
from kernelproxy.session.signs import Signs


class _Opened(Protocol):
    @property
    def is_ours(self) -> bool: ...

    def give_back(self) -> None: ...

    def close(self, release: bool) -> None: ...


class Leaver(Protocol):
    """What has a session, or waits for one."""

    signs: Signs

    @property
    def opened(self) -> _Opened | None:
        """Its session, if there is one."""


#: Tells who there is.
Leavers = Callable[[], Iterable[Leaver]]

_ending = threading.Event()


def leave_at_end(leavers: Leavers) -> None:
    """Have leases given back and queues left as the process ends, before what was there first: a pool of its own, say.

    On SIGTERM too, if the main thread calls this: whoever opens sessions in others calls it there before.
    """
    atexit.unregister(_leave)
    atexit.register(_leave, leavers)
    _leave_when_terminated(leavers)


def is_ending() -> bool:
    """Tell whether the process ends, so that nothing should be asked of a pool any more."""
    return _ending.is_set()


def _leave(leavers: Leavers) -> None:
    """Give our leases back. A forked child has none of its parent's."""
    _ending.set()
    for one in leavers():
        if one.opened is None:
            one.signs.withdraw()
        else:
            one.opened.close(release=one.opened.is_ours)


def _leave_when_terminated(leavers: Leavers) -> None:
    """Give our leases back on SIGTERM too, which ends a process without what runs at exit; it still ends by it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return  # only the main thread may, and whoever has plans of their own for the signal keeps them

    def end(number: int, frame: FrameType | None) -> None:
        _ending.set()
        ours = [one for one in leavers() if one.opened is None or one.opened.is_ours]
        # Not in this thread: the interrupted code may hold locks that they need.
        farewells = [threading.Thread(target=_say_farewell, args=(one,), daemon=True) for one in ours]
        for farewell in farewells:
            farewell.start()
        for farewell in farewells:
            farewell.join(FAREWELL_SECONDS)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)


def _say_farewell(one: Leaver) -> None:
    opened = one.opened
    if opened is None:
        one.signs.withdraw()
    else:
        opened.give_back()
