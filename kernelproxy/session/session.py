"""The notebook's session in the pool: how it is opened, kept, found again and closed."""

from __future__ import annotations

import atexit
import os
import secrets
import signal
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from types import FrameType

import msgspec

from gpu_backend.wire import control
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import (
    ExecutorStarting,
    NotAuthorized,
    PoolError,
    PoolUnreachable,
    ProtocolError,
    SessionLost,
)
from gpu_backend.wire.messages import Bye, Want
from gpu_backend.wire.values import Value
from gpu_backend.wire.views import UsageView
from kernelproxy.calls import array_core
from kernelproxy.session import coming_back, environment, gateway_client, handover
from kernelproxy.session.connection import Connection, ConnectionCut
from kernelproxy.session.granting import GATEWAY_SECONDS, PATIENCE_SECONDS, granted
from kernelproxy.session.links import as_reached
from kernelproxy.session.signs import signs
from kernelproxy.session.unreached import unreached
from kernelproxy.session.wishes import opening, wished
from kernelproxy.settings import ClientSettings
from kernelproxy.settings import load as load_settings
from kernelproxy.stream import work
from kernelproxy.stream.counters import Counters
from kernelproxy.stream.memory_model import MemoryModel
from kernelproxy.stream.pipeline import Pipeline
from kernelproxy.stream.sender import Sender

#: How long an executor may take to greet us, seconds. After a lost connection each try gets the shorter time.
_GREET_SECONDS = 5.0
_REGREET_SECONDS = 1.0
#: How often in a row a connection may be cut while it is made, before the gateway is asked where the executor is.
_MOST_CUTS = 8
#: The longest pause between two signs of life of an idle notebook, seconds.
_MOST_PING_SECONDS = 3600.0
#: How long to wait at the end for what the pool need not hear: the lease ends by itself, only later. Seconds.
_FAREWELL_SECONDS = 1.0


