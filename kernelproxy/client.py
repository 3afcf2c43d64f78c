"""A client of the pool: all that the notebook's side holds for one session after another. Nothing of it is global.

A process has a client of its own, which `current` gives; a program may make others, for another pool or for a second
session of one, and choose among them by ``with client:``. An array belongs to the client that made it, and what is
computed with it is computed there.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import SessionLost
from kernelproxy import settings as client_settings
from kernelproxy.mirror.host_mirror import Mode
from kernelproxy.session import environment, handover, opening
from kernelproxy.session.lease import FAREWELL_SECONDS, give_back
from kernelproxy.session.notice import Notices
from kernelproxy.session.signs import Signs
from kernelproxy.session.wishes import Wishes
from kernelproxy.settings import ClientSettings
from kernelproxy.stream.dropped import DroppedHandles
from kernelproxy.stream.memory_model import MemoryModel
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.session import Session
from kernelproxy.stream.streams import Streams

Part = TypeVar("Part")


class Client:
    """One session of the pool at a time, opened on first use, and what the notebook knows for it.

    Parameters
    ----------
    settings
        Which pool, and whose key; those of the user's settings file, read when a session is opened, by default.
    notices
        Where is shown what is waited for; where the process's own client shows it, by default.

    Attributes
    ----------
    pipeline
        The stream of ops of the session. Whoever uses it without one opens one.
    dropped
        Where the handles of arrays go that end.
    memory
        Where large arrays are counted.
    streams
        The current stream of each thread.
    signs
        Where is shown what is waited for.
    wishes
        What a session is asked for with.
    """

    pipeline: MirroredPipeline
    dropped: DroppedHandles
    memory: MemoryModel
    streams: Streams
    signs: Signs
    wishes: Wishes
    #: Whether an interrupted cell has asked for what is recorded here.
    hears_interrupts = True

    def __init__(self, settings: ClientSettings | None = None, notices: Notices | None = None) -> None:
        self._settings = settings
        self.signs = Signs(notices=notices or current().signs.notices)
        self.wishes = Wishes()
        self.streams = Streams()
        self._parts: dict[Any, Any] = {}
        self._opening = threading.Lock()
        self._opened: Session | None = None
        self._handed = ""
        #: No session that is used from now on gives a handle below.
        self._next_handle = 1
        self._inherited: Session | None = None
        self._use(None)
        _all[id(self)] = self

    # --- the client of a program --------------------------------------------------------------------------------------

    def __enter__(self) -> Client:
        """Have what this thread makes from nothing, such as ``cupy.zeros``, be made by this client."""
        _chosen.set((*_chosen.get(), self))
        return self

    def __exit__(self, *raised: object) -> None:
        _chosen.set(_chosen.get()[:-1])

    def part(self, kind: Callable[[Client], Part]) -> Part:
        """Return this client's ``kind``, a class that is made with the client: where the rooms above keep their state.

        It is made when it is first asked for, and stays.
        """
        found = self._parts.get(kind)
        if found is None:
            found = self._parts.setdefault(kind, kind(self))
        return cast(Part, found)

    # --- its session --------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> ClientSettings:
        """Which pool, and whose key.

        Raises
        ------
        PoolUnreachable
            If none were given, and the user's settings file says of no pool.
        """
        return self._settings or client_settings.load()

    @property
    def session(self) -> Session:
        """The session, opened on first use. Raises as `open` does."""
        with self._opening:
            if self._opened is None:
                opened = self.open()
                _tell_environment(opened)
                self._use(opened)
                leave_at_end()
            assert self._opened is not None
            return self._opened

    @property
    def opened(self) -> Session | None:
        """The session if there is one already; opens none."""
        return self._opened

    def open(self, label: str = "", may_wait: bool = True) -> Session:
        """Open a session, and leave it to the caller: with the ticket that we were handed, else with one of our own.

        Waits while an executor is on its way and, unless ``may_wait`` is false, in the queue of a full pool; an
        interrupt gives up.

        Raises
        ------
        PoolUnreachable
            If no pool is configured or nobody answers there.
        NotAuthorized
            If our key is not known to the pool.
        PoolFull
            If the pool is full and we may not wait.
        PoolRefusal
            If a quota is used up, or more is asked for than we may have.
        """
        self.keep_ticket()
        settings = self.settings
        mirror = Mode(client_settings.mirror_mode(settings))
        if self._handed and (path := Path(self._handed)).exists():
            lease = opening.handed_over(path, settings, self.wishes, self.signs)
            self._handed = ""
        else:
            lease = opening.asked_for(settings, self.wishes, self.signs, label, may_wait)
        return Session(lease, self.signs, mirror)

    def adopt(self, session: Session | None) -> None:
        """Go on with ``session``; None forgets the present one without closing it."""
        with self._opening:
            self._use(session)

    def close(self, release: bool | None = None) -> None:
        """Leave the session, if there is one. Its arrays go with it if it was ours, or as ``release`` says."""
        session = self._opened
        if session is not None:
            self.adopt(None)
            session.close(session.is_ours if release is None else release)

    def give_back(self) -> None:
        """Have the pool end the session, be it only taken for us or waited for so far. Touches no connection."""
        if self._opened is not None:
            self._opened.give_back()
        elif isinstance(ticket := self.handed(), Ticket):
            give_back(ticket, self.settings)
        else:
            self.signs.withdraw()

    def keep_ticket(self) -> None:
        """Take the ticket that we were handed out of the environment: processes that we start must not use it too.

        It is for the process's own client.
        """
        if self is _chosen.get()[0]:
            self._handed = os.environ.pop(handover.TICKET_VARIABLE, self._handed)

    def handed(self) -> handover.Handed | None:
        """Return what this client was handed to open its session with, if it has not done so yet."""
        self.keep_ticket()
        is_there = self._opened is None and self._handed and Path(self._handed).exists()
        return handover.read(Path(self._handed)) if is_there else None

    def held(self) -> Session | None:
        """Return the session, be it one that was only taken for us so far; asks the pool for none."""
        return self.session if isinstance(self.handed(), Ticket) else self._opened

    def _use(self, session: Session | None) -> None:
        # An array of one session that is used with another must be missing there, and not another's name.
        if self._opened is not None:
            self._next_handle = max(self._next_handle, self._opened.pipeline.next_handle)
        if session is not None:
            session.pipeline.skip_handles(self._next_handle)
        self._opened = session
        # Arrays of another session must not drop handles of this one.
        self.dropped = session.pipeline.dropped if session is not None else DroppedHandles()
        self.memory = session.pipeline.memory if session is not None else MemoryModel()
        self.pipeline = session.pipeline if session is not None else cast(MirroredPipeline, _NotOpened(self))

    # --- the end of the process ---------------------------------------------------------------------------------------

    def leave_to_parent(self) -> None:
        """Leave the session to the process that this one was forked from; one of our own is opened on first use."""
        self._opening = threading.Lock()  # another thread of the parent may have held it
        self._handed = ""
        self.signs.withdraw = lambda: None  # whoever waits in a queue waits in the parent
        if self._opened is not None:
            self._opened.pipeline.leave_to_parent(
                SessionLost("This session belongs to the process from which this one was forked.")
            )
            self._inherited = self._opened  # kept, or its end would close what the parent uses
        self._use(None)


def _tell_environment(opened: Session) -> None:
    for name, args in environment.settings(os.environ):
        opened.pipeline.record(name, args, 0)


class _NotOpened:
    """Stands for the pipeline of a client that has no session: whoever uses it opens one."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client.session.pipeline, name)


