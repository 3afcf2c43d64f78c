"""One executor as its agent holds it: process, connection, and what it last reported."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from time import monotonic

from gpu_backend.engine.detached import ProcessId, Watched
from gpu_backend.executor.config import CONTROL
from gpu_backend.gate.roster import Member
from gpu_backend.node import launcher, shares
from gpu_backend.node.control_link import ControlLink
from gpu_backend.node.places import Place, Places
from gpu_backend.node.shares import Share
from gpu_backend.wire.channels import TakeChannel
from gpu_backend.wire.control import Booked, EndCause, Usage
from gpu_backend.wire.figures import fit_seconds
from gpu_backend.wire.orders import Assign, Phase, RenewLease, Report, Stop

log = logging.getLogger("node.executor")

#: How often leases are renewed, seconds; each renewal brings a report.
_RENEW_SECONDS = 2.0
#: Pause behind reports that come faster than they are read, seconds.
_FLOOD_SECONDS = 0.05
#: Messages that are no reports after which an executor is ended: it sends none itself, only native code in it can.
_MOST_DROPPED = 16


class Stage(Enum):
    """How far an executor is, for its agent."""

    STARTING = 1  #: it was not heard yet
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

    @property
    def was_ordered(self) -> bool:
        """Whether it was told to."""
        return self.cause in (EndCause.STOPPED, EndCause.KILLED)


class Executor:
    """Follows one process from its start, or its adoption, to its end."""

    def __init__(self, directory: Path, identity: ProcessId, places: Sequence[Place]) -> None:
        self.directory = directory
        #: What it was told to serve, be it by an earlier agent.
        self.assignment = launcher.assignment_in(directory)
        #: Whether it ever said that it does.
        self.has_served = launcher.is_serving(directory)
        #: Who uses it, on which terms.
        self.share = shares.noted(directory, self.assignment) if self.assignment is not None else None
        self.stage = Stage.SERVING if self.has_served else Stage.STARTING
        #: What it was told when it was started.
        self.config = launcher.config_in(directory)
        #: Whether a fault on its device, its own or another's, has ended all that it could compute.
        self.is_felled = False
        self.report: Report | None = None
        self._reported_at = monotonic()
        #: How many executors its session was given, this one included.
        self.tries = 0
        #: When `stage` last changed.
        self.since = monotonic()
        self.identity = identity
        reports = self.config.descriptors.reports if self.config is not None else ()
        self._places = Places(identity, places, reports)
        self._link = ControlLink(directory / CONTROL)
        self._stop_reason = ""
        self._stop = asyncio.Event()

    async def tend(self, times: Times, changed: Callable[[Executor], None]) -> End:
        """Follow the executor to its end and return why it ended; ``changed`` hears of each stage and of last words."""
        self._changed = changed
        try:
            process = Watched(self.identity)
        except ProcessLookupError:
            return self._finish()
        ended = asyncio.create_task(process.ended())
        work = asyncio.create_task(self._converse(times))
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
            self._link.close()

    def assign(self, order: Assign, share: Share) -> None:
        """Choose a warm executor for a session, which `tell_assignment` tells it."""
        self.set_share(share)  # first: whoever finds the assignment finds whose it is
        launcher.note_assignment(self.directory, order)
        self.assignment = order
        self._set(Stage.ASSIGNED)

    def tell_assignment(self) -> None:
        """Have the executor serve the session that it was chosen for, unless it has been told to end meanwhile."""
        if self.assignment is not None and self.stage is Stage.ASSIGNED:
            self._link.send(self.assignment)

    def hand_over(self, order: TakeChannel, connected: socket.socket | None) -> None:
        """Give it a connection to another executor, or say that there is none; that is not waited for."""
        self._link.send(order, () if connected is None else (connected.fileno(),))

    def set_share(self, share: Share) -> None:
        """Note who uses it, and on which terms, from now on."""
        shares.note(self.directory, share)
        self.share = share

    @property
    def ordinals(self) -> tuple[int, ...]:
        """The devices that it is on."""
        return self._places.ordinals

    def member(self, ordinal: int) -> Member | None:
        """Return its line in the roster of the arbiter of one of its devices; None while it serves nobody."""
        order, share, config = self.assignment, self.share, self.config
        if order is None or share is None or config is None or self.stage is Stage.ENDED:
            return None
        terms = shares.session_terms(order, share)
        return self._places.member(ordinal, terms, str(self.directory / CONTROL))

    @property
    def group(self) -> str:
        """The group whose sessions share its fate, on a device that is shared by MPS; empty if it ends alone."""
        return self.config.group if self.config is not None else ""

    @property
    def daemon(self) -> str:
        """The MPS daemon by which it computes; empty for none."""
        return self.config.daemon if self.config is not None else ""

    @property
    def was_heard(self) -> bool:
        """Whether it came up, as far as this agent or one before it knows."""
        return self.report is not None or self.has_served

    def booked(self) -> list[Booked]:
        """Return what the arbiter of each of its devices has on its books of it."""
        return self._places.booked()

    def held_bytes(self) -> list[int]:
        """Return what it holds on each of its devices, as it says itself."""
        return self._places.held_bytes()

    @property
    def idle_seconds(self) -> float:
        """How long its notebook may not have been heard, seconds: in the middle of an op it hears nobody."""
        said = self.report.idle_seconds if self.report is not None else 0.0
        return fit_seconds(max(0.0, said) + monotonic() - self._reported_at)

    def usage(self) -> Usage:
        """Return what it used, within bounds; what its page says is newer than its reports and survives its death."""
        return self._places.usage(self.report.usage if self.report is not None else Usage())

    def forget(self) -> None:
        """Remove what its arbiters kept of it, once it has ended and all is told."""
        self._places.forget()

    def stop(self, reason: str) -> bool:
        """Tell the executor to end; it is killed if it does not. Tell whether it had not been told before."""
        if self._stop_reason:
            return False
        self._stop_reason = reason
        self._set(Stage.ENDING)
        self._link.send(Stop(reason))
        self._stop.set()
        return True

    def serves(self, session: str, epoch: int) -> bool:
        """Tell whether the executor was assigned to this session and epoch."""
        return self.assignment is not None and (self.assignment.session, self.assignment.epoch) == (session, epoch)

    # --- conversation -------------------------------------------------------------------------------------------------

    async def _converse(self, times: Times) -> None:
        """Renew the lease and hear reports; return if it does not come up in time."""
        until = monotonic() + times.start_seconds
        renewed = 0.0
        while self.stage is not Stage.STARTING or monotonic() < until:
            if monotonic() - renewed >= min(_RENEW_SECONDS, times.orphan_seconds / 4):
                renewed = monotonic()
                self._link.send(RenewLease(times.orphan_seconds))
                await self._look_at_folder()
            await self._link.wait(_RENEW_SECONDS / 4)
            self._drain()
            if self._link.is_flooded:
                await asyncio.sleep(_FLOOD_SECONDS)
        log.error("the executor in %s did not come up within %.0f s", self.directory, times.start_seconds)

    async def _look_at_folder(self) -> None:
        """End an executor that fills the disk."""
        if await asyncio.to_thread(launcher.is_too_large, self.directory):
            self.stop("It has written more into its own folder than an executor may.")

    def _drain(self) -> None:
        for report in self._link.read():
            self._take_in(report)
        if self._link.dropped > _MOST_DROPPED:
            self.stop("It went on sending its agent what is no report.")

    def _take_in(self, report: Report) -> None:
        if self.report is None:
            launcher.note_ready(self.directory)
        before, said, self.report = self.stage, self.report, report
        self._reported_at = monotonic()
        if report.phase == Phase.ENDING:
            self._set(Stage.ENDING)
        elif self.stage is Stage.ENDING:
            return  # it has not read the order yet
        elif report.phase == Phase.SERVING:
            self._note_serving()
        elif self.stage is Stage.STARTING:
            self._meet_warm()
        # Mere counters wait for the agent's next report: else each of n executors would have all n told anew.
        is_last = report.phase == Phase.ENDING and (said is None or said.phase != Phase.ENDING)
        if self.stage is not before or is_last:
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
            self._link.send(self.assignment)

    async def _kill_late(self, process: Watched, times: Times) -> None:
        await self._stop.wait()
        if not self.was_heard:  # it may not hear us yet, and has nothing to say goodbye to
            process.send_signal(signal.SIGTERM)
        await asyncio.sleep(times.stop_seconds)
        log.warning("the executor in %s did not end within %.0f s: killed", self.directory, times.stop_seconds)
        process.send_signal(signal.SIGKILL)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _finish(self) -> End:
        self._set(Stage.ENDED)
        report = self.report
        if verdict := self._places.verdict():
            return End(EndCause.EVICTED, verdict)
        has_spoken = report is not None and report.phase == Phase.ENDING
        if self._stop_reason:
            return End(EndCause.STOPPED if has_spoken else EndCause.KILLED, self._stop_reason)
        if report is not None and has_spoken:
            return said_end(report)
        words = launcher.last_words(self.directory)
        return End(
            EndCause.CRASHED, "The executor died without a word" + (f"; its log ends: {words}" if words else ".")
        )

    def _set(self, stage: Stage) -> None:
        if stage is self.stage:
            return
        self.stage = stage
        self.since = monotonic()
        if stage is Stage.ENDING:
            with suppress(OSError):  # a full disk, say: it counts as serving until it is gone
                launcher.note_ending(self.directory)  # before the gateway hears of it, and people hear it there


@dataclass(frozen=True, slots=True)
class Times:
    """How long things may take, seconds; see `NodeSettings`."""

    orphan_seconds: float
    start_seconds: float
    stop_seconds: float


def said_end(report: Report) -> End:
    """Return why an executor ends, by its own last words."""
    try:
        cause = EndCause(report.cause)
    except ValueError:
        cause = EndCause.CRASHED
    return End(cause, launcher.readable(report.detail))