class Session:
    """A lease on an executor, and the pipeline to it."""

    def __init__(self, ticket: Ticket, settings: ClientSettings, handed: Path | None = None) -> None:
        self.ticket = ticket
        #: Whether this process took the lease and so gives it back; a provisioner does that for the one it ``handed``.
        self.is_ours = handed is None
        self._handed = handed
        self._settings = settings
        self._instance = secrets.token_hex(8)
        self._closing = threading.Event()
        #: Why there is no place for a session that has lost its executor; "" unless it waits for one.
        self._waits_for = ""
        self.pipeline = Pipeline(self._first_connection(), self._renew)
        self._sender = Sender(self.pipeline, ping_seconds=min(max(1.0, ticket.lease_seconds / 4), _MOST_PING_SECONDS))
        self._sender.start()

    @property
    def device(self) -> dict[str, Value]:
        """What computes: kind, name, total_bytes, library, compute_capability."""
        return self.pipeline.connection.welcome.device

    @property
    def memory_limit_bytes(self) -> int:
        """Most bytes that arrays may hold; 0 for no limit."""
        return self.pipeline.connection.welcome.memory_limit_bytes

    @property
    def epoch(self) -> int:
        """How often the session has been moved or restored, from 1."""
        return self.ticket.epoch

    @property
    def counters(self) -> Counters:
        """What the session has cost so far."""
        return self.pipeline.counters

    @property
    def is_connected(self) -> bool:
        """True unless the connection is known to be cut."""
        return not self.pipeline.connection.is_cut

    def memory(self) -> dict[str, int]:
        """Return used_bytes, limit_bytes, free_bytes and total_bytes. One round trip."""
        return work.memory_in(self.pipeline.call(".memory", (), Want.CONTENTS).value)

    def flush(self) -> None:
        """Send all that has been recorded."""
        self.pipeline.flush()

    def synchronize(self) -> None:
        """Wait until the device has done all that was asked of it. Raises what failed on the way."""
        self.pipeline.call(".synchronize", (), Want.CONTENTS)

    def cancel_pending(self) -> None:
        """Drop the queued remote work that has not started."""
        self.pipeline.cancel_pending()

    def set_wish(self, wish: control.Wish) -> None:
        """Share the device in another way from now on. One question to the gateway.

        Raises
        ------
        PoolRefusal
            If this user may not have that.
        """
        gateway_client.request(self._settings, control.SetWish(0, self.ticket.session, wish), GATEWAY_SECONDS)

    def usage(self, by: str, since: str) -> UsageView:
        """Return what was used from the day ``since`` on, as this user may see it. One question to the gateway."""
        view = gateway_client.request(self._settings, control.AskUsage(0, by, since), GATEWAY_SECONDS)
        if not isinstance(view, UsageView):
            raise ProtocolError("The gateway did not answer with a view of the usage.")
        return view

    def close(self, release: bool) -> None:
        """Close the connection. With ``release`` the session ends and its arrays go; else the lease keeps it."""
        self._closing.set()
        self._sender.close(_FAREWELL_SECONDS)
        self.pipeline.close(Bye() if release else None, _FAREWELL_SECONDS)
        if release:
            self.give_back()

    def give_back(self) -> None:
        """Have the gateway end the session. Takes no lock and touches no connection of this session."""
        try:
            gateway_client.request(self._settings, control.CloseSession(0, self.ticket.session), _FAREWELL_SECONDS)
        except PoolError:
            return  # the lease runs out by itself

    # --- a lost connection --------------------------------------------------------------------------------------------

    def _first_connection(self) -> Connection:
        """Return a greeted connection. Where there can be none, the place is given back: nobody would use it."""
        try:
            while True:
                tried = self.ticket
                try:
                    return self._connect(1, 0, _GREET_SECONDS)
                except PoolUnreachable as error:
                    self._ask_where()
                    if self.ticket.epoch == tried.epoch:
                        way = as_reached(tried, self._settings.executor_host)
                        raise unreached(way, error, self._settings.gateway) from None
        except BaseException:  # an interrupt too
            self.give_back()
            raise

    def _connect(self, first: int, received: int, timeout_seconds: float) -> Connection:
        """Return a greeted connection. One that is cut while it is made is made again: that says nothing of a key."""
        deadline = monotonic() + timeout_seconds
        for _ in range(_MOST_CUTS):
            try:
                return self._connect_once(first, received, deadline)
            except ConnectionCut as error:
                cut = error
        raise cut

    def _connect_once(self, first: int, received: int, deadline: float) -> Connection:
        ticket = as_reached(self.ticket, self._settings.executor_host)
        connection = Connection(ticket, self._instance, self.is_ours, deadline - monotonic())
        try:
            connection.greet(first, received, deadline - monotonic())
        except BaseException:  # an interrupt too must leave nothing open
            connection.close()
            raise
        return connection

    def _renew(self, pipeline: Pipeline) -> Connection:
        """Return a greeted connection in place of the lost one: to the same executor, or to its successor."""
        with signs.reconnecting() as look:
            return self._sought(pipeline, look)

    def _sought(self, pipeline: Pipeline, look: Callable[[], None]) -> Connection:
        lost = pipeline.connection
        lost.close()
        asked = monotonic()
        while True:
            look()
            try:
                fresh = self._connect(pipeline.first, pipeline.inbox.received, _REGREET_SECONDS)
                if fresh.is_another_executors(lost):
                    pipeline.memory.set_limit(fresh.welcome.memory_limit_bytes)
                return fresh
            except (PoolUnreachable, NotAuthorized, SessionLost) as error:
                if self._closing.is_set() or monotonic() - asked > PATIENCE_SECONDS:
                    raise coming_back.not_back(self._waits_for, error, self.ticket.lease_seconds) from None
            if not self._find(lost.ended_for) and lost.ended_for and monotonic() - asked > coming_back.TOLD_SECONDS:
                raise coming_back.ended(lost.ended_for)
            if (self.ticket.session, self.ticket.epoch) != (lost.ticket.session, lost.ticket.epoch):
                pipeline.abandon()  # the successor knows nothing of what was under way

    def _find(self, told: str) -> bool:
        """Ask where the session is now, and take another if it has ended; False if no gateway answers."""
        try:
            return self._ask_where(coming_back.TOLD_SECONDS / 2 if told else GATEWAY_SECONDS)
        except coming_back.Ended as error:
            if self._sender.is_this_thread:  # it is for whoever uses the arrays to wait for a place, and to hear of it
                raise PoolUnreachable(str(error)) from None
            self.ticket = coming_back.another(self._settings, self._handed, told or str(error))
            return True

    def _ask_where(self, seconds: float = GATEWAY_SECONDS) -> bool:
        """Ask the gateway where the session is now; False if it does not answer, and all stays as we know it."""
        try:
            answer = coming_back.where(self._settings, self.ticket.session, seconds)
        except (PoolUnreachable, ExecutorStarting) as error:
            return isinstance(error, ExecutorStarting)
        self._waits_for = answer.reason if isinstance(answer, control.Queued) else ""
        self.ticket = answer if isinstance(answer, Ticket) else self.ticket
        return True


