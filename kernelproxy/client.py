"""A client of the pool: all that the notebook's side holds for one session after another. Nothing of it is global.

A process has a client of its own, which `current` gives; a program may make others, for another pool or for a second
session of one, and choose among them by ``with client:``. An array belongs to the client that made it, and what is
computed with it is computed there.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import SessionLost
from kernelproxy import compiled
from kernelproxy import settings as client_settings
from kernelproxy.mirror.host_mirror import Mode
from kernelproxy.session import environment, handover, opening
from kernelproxy.session.lease import Lease, give_back
from kernelproxy.session.leaving import leave_at_end
from kernelproxy.session.notice import Notices
from kernelproxy.session.signs import Signs
from kernelproxy.session.wishes import Wishes
from kernelproxy.settings import ClientSettings
from kernelproxy.stream.dropped import DroppedHandles
from kernelproxy.stream.joined import JoinedPipeline, JoinedStreams
from kernelproxy.stream.memory_model import MemoryModel
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.not_opened import NotOpened
from kernelproxy.stream.session import Session, usual_pipeline
from kernelproxy.stream.streams import Streams
from kernelproxy.stream.together import open_all

Part = TypeVar("Part")
_PARENTS = "This session belongs to the process from which this one was forked."


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
    members
        Where a notebook's devices come from sessions of their own: the clients of all of them, in the order of the
        devices' numbers; empty as long as there is one session.
    number
        The number of the client's first device.
    """

    # Slots for what each op asks a client for, as of a `Recorder`.
    __slots__ = ("__dict__", "__weakref__", "dropped", "pipeline", "streams")

    pipeline: MirroredPipeline
    dropped: DroppedHandles
    memory: MemoryModel
    streams: Streams
    signs: Signs
    wishes: Wishes
    members: tuple[Client, ...] = ()
    number = 0
    #: Why there will be no session any more; "" while there may be one.
    over = ""
    #: The ticket of its next session, if that came with another's.
    granted: Ticket | None = None
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
        #: By what its sessions keep apart, if it has several: a kernel that starts again finds the first one's.
        self.label = f"notebook-{secrets.token_hex(6)}"
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

    # --- several sessions as one --------------------------------------------------------------------------------------

    @property
    def first(self) -> Client:
        """The client of the first device, with which a session of all is opened and left."""
        return self.members[0] if self.members else self

    @property
    def devices(self) -> int:
        """How many devices there are; opens a session."""
        session = self.session  # where they come from is known once it is there
        return len(self.members) or session.devices

    def having(self, device: int) -> tuple[Client, int]:
        """Return whose the device of this number is, and which of that client's it is."""
        return (self.members[device], 0) if self.members and 0 <= device < len(self.members) else (self, device)

    def join(self, others: Sequence[Client]) -> None:
        """Have a device of each of ``others`` beside this one's, from the next session of each on."""
        members = (self, *others)
        for number, one in enumerate(members):
            one.members, one.number, one.streams = members, number, JoinedStreams(self.streams, number)

    def part_with(self) -> None:
        """Be alone again; what the others have made goes with their sessions."""
        for one in self.members[1:]:
            one.close(release=True)
        self._be_alone()

    def _be_alone(self) -> None:
        self.members, self.streams, self.wishes.apart = (), Streams(), ""

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
                leave_at_end(clients)
                open_all(self)
            assert self._opened is not None
            return self._opened

    def begin(self, opened: Session) -> None:
        """Go on with a session in which nothing was done yet."""
        self._use(opened)
        before = self.streams.set_device(self.number)
        for name, args in environment.settings(os.environ):
            opened.pipeline.record(name, args, 0)
        self.streams.set_device(before)

    def give_up(self) -> None:
        """Give the session back with all beside it, as if none had been opened."""
        session, streams = self._opened, self.streams
        self.part_with()
        if isinstance(streams, JoinedStreams):
            self.streams = streams.beside  # whoever is about to make a device current does so there
        self._use(None)
        if session is None:
            return
        session.close(release=True)
        if session.handed is not None:  # the provisioner, and we, begin anew there
            handover.write(self.wishes.opening(self.settings), session.handed)
            self._handed = str(session.handed)

    def _pipeline_to(self, devices: int) -> type[MirroredPipeline]:
        """Return the kind of the pipeline to an executor with so many devices, where more may have been wished for."""
        if devices == 1 and not self.members and (missing := self.wishes.count(self.settings) - devices):
            self.wishes.apart = self.label
            self.join([Beside(self) for _ in range(missing)])
        return JoinedPipeline if self.members else usual_pipeline(devices)

    @property
    def opened(self) -> Session | None:
        """The session if there is one already; opens none."""
        return self._opened

    def open(self, label: str = "", may_wait: bool = True, sessions: int = 1) -> Session:
        """Open a session, and leave it to the caller: with the ticket that we were handed, else with one of our own.

        Waits while an executor is on its way and, unless ``may_wait`` is false, in the queue of a full pool; an
        interrupt gives up. As many ``sessions`` are asked for at once, and it knows the tickets of the others.

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
        if self.granted is not None:
            ticket, self.granted = self.granted, None
            lease = Lease(ticket, settings, self.wishes, self.signs)
        elif self._handed and (path := Path(self._handed)).exists():
            lease = opening.handed_over(path, settings, self.wishes, self.signs, sessions)
            self._handed = ""
        else:
            lease = opening.asked_for(settings, self.wishes, self.signs, label, may_wait, sessions)
        return Session(lease, self.signs, mirror, self._pipeline_to)

    def adopt(self, session: Session | None) -> None:
        """Go on with ``session``; None forgets the present one without closing it."""
        with self._opening:
            self._use(session)

    def close(self, release: bool | None = None) -> None:
        """Leave the session, if there is one. Its arrays go with it if it was ours, or as ``release`` says."""
        session = self._opened
        if self.members and not self.number:
            self.part_with()
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
            self.label = f"notebook-{Path(self._handed).stem[-12:]}" if self._handed else self.label

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
        self.pipeline = session.pipeline if session is not None else cast(MirroredPipeline, NotOpened(self))
        if isinstance(self.pipeline, JoinedPipeline) and isinstance(self.streams, JoinedStreams):
            self.pipeline.streams = self.streams

    # --- the end of the process ---------------------------------------------------------------------------------------

    def leave_to_parent(self) -> None:
        """Leave the session to the process that this one was forked from; one of our own is opened on first use."""
        self._opening = threading.Lock()  # another thread of the parent may have held it
        self._handed = ""
        self.signs.withdraw = lambda: None  # whoever waits in a queue waits in the parent
        if self._opened is not None:
            self._opened.pipeline.leave_to_parent(SessionLost(_PARENTS))
            self._inherited = self._opened  # kept, or its end would close what the parent uses
        # The devices beside the first one's are the parent's too, and keep apart from none of ours.
        self._be_alone()
        self.label = f"notebook-{secrets.token_hex(6)}"
        self._use(None)


compiled.learn(Client=Client)


class Beside(Client):
    """One of a notebook's devices beside the first: its session is over with that one's, for good."""

    def __init__(self, first: Client) -> None:
        super().__init__(first._settings, first.signs.notices)
        self.wishes, self.hears_interrupts = first.wishes, first.hears_interrupts

    def open(self, label: str = "", may_wait: bool = True, sessions: int = 1) -> Session:
        """Open the session, if it is not over; raises as `Client.open` does."""
        if self.over:
            raise SessionLost(self.over)
        return super().open(label, may_wait, sessions)

    def close(self, release: bool | None = None) -> None:
        """Give the session back, and take none any more."""
        self.over = (
            f"This belongs to device {self.number} of a session that was left, and its arrays went with it. Make them "
            "again in the session that there is now."
        )
        ticket, self.granted = self.granted, None
        if ticket is not None:  # it was not opened yet
            give_back(ticket, self.settings)
        super().close(release)

    def leave_to_parent(self) -> None:
        """Leave the session to the process that this one was forked from, and take none any more."""
        self.over = _PARENTS
        super().leave_to_parent()


def _leave_to_parent() -> None:
    for one in clients():
        one.leave_to_parent()


#: The clients of this process.
_all: WeakValueDictionary[int, Client] = WeakValueDictionary()
#: Which of them whoever runs has chosen, the last one first to ask; the process's own is always there.
_chosen: ContextVar[tuple[Client, ...]] = ContextVar("client", default=(Client(notices=Notices()),))

os.register_at_fork(after_in_child=_leave_to_parent)


def current() -> Client:
    """Return the client of the running program: the one whose ``with`` block this is, else the process's own.

    Where its devices come from several sessions it is the client of the one that is current.
    """
    client = _chosen.get()[-1]
    members = client.members
    return members[client.streams.device] if members else client


def enclosing() -> tuple[Client, ...]:
    """Return the clients in whose ``with`` blocks whoever runs is, the innermost last; the first is no block's."""
    return _chosen.get()


def clients() -> list[Client]:
    """Return the clients of this process."""
    # References are copied in one step: other threads make clients meanwhile.
    return [one for reference in _all.valuerefs() if (one := reference()) is not None]
