"""The life of all sessions of a pool: events in, instructions out, time passed in. No I/O, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType

from gpu_backend.lifecycle import events as ev
from gpu_backend.lifecycle.states import HELD, Session, SessionState

_CLOSED_KEPT = 1_000
_LOG_LENGTH = 10_000
_UNWANTED = "The pool does not want this executor any more."
_NOT_GIVEN = "The pool did not give this session to its node."


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the machine waits, seconds."""

    #: For an executor to come up.
    launch_seconds: float = 60.0
    #: Beyond a session's lease, before its client is given up here too: the executor notices first.
    lease_margin_seconds: float = 30.0
    #: For a client that has asked for a session to come for it. It tries for five seconds, and then gives it back.
    join_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Transition:
    """One line of the log: what an event made of a session."""

    now: float
    event: str
    session: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.now:.3f} {self.event}: {self.before} -> {self.after}"


class InvalidTransition(Exception):
    """An event that cannot happen to a session in its state. The message tells the session's story."""


class Lifecycle:
    """The sessions of a pool.

    Guarantees, whatever the events and their order: an epoch never goes back; a ticket is granted for the present
    epoch only; a session that left the states of `HELD` never comes back to them; no node changes a session that it was
    not given; every executor that no session wants is told to stop each time it is seen; ``OPENING`` and ``LOST`` end
    at a deadline, ``SERVING`` and ``CLOSING`` when the node does not list the executor any more.
    """

    def __init__(self, sessions: Iterable[Session] = (), patience: Patience | None = None, now: float = 0.0) -> None:
        """Take over ``sessions`` as a directory kept them; their deadlines start anew at ``now``."""
        self._patience = patience or Patience()
        self._sessions: dict[str, Session] = {}
        for session in sessions:
            self._sessions[session.id] = replace(session, deadline=self._deadline(session, session.state, now))
        #: When the client of each session last asked for the ticket that it can have, or was first heard of.
        self._asked_at = dict.fromkeys(self._sessions, now)
        self._closed: deque[str] = deque(key for key, s in self._sessions.items() if s.state is SessionState.CLOSED)
        #: The last transitions, oldest first.
        self.log: deque[Transition] = deque(maxlen=_LOG_LENGTH)

    @property
    def sessions(self) -> Mapping[str, Session]:
        """All sessions by their ids, the last closed ones among them."""
        return MappingProxyType(self._sessions)

    def handle(self, event: ev.Event, now: float) -> list[ev.Instruction]:
        """Take in ``event`` and return what is to be done, in this order.

        Raises
        ------
        InvalidTransition
            If the event cannot happen now. Nothing has changed then.
        """
        match event:
            case ev.SessionAdmitted():
                return self._admit(event, now)
            case ev.WishChanged():
                return list(self._change_wish(event, now))
            case ev.ExecutorReady():
                return list(self._ready(event, now))
            case ev.LaunchFailed():
                return list(self._failed(event, now))
            case ev.ExecutorEnded():
                return list(self._ended(event, now))
            case ev.TicketWanted():
                return list(self._renew(event, now))
            case ev.RestartWanted():
                return list(self._restart(event, now))
            case ev.CloseWanted():
                return list(self._close(event, now))
            case ev.NodeReported():
                return list(self._reconcile(event, now))
            case ev.NodeLost():
                return list(self._lose_node(event, now))
            case ev.TimePassed():
                return list(self._expire(now))

    def next_deadline(self) -> float:
        """Return when `TimePassed` will next have an effect; infinity if never."""
        return min((session.deadline for session in self._sessions.values()), default=inf)

    def story(self, session: str) -> str:
        """Return the log lines of one session."""
        return "\n".join(str(line) for line in self.log if line.session == session)

    def validate(self) -> None:
        """Check what must always hold.

        Raises
        ------
        AssertionError
            If it does not; the message tells the session's story.
        """
        for key, session in self._sessions.items():
            serving = session.state is SessionState.SERVING
            ends = session.state in (SessionState.OPENING, SessionState.LOST)
            sound = (
                session.id == key
                and session.epoch >= 1
                and bool(session.endpoints and session.secret and session.certificate) == serving
                and (session.deadline < inf) == ends
            )
            assert sound, f"{session}\n{self.story(key)}"

    # --- one method per event -----------------------------------------------------------------------------------------

    def _admit(self, event: ev.SessionAdmitted, now: float) -> list[ev.Instruction]:
        if event.session in self._sessions:
            raise self._impossible(event, event.session)
        session = Session(
            id=event.session, user=event.user, client_key=event.client_key, label=event.label,
            node=event.place.node, ordinal=event.place.ordinal, device_kind=event.place.kind,
            memory_limit_bytes=event.memory_limit_bytes, lease_seconds=event.lease_seconds, opened_at=event.opened_at,
            state=SessionState.OPENING, epoch=1, deadline=now + self._patience.launch_seconds, wish=event.wish,
            waiter=event.waiter, has_promise=event.has_promise, placed=event.place.why, others=event.place.others,
        )  # fmt: skip
        self._note(event, None, session, now)
        return [ev.Save(session), ev.Launch(session)]

    def _change_wish(self, event: ev.WishChanged, now: float) -> Iterator[ev.Instruction]:
        session = self._known(event, event.session)
        if session.state in HELD and session.wish != event.wish:
            changed = replace(session, wish=event.wish)
            self._note(event, session, changed, now)
            yield ev.Save(changed)

    def _ready(self, event: ev.ExecutorReady, now: float) -> Iterator[ev.Instruction]:
        session = self._sessions.get(event.session)
        if session is None or session.epoch < event.epoch:
            return  # the node's next report tells whose it is
        if session.epoch > event.epoch or session.state not in HELD:
            yield ev.StopExecutor(session.node, session.id, event.epoch, session.reason or _UNWANTED)
            return
        if session.state is SessionState.SERVING:
            return
        served = self._move(
            event, session, SessionState.SERVING, now,
            endpoints=event.endpoints, secret=event.secret, certificate=event.certificate, reason="",
        )  # fmt: skip
        self._asked_at[session.id] = now
        yield ev.Save(served)
        yield ev.Grant(served)

    def _failed(self, event: ev.LaunchFailed, now: float) -> Iterator[ev.Instruction]:
        session = self._current(event.session, event.epoch)
        if session is not None and session.state is SessionState.OPENING:
            yield from self._give_up_launch(event, session, event.message, now)

    def _ended(self, event: ev.ExecutorEnded, now: float) -> Iterator[ev.Instruction]:
        session = self._current(event.session, event.epoch)
        if session is None:
            return
        if session.state is SessionState.OPENING:
            yield from self._give_up_launch(event, session, event.detail, now)
        elif session.state is SessionState.CLOSING:
            yield ev.Save(self._move(event, session, SessionState.CLOSED, now))
        elif session.state is SessionState.SERVING:
            after = SessionState.CLOSED if event.is_final else SessionState.LOST
            yield ev.Save(self._move(event, session, after, now, reason=event.detail))
        elif session.state is SessionState.LOST and event.is_final:
            # It was heard first that its executor is gone, and now why.
            yield ev.Save(self._move(event, session, SessionState.CLOSED, now, reason=event.detail))

    def _renew(self, event: ev.TicketWanted, now: float) -> Iterator[ev.Instruction]:
        session = self._known(event, event.session)
        if session.state is SessionState.SERVING:
            self._asked_at[session.id] = now
            yield ev.Grant(session)
        elif session.state is SessionState.LOST:
            if event.place is None:
                raise self._impossible(event, event.session)
            yield from self._next_epoch(event, session, event.place, now)
        elif session.state is not SessionState.OPENING:
            yield ev.Refuse(session.id, session.reason)

    def _restart(self, event: ev.RestartWanted, now: float) -> Iterator[ev.Instruction]:
        session = self._known(event, event.session)
        if session.state is SessionState.SERVING:
            yield ev.StopExecutor(session.node, session.id, session.epoch, "The kernel was restarted.")
        if session.state in (SessionState.SERVING, SessionState.LOST):
            # For a kernel that comes when it needs it: whoever asked before has come, and is gone.
            yield from self._next_epoch(event, replace(session, waiter=""), event.place, now)
        elif session.state is not SessionState.OPENING:  # an opening one is fresh already
            yield ev.Refuse(session.id, session.reason)

    def _close(self, event: ev.CloseWanted, now: float) -> Iterator[ev.Instruction]:
        session = self._sessions.get(event.session)
        if session is None or session.state not in HELD:
            return
        if session.state is SessionState.OPENING:
            yield ev.Refuse(session.id, event.reason)
        if session.state is SessionState.LOST:
            yield ev.Save(self._move(event, session, SessionState.CLOSED, now, reason=event.reason))
            return
        closing = self._move(event, session, SessionState.CLOSING, now, reason=event.reason)
        yield ev.Save(closing)
        yield ev.StopExecutor(session.node, session.id, session.epoch, event.reason)

    def _reconcile(self, event: ev.NodeReported, now: float) -> Iterator[ev.Instruction]:
        listed = {(live.session, live.epoch) for live in event.executors}
        # The latest epoch first: an older executor of the same session, which still ends, must not be granted again.
        for live in sorted(event.executors, key=lambda live: -live.epoch):
            yield from self._meet(event, live, now)
        for session in [s for s in self._sessions.values() if s.node == event.node]:
            if (session.id, session.epoch) in listed:
                continue
            if session.state is SessionState.OPENING:
                yield ev.Launch(session)  # the order may have been lost with an agent; launching is idempotent
            elif session.state is SessionState.SERVING:
                reason = "Its executor ended while nobody could tell."
                yield ev.Save(self._move(event, session, SessionState.LOST, now, reason=reason))
            elif session.state is SessionState.CLOSING:
                yield ev.Save(self._move(event, session, SessionState.CLOSED, now))

    def _meet(self, event: ev.NodeReported, live: ev.LiveExecutor, now: float) -> Iterator[ev.Instruction]:
        session = self._sessions.get(live.session)
        if not (live.is_sealed or is_on_record(session, event.node, live.epoch)):
            # Else a node could take over another's session by a later epoch, end it by a long silence, or make one up.
            yield ev.StopExecutor(event.node, live.session, live.epoch, _NOT_GIVEN)
        elif session is None and live.user:
            adopted = _adopted(event, live)
            self._note(event, None, adopted, now)
            yield ev.Save(adopted)
        elif session is None or session.state not in HELD or session.epoch > live.epoch:
            reason = session.reason if session is not None else ""
            yield ev.StopExecutor(event.node, live.session, live.epoch, reason or _UNWANTED)
        elif session.epoch < live.epoch:  # the directory is older than the node: the node knows better
            adopted = replace(
                _adopted(event, live), user=session.user, label=session.label, wish=session.wish,
                waiter=session.waiter, has_promise=session.has_promise, placed=session.placed,
            )  # fmt: skip
            self._note(event, session, adopted, now)
            yield ev.Save(adopted)
        elif session.node != event.node:  # records restored from an old copy led to the same epoch twice
            yield ev.StopExecutor(event.node, live.session, live.epoch, _UNWANTED)
        elif session.state is not SessionState.SERVING:
            ready = ev.ExecutorReady(live.session, live.epoch, live.endpoints, live.secret, live.certificate)
            yield from self._ready(ready, now)
        elif (silence := self._silence(live, now)) > session.lease_seconds + self._patience.lease_margin_seconds:
            reason = f"The notebook was not heard for {silence:.0f} s."
            yield from self._close(ev.CloseWanted(session.id, reason), now)
        elif session.waiter and not live.has_joined and silence > self._patience.join_seconds:
            # It asked for the session itself, and should have been there by now.
            reason = f"Its notebook did not come for it within {self._patience.join_seconds:.0f} s."
            yield from self._close(ev.CloseWanted(session.id, reason), now)

    def _silence(self, live: ev.LiveExecutor, now: float) -> float:
        """Return for how long a client was heard by nobody: an executor in the middle of an op hears none."""
        return min(live.idle_seconds, now - self._asked_at.setdefault(live.session, now))

    def _lose_node(self, event: ev.NodeLost, now: float) -> Iterator[ev.Instruction]:
        for session in [s for s in self._sessions.values() if s.node == event.node]:
            if session.state is SessionState.OPENING:
                yield from self._give_up_launch(event, session, event.reason, now)
            elif session.state is SessionState.SERVING:
                yield ev.Save(self._move(event, session, SessionState.LOST, now, reason=event.reason))
            elif session.state is SessionState.CLOSING:
                yield ev.Save(self._move(event, session, SessionState.CLOSED, now))

    def _expire(self, now: float) -> Iterator[ev.Instruction]:
        for session in [s for s in self._sessions.values() if s.deadline <= now]:
            if session.state is SessionState.OPENING:
                reason = f"No executor came up within {self._patience.launch_seconds:.0f} s."
                yield ev.StopExecutor(session.node, session.id, session.epoch, reason)
                yield from self._give_up_launch(ev.TimePassed(), session, reason, now)
            else:
                reason = f"{session.reason} Nobody asked for it again within {session.lease_seconds:.0f} s.".strip()
                yield ev.Save(self._move(ev.TimePassed(), session, SessionState.CLOSED, now, reason=reason))

    # --- steps that several events share ------------------------------------------------------------------------------

    def _next_epoch(self, event: ev.Event, session: Session, place: ev.Place, now: float) -> Iterator[ev.Instruction]:
        opening = self._move(
            event, session, SessionState.OPENING, now,
            epoch=session.epoch + 1, node=place.node, ordinal=place.ordinal, device_kind=place.kind, placed=place.why,
            others=place.others,
        )  # fmt: skip
        yield ev.Save(opening)
        yield ev.Launch(opening)

    def _give_up_launch(self, event: ev.Event, session: Session, reason: str, now: float) -> Iterator[ev.Instruction]:
        # A first launch that fails leaves nothing worth keeping; a later one leaves the lease to try again.
        after = SessionState.CLOSED if session.epoch == 1 else SessionState.LOST
        yield ev.Save(self._move(event, session, after, now, reason=reason))
        yield ev.Refuse(session.id, reason)

    def _move(self, event: ev.Event, session: Session, state: SessionState, now: float, **changes: object) -> Session:
        changes = {"endpoints": (), "secret": "", "certificate": "", **changes}
        moved = replace(session, state=state, deadline=self._deadline(session, state, now), **changes)  # type: ignore[arg-type]
        self._note(event, session, moved, now)
        return moved

    def _deadline(self, session: Session, state: SessionState, now: float) -> float:
        if state is SessionState.OPENING:
            return now + self._patience.launch_seconds
        return now + session.lease_seconds if state is SessionState.LOST else inf

    def _note(self, event: ev.Event, before: Session | None, after: Session, now: float) -> None:
        self._sessions[after.id] = after
        if after.state is SessionState.CLOSED:
            self._asked_at.pop(after.id, None)
            self._closed.append(after.id)
            if len(self._closed) > _CLOSED_KEPT:
                self._sessions.pop(self._closed.popleft(), None)
        story = Transition(now, type(event).__name__, after.id, _brief(before), _brief(after))
        self.log.append(story)

    def _current(self, key: str, epoch: int) -> Session | None:
        session = self._sessions.get(key)
        return session if session is not None and session.epoch == epoch else None

    def _known(self, event: ev.Event, key: str) -> Session:
        if key not in self._sessions:
            raise self._impossible(event, key)
        return self._sessions[key]

    def _impossible(self, event: ev.Event, key: str) -> InvalidTransition:
        state = _brief(self._sessions.get(key))
        return InvalidTransition(f"{event} cannot happen to a session that is {state}.\n{self.story(key)}".rstrip())


def is_on_record(session: Session | None, node: str, epoch: int) -> bool:
    """Tell whether ``session`` is on ``node`` by what is on record of it, and has been in ``epoch`` already."""
    return session is not None and session.node == node and epoch <= session.epoch


def _adopted(event: ev.NodeReported, live: ev.LiveExecutor) -> Session:
    return Session(
        id=live.session, user=live.user, client_key=live.client_key, label="", node=event.node, ordinal=live.ordinal,
        device_kind=live.kind, memory_limit_bytes=live.memory_limit_bytes, lease_seconds=live.lease_seconds,
        opened_at=event.reported_at, state=SessionState.SERVING, epoch=live.epoch, endpoints=live.endpoints,
        secret=live.secret, certificate=live.certificate, others=live.others,
    )  # fmt: skip


def _brief(session: Session | None) -> str:
    return f"{session.state} (epoch {session.epoch})" if session is not None else "unknown"
