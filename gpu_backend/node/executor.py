"""One executor as its agent holds it: process, connection, and what it last reported."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from time import monotonic

import zmq
import zmq.asyncio

from gpu_backend.arbiter import gate
from gpu_backend.arbiter.roster import BELL, Member
from gpu_backend.engine.detached import ProcessId, Watched
from gpu_backend.node import launcher, shares
from gpu_backend.node.shares import Share
from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.sockets import as_client, send_now
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.control import Assign, EndCause, FromExecutorControl, Phase, RenewLease, Report, Stop, Usage
from gpu_backend.wire.errors import WireError

log = logging.getLogger("node.executor")

#: How often ``state.json`` is looked for while an executor starts, seconds.
_LOOK_SECONDS = 0.01
#: How often leases are renewed, seconds; each renewal brings a report.
_RENEW_SECONDS = 2.0

_reports: Codec[FromExecutorControl] = Codec(FromExecutorControl)


class Stage(Enum):
    """How far an executor is, for its agent."""

    STARTING = 1  #: it does not listen yet
    WARM = 2  #: ready for a session
    ASSIGNED = 3  #: told to serve one
    SERVING = 4  #: says that it does
    ENDING = 5  #: about to exit, of itself or because it was told to
    ENDED = 6


@dataclass(frozen=True, slots=True)
class End:
    """Why an executor ended, and in words."""

    cause: EndCause
    detail: str


class Executor:
    """Follows one process from its start, or its adoption, to its end."""

    def __init__(self, directory: Path, identity: ProcessId, ordinal: int) -> None:
        self.directory = directory
        self.ordinal = ordinal
        #: What it was told to serve, be it by an earlier agent.
        self.assignment = launcher.assignment_in(directory)
        #: Whether it ever said that it does.
        self.has_served = launcher.is_serving(directory)
        #: Who uses it, on which terms.
        self.share = shares.noted(directory, self.assignment) if self.assignment is not None else None
        self.stage = Stage.SERVING if self.has_served else Stage.STARTING
        #: What it says of itself, once it listens.
        self.state = launcher.state_in(directory) if self.has_served else None
        self.report: Report | None = None
        #: How many executors its session was given, this one included.
        self.tries = 0
        #: When `stage` last changed.
        self.since = monotonic()
        self.identity = identity
        config = launcher.config_in(directory)
        #: File of its gate's page.
        self.page = config.gate if config is not None else ""
        self._socket: zmq.asyncio.Socket | None = None
        self._stop_reason = ""
        self._stop = asyncio.Event()

    async def tend(
        self, context: zmq.asyncio.Context, keys: KeyPair, times: Times, changed: Callable[[Executor], None]
    ) -> End:
        """Follow the executor to its end and return why it ended; ``changed`` hears of each stage and of last words."""
        self._changed = changed
        try:
            process = Watched(self.identity)
        except ProcessLookupError:
            return self._finish()
        ended = asyncio.create_task(process.ended())
        work = asyncio.create_task(self._converse(context, keys, times))
        killer = asyncio.create_task(self._kill_late(process, times))
        try:
            await asyncio.wait({ended, work}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():  # it never came up
                process.send_signal(signal.SIGKILL)
                await ended
            self._drain()
            return self._finish()
        finally:
            for task in (ended, work, killer):
                task.cancel()
            await asyncio.gather(ended, work, killer, return_exceptions=True)
            process.close()
            if self._socket is not None:
                self._socket.close(linger=0)

    def assign(self, order: Assign, share: Share) -> None:
        """Have a warm executor serve a session."""
        self.set_share(share)  # first: whoever finds the assignment finds whose it is
        launcher.note_assignment(self.directory, order)
        self.assignment = order
        self._set(Stage.ASSIGNED)
        self._send(order)

    def set_share(self, share: Share) -> None:
        """Note who uses it, and on which terms, from now on."""
        shares.note(self.directory, share)
        self.share = share

    def member(self) -> Member | None:
        """Return its line in its arbiter's roster; None while it serves nobody."""
        if self.assignment is None or self.share is None or self.stage is Stage.ENDED:
            return None
        terms = shares.session_terms(self.assignment, self.share)
        return Member(terms, self.identity.pid, self.identity.start_time, self.page, str(self.directory / BELL))

    def usage(self) -> Usage:
        """Return what it used; GPU time as its page says, which is newer than its reports and survives its death."""
        said = self.report.usage if self.report is not None else Usage()
        page = gate.read_report(Path(self.page)) if self.page else None
        if page is None or page.used_ns / 1e9 <= said.gpu_seconds:
            return said
        peak = max(said.peak_bytes, page.memory_bytes)
        by_class = tuple([used / 1e9 for used in page.used_by_class_ns])
        return Usage(page.used_ns / 1e9, peak, said.received_bytes, said.sent_bytes, by_class)

    def stop(self, reason: str) -> bool:
        """Tell the executor to end; it is killed if it does not. Tell whether it had not been told before."""
        if self._stop_reason:
            return False
        self._stop_reason = reason
        self._set(Stage.ENDING)
        self._send(Stop(reason))
        self._stop.set()
        return True

    def serves(self, session: str, epoch: int) -> bool:
        """Tell whether the executor was assigned to this session and epoch."""
        return self.assignment is not None and (self.assignment.session, self.assignment.epoch) == (session, epoch)

    # --- conversation -------------------------------------------------------------------------------------------------

    async def _converse(self, context: zmq.asyncio.Context, keys: KeyPair, times: Times) -> None:
        self.state = state = await self._listening(times.start_seconds)
        if state is None:
            return
        self._socket = as_client(context.socket(zmq.DEALER), keys, state.server_key.encode())
        self._socket.connect(state.control)
        if self._stop_reason:
            self._send(Stop(self._stop_reason))
        renewed = 0.0
        while True:
            if monotonic() - renewed >= min(_RENEW_SECONDS, times.orphan_seconds / 4):
                renewed = monotonic()
                self._send(RenewLease(times.orphan_seconds))
            if await self._socket.poll(int(_RENEW_SECONDS * 250)):
                self._drain()

    async def _listening(self, seconds: float) -> launcher.ExecutorState | None:
        deadline = monotonic() + seconds
        while monotonic() < deadline:
            state = launcher.state_in(self.directory)
            if state is not None:
                return state
            await asyncio.sleep(_LOOK_SECONDS)
        log.error("the executor in %s did not come up within %.0f s", self.directory, seconds)
        return None

    def _drain(self) -> None:
        if self._socket is None:
            return
        plain: zmq.Socket[bytes] = zmq.Socket(shadow=self._socket)
        with suppress(zmq.Again):
            while True:
                frames = plain.recv_multipart(zmq.NOBLOCK)
                try:
                    self._take_in(_reports.decode(frames))
                except WireError as error:
                    log.warning("a report from %s was dropped: %s", self.directory, error)

    def _take_in(self, report: Report) -> None:
        before, self.report = self.stage, report
        if report.phase == Phase.ENDING:
            self._set(Stage.ENDING)
        elif self.stage is Stage.ENDING:
            return  # it has not read the order yet
        elif report.phase == Phase.SERVING:
            self._note_serving()
        elif self.stage is Stage.STARTING:
            self._meet_warm()
        # Mere counters wait for the agent's next report: else each of n executors would have all n told anew.
        if self.stage is not before or report.phase == Phase.ENDING:
            self._changed(self)

    def _note_serving(self) -> None:
        if not self.has_served:
            launcher.note_serving(self.directory)  # before the gateway hears of it: the next agent must know as much
            self.has_served = True
        self._set(Stage.SERVING)

    def _meet_warm(self) -> None:
        if self.assignment is None:
            self._set(Stage.WARM)
        else:  # the last agent was killed between noting the assignment and sending it
            self._set(Stage.ASSIGNED)
            self._send(self.assignment)

    async def _kill_late(self, process: Watched, times: Times) -> None:
        await self._stop.wait()
        if self._socket is None:  # it cannot hear us yet, and has nothing to say goodbye to
            process.send_signal(signal.SIGTERM)
        await asyncio.sleep(times.stop_seconds)
        log.warning("the executor in %s did not end within %.0f s: killed", self.directory, times.stop_seconds)
        process.send_signal(signal.SIGKILL)

    def _send(self, order: Assign | RenewLease | Stop) -> None:
        if self._socket is not None:
            send_now(self._socket, encode(order))

    # --- the end ------------------------------------------------------------------------------------------------------

    def _finish(self) -> End:
        self._set(Stage.ENDED)
        report, state = self.report, launcher.state_in(self.directory)
        if self._stop_reason:
            return End(EndCause.STOPPED, self._stop_reason)
        if report is not None and report.phase == Phase.ENDING:
            return End(_cause(report.cause), report.detail)
        if state is not None and state.ended:
            return End(_cause(state.cause), state.ended)
        words = launcher.last_words(self.directory)
        return End(
            EndCause.CRASHED, "The executor died without a word" + (f"; its log ends: {words}" if words else ".")
        )

    def _set(self, stage: Stage) -> None:
        if stage is not self.stage:
            self.stage = stage
            self.since = monotonic()


@dataclass(frozen=True, slots=True)
class Times:
    """How long things may take, seconds; see `NodeSettings`."""

    orphan_seconds: float
    start_seconds: float
    stop_seconds: float


def _cause(text: str) -> EndCause:
    try:
        return EndCause(text)
    except ValueError:
        return EndCause.CRASHED
