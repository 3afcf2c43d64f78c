"""The gateway's process: two doors, one for users and one for agents, and the loops that keep the pool in order."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from time import monotonic, time

import zmq
import zmq.asyncio

from gpu_backend.engine.base import Engine, NodeChange
from gpu_backend.gateway import attention
from gpu_backend.gateway.accounts import Accounts
from gpu_backend.gateway.authenticator import Authenticator, key_of
from gpu_backend.gateway.changes import Changes
from gpu_backend.gateway.desk import Desk, Request
from gpu_backend.gateway.directory import Directory, User
from gpu_backend.gateway.doors import open_door
from gpu_backend.gateway.hearsay import fit_report, fit_word
from gpu_backend.gateway.ledger import Ledger
from gpu_backend.gateway.loads import DeviceLoad
from gpu_backend.gateway.membership import Members
from gpu_backend.gateway.metrics import Figures, Metrics
from gpu_backend.gateway.metrics_door import MetricsDoor
from gpu_backend.gateway.nodes import Nodes
from gpu_backend.gateway.opening import Opening
from gpu_backend.gateway.placement import placeable, with_sessions
from gpu_backend.gateway.queueing import Line
from gpu_backend.gateway.seals import Seals
from gpu_backend.gateway.sessions import Sessions
from gpu_backend.gateway.settings import GatewaySettings
from gpu_backend.gateway.showing import Showing
from gpu_backend.lifecycle import events as ev
from gpu_backend.lifecycle.states import SessionState
from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.sockets import AGENTS_DOMAIN, ZAP_DOMAIN, as_server, send_now
from gpu_backend.transport.zap import LookedUpKeys, guard_async
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.control import (
    AskPool,
    Denied,
    Done,
    FromGateway,
    NodeReport,
    StopNode,
    StopPool,
    ToGateway,
)
from gpu_backend.wire.errors import ForeignVersion, MalformedMessage, OversizedMessage, RefusalCode, WireError
from gpu_backend.wire.joining import AskCluster, AskNode, AtAgentsDoor, Join, Leave

log = logging.getLogger("gateway")

#: A request is some hundred bytes; whoever sends a frame above this is cut off by libzmq.
_MOST_REQUEST_BYTES = 64 << 10
#: A report has some 300 bytes an executor.
_MOST_REPORT_BYTES = 512 << 10
#: Requests of one key that may wait at a time; of these half at most for other processes of a group (`gathering`).
_MOST_WAITING = 32
_TICK_SECONDS = 0.5
#: How long records of closed sessions are kept, seconds.
_KEEP_CLOSED_SECONDS = 7 * 86_400.0

#: How long a stopped pool still answers where executors were killed in the middle of an op, seconds: their notebooks
#: have just lost their connections, and come to ask why.
_UNTOLD_SECONDS = 3.0

_requests: Codec[ToGateway] = Codec(ToGateway)
_reports: Codec[AtAgentsDoor] = Codec(AtAgentsDoor)
_CODES = {
    MalformedMessage: RefusalCode.MALFORMED,
    ForeignVersion: RefusalCode.FOREIGN_VERSION,
    OversizedMessage: RefusalCode.OVERSIZED,
}

#: What sessions are told of a node that leaves in good order.
_TAKEN_OUT = "The operator of {} took that machine out of the pool for now."


class Gateway:
    """The one door of a pool. Keeps nothing that its directory or the agents' reports would not give back."""

    def __init__(
        self, settings: GatewaySettings, keys: KeyPair, directory: Directory, accounts: Accounts, engine: Engine
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._directory = directory
        self._ledger = Ledger(
            directory, accounts, settings.defaults, settings.default_memory_bytes, settings.steered_policies
        )
        self._engine = engine
        self._authenticator = Authenticator(directory)
        self._waiting: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._metrics = Metrics(settings.metrics_by_user)
        #: When the next message that is dropped at the agents' door may be logged (monotonic).
        self._next_note = 0.0
        #: Nodes that the engine does not see any more, and why; what their agents say counts more.
        self._unseen: dict[str, str] = {}
        self._keeping: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        #: Whether the pool, and not only this process, is to end; and whether it is about to.
        self.was_stopped_by_operator = False

    async def run(self) -> None:
        """Serve until `stop` is called or an operator stops the pool."""
        self._forget_old(time() - _KEEP_CLOSED_SECONDS)
        context = zmq.asyncio.Context()
        # Before any socket is bound: libzmq admits everybody while it finds no authenticator.
        known = self._authenticator
        doors = {ZAP_DOMAIN: LookedUpKeys(known.is_user), AGENTS_DOMAIN: LookedUpKeys(known.is_agent)}
        guard = guard_async(context, doors)
        try:
            with ExitStack() as stack:
                users = stack.enter_context(context.socket(zmq.ROUTER))
                agents = stack.enter_context(context.socket(zmq.ROUTER))
                users.router_mandatory = True  # so that it is known whether whoever asked is still there
                as_server(users, self._keys, _MOST_REQUEST_BYTES)
                as_server(agents, self._keys, _MOST_REPORT_BYTES, AGENTS_DOMAIN)
                for door, endpoints in (
                    (users, self._settings.client_endpoints),
                    (agents, self._settings.agent_endpoints),
                ):
                    await open_door(door, endpoints, stack)
                if self._settings.metrics_port:
                    stack.callback(MetricsDoor(self._metrics, self._settings.metrics_port).close)
                await self._serve(users, agents)
        finally:
            guard.stop()
            context.destroy(linger=0)

    def stop(self) -> None:
        """End the gateway and nothing else; sessions, executors and agents go on."""
        self._stop.set()

    def _forget_old(self, before: float) -> None:
        try:
            self._directory.forget_closed(before)
            self._ledger.accounts.forget_meters(before)
        except sqlite3.Error as error:  # a full disk, say: there is always the next start
            log.error("old records cannot be dropped: %s", error)

    async def _serve(self, users: zmq.asyncio.Socket, agents: zmq.asyncio.Socket) -> None:
        self._users = users
        self._agents = agents
        settings, ledger, changes = self._settings, self._ledger, Changes()
        drained, silence_seconds = self._directory.drained, settings.node_silence_seconds
        self._nodes = Nodes(agents, silence_seconds, settings.sessions_per_device, changes, drained, ledger.members)
        self._members = Members(settings, self._directory, self._nodes)
        self._sessions = sessions = Sessions(self._directory, self._nodes, ledger, changes, Seals(self._keys))
        self._line = Line(self._directory, changes, self._placeable, sessions.held, self._weight, settings.placement)
        self._opening = Opening(settings, self._nodes, sessions, ledger, changes, self._line)
        ordered, views = self._line.ordered, self._members.views
        self._showing = Showing(settings, sessions, ledger, self._loads, ordered, views, time())
        self._desk = Desk(settings, sessions, ledger, self._opening, self._showing)
        async with asyncio.TaskGroup() as group:
            self._group = group
            loops = [
                group.create_task(loop)
                for loop in (self._hear_users(), self._hear_agents(), self._watch_nodes(), self._watch_time())
            ]
            log.info("pool %s is open at %s", self._settings.pool, ", ".join(self._settings.client_endpoints))
            await self._stop.wait()
            for task in [*loops, *self._keeping]:
                task.cancel()

    def _loads(self) -> list[DeviceLoad]:
        return with_sessions(self._nodes.devices(), self._sessions.all.values(), self._ledger.mixes())

    def _placeable(self) -> list[DeviceLoad]:
        return placeable(self._loads(), self._settings.needs_walls)

    def _weight(self, user: str) -> float:
        return self._ledger.entitlements.weight("user", user)

    # --- users --------------------------------------------------------------------------------------------------------

    async def _hear_users(self) -> None:
        while True:
            frames = await self._users.recv_multipart(copy=False)
            self._hear_user(frames)
            await asyncio.sleep(0)  # a flood must not keep agents and time from being heard

    def _hear_user(self, frames: Sequence[zmq.Frame]) -> None:
        route = frames[0].bytes
        try:
            key = key_of(frames)
            user = self._authenticator.user(key)
            if user is None:
                message = "The key is not, or not any more, that of a user."
                self._answer(route, Denied(0, RefusalCode.NOT_AUTHORIZED, message, "Ask the pool's operator."))
                return
            request = _requests.decode([frame.buffer for frame in frames[1:]])
        except WireError as error:
            self._answer(route, Denied(0, _CODES.get(type(error), RefusalCode.MALFORMED), str(error)))
            return
        if isinstance(request, StopPool):
            self._answer(route, self._stop_pool(user, request))
        elif self._waiting[key] >= _MOST_WAITING:
            message = f"{_MOST_WAITING} requests of yours are waiting already."
            self._answer(route, Denied(request.request, RefusalCode.OVER_CREDIT, message, "Wait for their answers."))
        else:
            self._waiting[key] += 1
            self._group.create_task(self._serve_user(route, user, key, request))

    async def _serve_user(self, route: bytes, user: User, key: str, request: Request) -> None:
        try:
            answer = await self._desk.answer(user, key, request)
            if not self._answer(route, answer):
                self._desk.take_back(request, answer)
        except Exception:  # whatever one request runs into, the other users' sessions must not suffer from it
            log.exception("a request could not be answered")
            message = "The gateway ran into an error of its own."
            remedy = "Ask the operator to read its log."
            self._answer(route, Denied(request.request, RefusalCode.LAUNCH_FAILED, message, remedy))
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]

    def _answer(self, route: bytes, answer: FromGateway) -> bool:
        """Send an answer; tell whether whoever asked was there to have it."""
        if isinstance(answer, Denied):
            self._refusals[answer.code] += 1
        return send_now(self._users, [route, *encode(answer)])

    # --- agents -------------------------------------------------------------------------------------------------------

    async def _hear_agents(self) -> None:
        while True:
            frames = await self._agents.recv_multipart(copy=False)
            try:
                self._hear_agent(frames)
            except WireError as error:
                self._note_dropped(error)
            except Exception as error:  # the node's next report puts it right; the other nodes must not suffer from it
                self._note_dropped(error, has_traceback=True)
            await asyncio.sleep(0)  # receiving yields only where nothing is there: users and time come in between

    def _note_dropped(self, error: Exception, has_traceback: bool = False) -> None:
        """Log what was dropped at the agents' door, once a second: a node that is none any more may go on for ever."""
        if monotonic() >= self._next_note:
            trace = error if has_traceback else None
            log.warning("a message at the agents' door was dropped: %s", error, exc_info=trace)
            self._next_note = monotonic() + 1.0

    def _hear_agent(self, frames: Sequence[zmq.Frame]) -> None:
        route, key = frames[0].bytes, key_of(frames)
        node = self._authenticator.node(key)
        if node is None and not self._authenticator.is_invited(key):  # before anything of theirs is read
            raise MalformedMessage("it does not come from an agent")
        try:
            message = _reports.decode([frame.buffer for frame in frames[1:]])
        except ForeignVersion as error:  # of the answer it will read no more than our version, and say both
            send_now(self._agents, [route, *encode(Denied(0, RefusalCode.FOREIGN_VERSION, str(error)))])
            raise ForeignVersion(f"{node or 'a machine that is to join'}: {error}") from None
        if isinstance(message, Join):
            send_now(self._agents, [route, *encode(self._members.join(key, message))])
            return
        if node is None:
            raise MalformedMessage("it does not come from an agent")
        if isinstance(message, AskNode | AskCluster | Leave):
            if isinstance(message, Leave):
                self._let_go(node)
            answer = self._members.ask(node, message, self._sessions.all.values())
            send_now(self._agents, [route, *encode(answer)])
        elif isinstance(message, NodeReport):
            report = fit_report(message)
            if self._nodes.has_left(node, route):  # it still ends, and no report of it brings sessions back
                self._sessions.book(node, report)
                send_now(self._agents, [route, *encode(StopNode(_TAKEN_OUT.format(node)))])  # the first may be lost
                return
            self._nodes.note(node, route, report)
            self._sessions.reconcile(node, report)
        else:
            self._sessions.hear(node, fit_word(message))

    async def _watch_nodes(self) -> None:
        async for event in self._engine.watch():
            log.info("node %s: %s. %s", event.node, event.change, event.detail)
            if event.change is NodeChange.JOINED:
                self._unseen.pop(event.node, None)
                keeping = self._group.create_task(self._keep_agent(event.node))  # the next node does not wait for it
                self._keeping.add(keeping)
                keeping.add_done_callback(self._keeping.discard)
            elif event.change is NodeChange.LOST:
                self._unseen[event.node] = event.detail

    async def _keep_agent(self, node: str) -> None:
        if self._opening.is_over:
            return  # the pool is ending, and this node's agent with it
        try:
            await self._engine.ensure_agent(node)
        except LookupError as error:
            log.info("node %s is gone again: %s", node, error)

    def _give_up_lost(self) -> None:
        """Take the nodes for lost that neither the engine sees nor an agent speaks for, and those that are no more."""
        for node in self._unseen.keys() - self._nodes.names():
            detail = self._unseen.pop(node)
            self._nodes.forget(node)
            self._sessions.lose_node(node, f"The node {node} was lost. {detail}".strip())
        for node, reason in list(self._members.gone(self._sessions.all.values())):
            self._sessions.lose_node(node, reason)
        for node in self._members.removed():
            self._nodes.send(node, StopNode(f"The node {node} was removed from the pool by its operator."))
            self._nodes.forget(node)

    def _let_go(self, node: str) -> None:
        """Give up a node that is taken down, with all that is on it, before anybody is told by its silence."""
        reason = _TAKEN_OUT.format(node)
        self._nodes.send(node, StopNode(reason))
        self._nodes.leave(node)
        self._sessions.lose_node(node, reason)

    # --- time and the end ---------------------------------------------------------------------------------------------

    async def _watch_time(self) -> None:
        while True:
            if not await attention.paused_in_time(_TICK_SECONDS):
                continue  # nobody is taken for silent before it was heard what they said while this process stood still
            self._sessions.record_late()
            self._sessions.apply(ev.TimePassed())
            self._give_up_lost()
            self._close_shut_out()
            self._close_over_quota()
            self._ledger.settle_shares(self._nodes.names())
            self._sessions.settle_terms()
            self._line.expire()
            self._ledger.forget(self._sessions.all)
            if self._settings.metrics_port:
                self._metrics.figures = self._figures()

    def _figures(self) -> Figures:
        view = self._showing.pool(User("", True), AskPool(0))
        waits, waited_seconds = self._opening.waits, self._opening.waited_seconds
        used, classes = dict(self._ledger.gpu_seconds), dict(self._ledger.accounts.class_seconds)
        return Figures(view, used, classes, dict(self._refusals), waits, waited_seconds)

    def _close_over_quota(self) -> None:
        if not self._settings.closes_over_quota:
            return
        for session in self._sessions.held():
            if self._ledger.is_over_quota(session.user):
                reason = "The GPU time of its user, or of their group, is used up."
                self._sessions.apply(ev.CloseWanted(session.id, reason))

    def _close_shut_out(self) -> None:
        held = self._sessions.held()
        openers = {(session.client_key, session.user) for session in held}
        whys = {opener: self._authenticator.shut_out(*opener) for opener in openers}
        for session in held:
            if why := whys[session.client_key, session.user]:
                self._sessions.apply(ev.CloseWanted(session.id, why))

    def _stop_pool(self, user: User, request: StopPool) -> FromGateway:
        if not user.is_operator:
            message = f"{user.name} is not an operator of this pool."
            return Denied(request.request, RefusalCode.NOT_AUTHORIZED, message, "Ask the pool's operator.")
        self._opening.is_over = True
        self._group.create_task(self._end_pool())
        return Done(request.request)

    async def _end_pool(self) -> None:
        for session in list(self._sessions.all.values()):
            self._sessions.apply(ev.CloseWanted(session.id, "The pool was stopped by its operator."))
        nodes = await self._engine.nodes()
        until = monotonic() + self._settings.stop_seconds
        for node in nodes:  # machines that joined stay ready for when the pool is up again
            self._nodes.send(node, StopNode("The pool was stopped by its operator."))
        while (self._nodes.processes(nodes) or self._is_closing_beside(nodes)) and monotonic() < until:
            await asyncio.sleep(0.02)
        if self._sessions.has_untold:
            with suppress(TimeoutError):
                async with asyncio.timeout(_UNTOLD_SECONDS):
                    await self._stop.wait()
        for node in nodes:
            await self._engine.stop_agent(node)
        self.was_stopped_by_operator = True
        self.stop()

    def _is_closing_beside(self, nodes: Sequence[str]) -> bool:
        others = set(self._nodes.names()) - set(nodes)
        return any(s.state is SessionState.CLOSING and s.node in others for s in self._sessions.all.values())