def open_session(label: str = "", may_wait: bool = True) -> Session:
    """Open a session: with the ticket that the provisioner took, else by asking the gateway for one.

    Waits while an executor is on its way and, unless ``may_wait`` is false, in the queue of a full pool; an interrupt
    gives up.

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
    global _handed
    keep_ticket()
    settings = load_settings()
    if _handed and (path := Path(_handed)).exists():
        session = _take_handed(path, settings)
        _handed = ""
        return session
    wish, memory_bytes = wished(settings)
    waiter = secrets.token_hex(8) if may_wait else ""
    request = control.OpenSession(0, label, "", memory_bytes, wish, waiter)
    return Session(granted(settings, request), settings)


def _take_handed(path: Path, settings: ClientSettings) -> Session:
    """Open the session that we were handed in the file ``path``; if it has ended meanwhile, unused, another one."""
    handed = handover.read(path)
    if isinstance(handed, control.OpenSession):
        # Another name each time: whoever has left the queue under one is not let in again under it.
        handed = msgspec.structs.replace(handed, wish=wished(settings).wish, waiter=secrets.token_hex(8))
    try:
        ticket = handed if isinstance(handed, Ticket) else granted(settings, handed)
    except SessionLost:
        return _take_another(path, settings)
    if isinstance(handed, control.OpenSession):
        handover.write(ticket, path)  # the provisioner gives it back, or to the kernel after this one
    try:
        return Session(ticket, settings, path)
    except SessionLost:
        return _take_another(path, settings)
    except BaseException:  # an interrupt too: its place was given back, and whoever tries again asks for another
        handover.write(opening(settings), path)
        raise


def _take_another(path: Path, settings: ClientSettings) -> Session:
    """Open a session in place of the one that we were handed, which nobody used for longer than its lease."""
    handover.write(opening(settings), path)
    ticket = granted(settings, msgspec.structs.replace(opening(settings), waiter=secrets.token_hex(8)))
    handover.write(ticket, path)
    return Session(ticket, settings, path)


def keep_ticket() -> None:
    """Take the ticket that we were handed out of the environment: processes that we start must not use it too."""
    global _handed
    _handed = os.environ.pop(handover.TICKET_VARIABLE, _handed)


#: The file with a ticket that this process was handed and has not used yet.
_handed = ""
_current: Session | None = None
_parents: Session | None = None
#: No session that this process uses from now on gives a handle below.
_next_handle = 1
_opening = threading.Lock()


def current_session() -> Session:
    """Return this process's session, opened on first use. Raises as `open_session` does."""
    with _opening:
        if _current is None:
            opened = open_session()
            for name, args in environment.settings(os.environ):
                opened.pipeline.record(name, args, 0)
            _use(opened)
            atexit.register(_leave, os.getpid())
            _leave_when_terminated(os.getpid())
        assert _current is not None
        return _current


def opened_session() -> Session | None:
    """Return this process's session if it has one already; opens none."""
    return _current


def handed() -> handover.Handed | None:
    """Return what this process was handed to open its session with, if it has not done so yet."""
    keep_ticket()
    return handover.read(Path(_handed)) if _current is None and _handed and Path(_handed).exists() else None


def held_session() -> Session | None:
    """Return this process's session, be it one that was only taken for it so far; asks the pool for none."""
    return current_session() if isinstance(handed(), Ticket) else _current


def pipeline() -> Pipeline:
    """Return the pipeline of this process's session. On every op's path, so it looks before it locks."""
    session = _current
    return session.pipeline if session is not None else current_session().pipeline


def adopt_session(session: Session | None) -> None:
    """Make ``session`` this process's session; None forgets the present one without closing it."""
    with _opening:
        _use(session)


def _leave(process: int) -> None:
    """Give our lease back as the process ends. A forked child has the session's copy, which is not its to close."""
    if _current is not None and os.getpid() == process:
        _current.close(release=_current.is_ours)


def _leave_when_terminated(process: int) -> None:
    """Give our lease back on SIGTERM too, which ends a process without what runs at exit; it still ends by it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return  # only the main thread may, and whoever has plans of their own for the signal keeps them

    def end(number: int, frame: FrameType | None) -> None:
        if _current is not None and _current.is_ours and os.getpid() == process:
            # Not in this thread: the interrupted code may hold locks that it needs.
            farewell = threading.Thread(target=_current.give_back, daemon=True)
            farewell.start()
            farewell.join(_FAREWELL_SECONDS)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)


def _use(session: Session | None) -> None:
    global _current, _next_handle
    # An array of one session that is used with another must be missing there, and not another's name.
    if _current is not None:
        _next_handle = max(_next_handle, _current.pipeline.next_handle)
    if session is not None:
        session.pipeline.skip_handles(_next_handle)
    _current = session
    # Arrays of another session must not drop handles of this one.
    array_core.dropped_handles = session.pipeline.dropped if session is not None else deque()
    array_core.memory = session.pipeline.memory if session is not None else MemoryModel()


def _forget_parents() -> None:
    """Leave the session to the process that this one was forked from; one of our own is opened on first use."""
    global _handed, _opening, _parents
    _opening = threading.Lock()  # another thread of the parent may have held it
    _handed = ""
    if _current is not None:
        _current.pipeline.end(SessionLost("This session belongs to the process from which this one was forked."))
        _parents = _current  # kept, or its end would close what the parent uses
    _use(None)


os.register_at_fork(after_in_child=_forget_parents)
