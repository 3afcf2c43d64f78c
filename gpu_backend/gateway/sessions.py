"""The sessions in action: the pure life cycle, its instructions carried out, and who waits for what."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Mapping
from time import monotonic, time

from msgspec.structs import replace

from gpu_backend.gateway.changes import Changes
from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.ledger import Ledger
from gpu_backend.gateway.nodes import Nodes
from gpu_backend.gateway.seals import Seals
from gpu_backend.lifecycle import events as ev
from gpu_backend.lifecycle.machine import Lifecycle, is_on_record
from gpu_backend.lifecycle.states import HELD, Session, SessionState
from gpu_backend.transport.secret_proof import channel_secret
from gpu_backend.wire import control
from gpu_backend.wire.channels import DialChannel
from gpu_backend.wire.control import EndCause

log = logging.getLogger("gateway.sessions")

#: Ends that the client wanted or let happen: nobody will come back for the session.
_FINAL = frozenset({EndCause.RELEASED, EndCause.LEASE_LAPSED, EndCause.CLIENT_ENDED})


class NotRecorded(Exception):
    """A session that was to be opened could not be put on record: it is not opened."""


class Sessions:
    """Feeds the life cycle and does what it says. Records first, then acts: a kill in between loses no session.

    Where nothing can be recorded (the disk is full), no session is opened. Those that are open go on, and are recorded
    when that is possible again: after a restart in between, they are learned from the nodes.
    """

    def __init__(self, directory: Directory, nodes: Nodes, ledger: Ledger, changes: Changes, seals: Seals) -> None:
        """Keep the sessions that ``directory`` has; tell ``changes`` of every one that becomes another."""
        self._directory = directory
        self._nodes = nodes
        self._ledger = ledger
        self._changes = changes
        self._seals = seals
        #: The terms that a session's agent was last told, and on which way.
        self._told: dict[str, tuple[bytes, control.Terms]] = {}
        self._lifecycle = Lifecycle(directory.sessions(), now=monotonic())
        #: Whose executor was ended by its arbiter, or lost with its node: which epoch, and why.
        self._evicted: dict[str, tuple[int, str]] = {}
        self._waiting: dict[str, list[asyncio.Future[Session | ev.Refuse]]] = {}
        self._unrecorded: dict[str, Session] = {}
        #: Whether an executor was killed before it could say to its notebook why.
        self.has_untold = False

    @property
    def all(self) -> Mapping[str, Session]:
        """Every session by its id, the last closed ones among them."""
        return self._lifecycle.sessions

    def held(self) -> list[Session]:
        """Return the sessions that count against their users' limits."""
        return [session for session in self.all.values() if session.state in HELD]

    def found(self, session: str) -> Session | None:
        """Return a session by its id: one of `all`, or one that was closed before, by an earlier gateway maybe."""
        return self.all.get(session) or self._directory.closed(session)

    def eviction(self, session: Session) -> str:
        """Return why the pool ended or lost the executor before the session's present one; empty if it did not."""
        epoch, reason = self._evicted.get(session.id, (0, ""))
        return reason if session.epoch == epoch + 1 else ""

    def apply(self, event: ev.Event) -> None:
        """Let ``event`` happen.

        Raises
        ------
        NotRecorded
            If it is the admission of a session, and that cannot be recorded.
        """
        try:
            for instruction in self._lifecycle.handle(event, monotonic()):
                self._carry_out(instruction)
        except NotRecorded:
            assert isinstance(event, ev.SessionAdmitted)
            self.apply(ev.CloseWanted(event.session, "It could not be recorded."))
            raise

    def record_late(self) -> None:
        """Record what could not be recorded when it happened."""
        while self._unrecorded:
            name, session = next(iter(self._unrecorded.items()))
            try:
                self._record(session)
            except sqlite3.Error:
                return
            del self._unrecorded[name]

    async def wait_for(self, event: ev.Event, session: str, seconds: float) -> Session | ev.Refuse | None:
        """Let ``event`` happen and wait for the session's ticket or its refusal; None if neither came in time."""
        future: asyncio.Future[Session | ev.Refuse] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(session, []).append(future)
        try:
            self.apply(event)
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            waiting = self._waiting[session]
            waiting.remove(future)
            if not waiting:
                del self._waiting[session]

    # --- what agents say ----------------------------------------------------------------------------------------------

    def hear(self, node: str, message: control.LaunchFailed | control.ExecutorEnded) -> None:
        """Take in what the agent of ``node`` says about one executor."""
        session = self.all.get(message.session)
        if session is None or session.node != node:
            return  # the session was moved meanwhile, or never was there; that node's next report settles it
        match message:
            case control.LaunchFailed():
                self.apply(ev.LaunchFailed(message.session, message.epoch, message.message))
            case control.ExecutorEnded():
                is_final = message.cause in _FINAL
                if message.cause == EndCause.EVICTED:
                    self._evicted[message.session] = message.epoch, message.detail
                self.has_untold |= message.cause == EndCause.KILLED
                self.apply(ev.ExecutorEnded(message.session, message.epoch, is_final, message.detail))

    def reconcile(self, node: str, report: control.NodeReport) -> None:
        """Compare a node's report with what is on record, and settle the difference; book what was used."""
        kinds = {device.ordinal: device.kind for device in report.devices}
        live = tuple(self._live(node, executor, kinds) for executor in report.executors)
        self.apply(ev.NodeReported(node, live, time()))
        self._book(node, report, live)

    def book(self, node: str, report: control.NodeReport) -> None:
        """Book what was used by a node's report, and settle nothing by it: of one that was taken down."""
        self._book(node, report, tuple(self._live(node, executor, {}) for executor in report.executors))

    def _book(self, node: str, report: control.NodeReport, live: tuple[ev.LiveExecutor, ...]) -> None:
        given = tuple(
            executor
            for executor, one in zip(report.executors, live, strict=True)
            if one.is_sealed or is_on_record(self.all.get(one.session), node, one.epoch)
        )
        self._ledger.hear(node, replace(report, executors=given), self.all)

    def lose_node(self, node: str, reason: str) -> None:
        """Take a node for lost with everything on it."""
        for session in self.held():
            if session.node == node and session.state is SessionState.SERVING:
                self._evicted[session.id] = session.epoch, reason
        self.apply(ev.NodeLost(node, reason))

    def settle_terms(self) -> None:
        """Tell the agents of sessions that are entitled to something else than they were told."""
        for session in self.held():
            if session.state is SessionState.SERVING:
                now = (self._nodes.route(session.node), self._ledger.terms(session))
                order = control.SetTerms(session.id, now[1])
                if self._told.get(session.id) != now and self._nodes.send(session.node, order):
                    self._told[session.id] = now
        for gone in self._told.keys() - {session.id for session in self.held()}:
            del self._told[gone]

    def dial(self, session: Session, to: Session, channel: str) -> bool:
        """Have the executor of ``session`` reach that of ``to``, both of one user; False if nobody can be told."""
        secret = channel_secret(bytes.fromhex(to.secret)).hex()
        order = DialChannel(session.id, session.epoch, channel, to.endpoints, secret, to.certificate)
        return self._nodes.send(session.node, order)

    def _live(self, node: str, executor: control.ExecutorReport, kinds: dict[int, str]) -> ev.LiveExecutor:
        owner, opened_at = None, self._seals.opened_at(node, executor)
        if opened_at is not None and self._is_unheard_of(executor.session, opened_at):
            owner = self._directory.user_of(executor.client_key)
        return ev.LiveExecutor(
            session=executor.session, epoch=executor.epoch, ordinal=executor.ordinal,
            kind=kinds.get(executor.ordinal, ""), user=owner.name if owner else "", client_key=executor.client_key,
            endpoints=executor.endpoints, secret=executor.secret, certificate=executor.certificate,
            memory_limit_bytes=executor.memory_limit_bytes, lease_seconds=executor.lease_seconds,
            idle_seconds=executor.idle_seconds, has_joined=executor.usage.received_bytes > 0,
            is_sealed=opened_at is not None, others=executor.others,
        )  # fmt: skip

    def _is_unheard_of(self, session: str, opened_at: float) -> bool:
        """Tell whether the records may have lost a session: it is not on them, and they have not dropped it either."""
        return self.found(session) is None and not self._directory.has_dropped(opened_at)

    # --- what the life cycle wants ------------------------------------------------------------------------------------

    def _carry_out(self, instruction: ev.Instruction) -> None:
        match instruction:
            case ev.Save(session):
                self._save(session)
                self._changes.tell()
                log.info("session %s of %s: %s, epoch %d", session.id, session.user, session.state, session.epoch)
            case ev.Launch(session):
                terms = self._ledger.terms(session)
                rule = self._ledger.memory_rule(session)
                since = self._directory.since(session.user)
                order = self._seals.sealed(session.node, _launch(session, terms, rule, since), session.opened_at)
                if self._nodes.send(session.node, order):
                    self._told[session.id] = (self._nodes.route(session.node), terms)
            case ev.StopExecutor(node, session_id, epoch, reason):
                self._nodes.send(node, control.StopExecutor(session_id, epoch, reason))
            case ev.Grant(session):
                self._tell(session.id, session)
            case ev.Refuse(session_id):
                self._tell(session_id, instruction)

    def _save(self, session: Session) -> None:
        try:
            self._record(session)
        except sqlite3.Error as error:
            log.error("session %s cannot be recorded: %s", session.id, error)
            if session.state is SessionState.OPENING and session.epoch == 1:
                raise NotRecorded(str(error)) from None
            self._unrecorded[session.id] = session
        else:
            self._unrecorded.pop(session.id, None)

    def _record(self, session: Session) -> None:
        self._directory.save(session)
        self._ledger.note(session, time())

    def _tell(self, session: str, outcome: Session | ev.Refuse) -> None:
        for future in self._waiting.get(session, ()):
            if not future.done():
                future.set_result(outcome)


def _launch(session: Session, terms: control.Terms, memory_rule: str, since: str) -> control.Launch:
    return control.Launch(
        session.id, session.epoch, session.ordinal, session.client_key, session.memory_limit_bytes,
        session.lease_seconds, session.user, terms, memory_rule, user_since=since, others=session.others,
    )  # fmt: skip