def leave_at_end() -> None:
    """Have leases given back and queues left as the process ends, before what was there first: a pool of its own, say.

    On SIGTERM too, if the main thread calls this: whoever opens sessions in others calls it there before.
    """
    atexit.unregister(_leave)
    atexit.register(_leave)
    _leave_when_terminated()


def is_ending() -> bool:
    """Tell whether the process ends, so that nothing should be asked of a pool any more."""
    return _ending.is_set()


def _leave() -> None:
    """Give our leases back. A forked child has none of its parent's."""
    _ending.set()
    for one in clients():
        if one.opened is None:
            one.signs.withdraw()
        else:
            one.opened.close(release=one.opened.is_ours)


def _leave_when_terminated() -> None:
    """Give our leases back on SIGTERM too, which ends a process without what runs at exit; it still ends by it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return  # only the main thread may, and whoever has plans of their own for the signal keeps them

    def end(number: int, frame: FrameType | None) -> None:
        _ending.set()
        ours = [one for one in clients() if one.opened is None or one.opened.is_ours]
        # Not in this thread: the interrupted code may hold locks that they need.
        farewells = [threading.Thread(target=_say_farewell, args=(one,), daemon=True) for one in ours]
        for farewell in farewells:
            farewell.start()
        for farewell in farewells:
            farewell.join(FAREWELL_SECONDS)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)


def _say_farewell(client: Client) -> None:
    if client.opened is None:
        client.signs.withdraw()
    else:
        client.opened.give_back()


def _leave_to_parent() -> None:
    for one in clients():
        one.leave_to_parent()


#: The clients of this process, and whether it ends.
_all: WeakValueDictionary[int, Client] = WeakValueDictionary()
_ending = threading.Event()
#: Which of them whoever runs has chosen, the last one first to ask; the process's own is always there.
_chosen: ContextVar[tuple[Client, ...]] = ContextVar("client", default=(Client(notices=Notices()),))

os.register_at_fork(after_in_child=_leave_to_parent)


def current() -> Client:
    """Return the client of the running program: the one whose ``with`` block this is, else the process's own."""
    return _chosen.get()[-1]


def enclosing() -> tuple[Client, ...]:
    """Return the clients in whose ``with`` blocks whoever runs is, the innermost last; the first is no block's."""
    return _chosen.get()


def clients() -> list[Client]:
    """Return the clients of this process."""
    # References are copied in one step: other threads make clients meanwhile.
    return [one for reference in _all.valuerefs() if (one := reference()) is not None]


# --- for programs that know one session -------------------------------------------------------------------------------


def open_session(label: str = "", may_wait: bool = True) -> Session:
    """Open a session as `Client.open` does."""
    return current().open(label, may_wait)


def current_session() -> Session:
    """Return the session of the current client, opened on first use. Raises as `open_session` does."""
    return current().session


def adopt_session(session: Session | None) -> None:
    """Make ``session`` the current client's; None forgets the present one without closing it."""
    current().adopt(session)
