"""The executor's process: sockets around the conversation, one loop, and the leases that end it."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable
from time import monotonic, perf_counter, process_time_ns, sleep

from gpu_backend.devices.base import Device
from gpu_backend.executor import config as configuration
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.control_door import Gates, Order
from gpu_backend.executor.conversation import Conversation
from gpu_backend.executor.gate import Gate
from gpu_backend.executor.op_classes import OpClasses
from gpu_backend.executor.pace import LONG_OP_SECONDS, Pace
from gpu_backend.executor.ports import Ports
from gpu_backend.executor.program.run import OpStream
from gpu_backend.wire import control
from gpu_backend.wire.control import EndCause
from gpu_backend.wire.messages import Want, Welcome

log = logging.getLogger("executor")

#: How long to look for the next message without sleeping, seconds: a wake-up costs more than most ops.
_SPIN_SECONDS = 60e-6
#: How long to look for the gate to open for what is short and awaited, seconds: its arbiter takes less to answer.
_URGENT_SECONDS = 0.4e-3
#: How long to look for another's short op to be done, seconds: most take less, and the device is idle from then on.
_YIELD_SECONDS = 2e-3
#: How long ops run before the sockets are looked at, seconds: bounds how late a Cancel is seen.
_SLICE_SECONDS = 0.01
#: How long to sleep at most while the device works, or the notebook does not read, seconds.
_DEVICE_SECONDS = 1e-3
#: How long to sleep at most behind a shut gate while a long op runs, seconds: others may wait for its end.
_DRAIN_SECONDS = 0.25e-3
#: How long to sleep at most behind a shut gate, seconds: its arbiter rings, unless it dies.
_SHUT_SECONDS = 0.1
#: How often to look how much memory is held while ops run, seconds.
_MEASURE_SECONDS = 0.02
#: The last moment of a pause is spent awake, seconds: being woken takes a good part of it, and many ops take no longer.
_WAKE_SECONDS = 0.1e-3
#: How often to look whether the session's owner still runs, seconds.
_OWNER_SECONDS = 0.25
#: How long to sleep at most, seconds: bounds how late a lease's or an owner's end is seen.
_SLEEP_SECONDS = 1.0

EXIT_ORDERED = 0
EXIT_FATAL = 3


class Executor:
    """Serves one session on one device, from its assignment to its end."""

    def __init__(self, config: configuration.ExecutorConfig, device: Device, ports: Ports) -> None:
        self._config = config
        self._device = device
        self._ports = ports
        self._stream = OpStream(device, config.passes)
        self._pace = Pace(device.marker)
        self._classes = OpClasses()
        self._gate = Gate(config.descriptors.report, config.has_arbiter, self._pace)
        self._held_bytes = self._peak_bytes = 0
        self._measured_at = 0.0
        self._has_answered = False  # the last op that ran
        self._conversation: Conversation | None = None
        self._assignment: control.Assign | None = None
        self._wanted_until = monotonic() + config.orphan_seconds
        self._heard = monotonic()
        self._owner: bytes | None = None  # the connection whose process is watched
        self._owner_seen = 0.0
        self._ended: str | None = None
        self._cause = ""
        self._status = EXIT_ORDERED

    def run(self) -> int:
        """Serve until something ends the session; return the exit status."""
        self._report()
        while self._ended is None:
            self._receive()
            talk = self._conversation
            if talk is not None and talk.has_work:
                self._tell_gate(talk)  # first: what is short and awaited shuts the others' gates
                self._run_ops(talk)
                self._measure_memory_if_due()  # not before: somebody may wait
            self._check_leases()
        self._finish()
        return self._status

    # --- ops ----------------------------------------------------------------------------------------------------------

    def _run_ops(self, conversation: Conversation) -> None:
        try:
            self._run_while_open(conversation)
        finally:
            self._gate.note_return()

    def _run_while_open(self, conversation: Conversation) -> None:
        stream, pace, classes = self._stream, self._pace, self._classes
        until = perf_counter() + _SLICE_SECONDS
        while (batch := conversation.front()) is not None:
            before = batch.next
            if conversation.is_cancelled(batch):  # needs no gate: nothing is launched
                place, answer = stream.cancel(batch)
                conversation.advance(batch, place)
                self._send(conversation, answer)
            elif self._may_launch():
                self._gate.note_launch()
                pace.begin(batch.ops[before].want is Want.CONTENTS)
                place, answer = stream.run(batch, until, pace.run_ops if not self._is_passing else len(batch.ops))
                ended_at = perf_counter()
                conversation.advance(batch, place)
                self._send(conversation, answer)  # before the bookkeeping: somebody waits for it
                classes.count(batch.ops, before, place, pace.counts)
                pace.note_launches(place - before, answer is not None, ended_at, conversation.applied)
                self._note_done(conversation)
            else:
                return
            self._has_answered = answer is not None
            if self._ended is not None or perf_counter() > until:
                return

    def _send(self, conversation: Conversation, answer: Answer | None) -> None:
        if answer is not None:
            conversation.answer(answer)
            self._ports.send(conversation.outbox)
            if answer.fatal and answer.error is not None:
                self._end(f"The device failed: {answer.error.message}", EndCause.DEVICE_FAULT, EXIT_FATAL)

    @property
    def _is_passing(self) -> bool:
        return self._gate.is_passing

    def _may_launch(self) -> bool:
        return self._gate.may_launch() and not self._pace.is_full()

    def _tell_gate(self, conversation: Conversation, is_resting: bool = False) -> None:
        self._gate.tell(conversation.queued_ops, conversation.is_awaited, self._held_bytes, is_resting)

    def _note_done(self, conversation: Conversation) -> None:
        pace = self._pace
        conversation.note_done(pace.done_through if pace.in_flight_ops else conversation.applied, pace.used_seconds)

    def _measure_memory_if_due(self) -> None:
        now = perf_counter()
        if now - self._measured_at > _MEASURE_SECONDS:
            self._measured_at = now
            self._measure_memory()

    def _measure_memory(self) -> None:
        self._held_bytes = self._device.held_bytes()
        self._peak_bytes = max(self._peak_bytes, self._held_bytes)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _receive(self) -> None:
        talk = self._conversation
        if talk is None:
            self._take_in(_SLEEP_SECONDS)
            return
        self._note_done(talk)
        self._ports.send(talk.outbox)
        if talk.has_work:
            if self._may_launch():
                self._take_in(0)
            else:
                self._await_leave(talk)
            return
        self._pace.close_group()
        if self._has_answered and self._gate.is_contended:
            self._tell_gate(talk)  # the notebook takes a while to ask for more: others may have it meanwhile
        if self._spin(self._ports.hears_peers):
            return
        self._pace.collect()
        self._note_done(talk)
        talk.report_progress()
        self._ports.send(talk.outbox)
        self._measure_memory_if_due()
        self._tell_gate(talk, is_resting=True)
        self._take_in(self._timeout(talk))

    def _await_leave(self, talk: Conversation) -> None:
        """Wait until the gate opens or the device has room, and hear the notebook and the agent meanwhile."""
        gate, pace = self._gate, self._pace
        if not gate.may_launch():
            before = process_time_ns()
            self._await_gate(gate, talk)
            gate.end_wait()
            gate.note_other_work(process_time_ns() - before)
        elif not gate.is_contended:
            self._take_in(_DEVICE_SECONDS)
        elif pace.op_seconds < _DEVICE_SECONDS:
            # A short window is soon empty: sleeping would leave the device idle.
            self._spin(lambda: not pace.is_full() or self._ports.hears_peers())
        else:
            sleep(_SPIN_SECONDS)
            self._take_in(0)

    def _await_gate(self, gate: Gate, talk: Conversation) -> None:
        self._pace.close_group()
        self._pace.collect()
        self._tell_gate(talk, is_resting=True)
        spin_seconds = _YIELD_SECONDS if gate.is_yielding else _URGENT_SECONDS if gate.is_urgent else 0.0
        if self._spin(lambda: gate.may_launch() or self._ports.hears_peers(), spin_seconds):
            return
        if not gate.may_launch():
            self._sit_out(gate)

    def _sit_out(self, gate: Gate) -> None:
        pause = shut_pause(gate, self._pace)
        if pause >= _DEVICE_SECONDS or not gate.is_pausing:
            self._take_in(pause)
            return
        left = gate.pause_seconds
        if not left:  # what runs takes longer than was thought
            sleep(pause)
        elif left > _WAKE_SECONDS:
            sleep(left - _WAKE_SECONDS)
        self._spin(lambda: gate.may_launch() or self._ports.hears_peers(), min(left, _WAKE_SECONDS))

    def _spin(self, is_over: Callable[[], bool], seconds: float = _SPIN_SECONDS) -> bool:
        until = perf_counter() + seconds
        while perf_counter() < until:
            if is_over():
                break
        return self._take_in(0)

    def _timeout(self, talk: Conversation) -> float:
        if talk.has_work or talk.outbox or self._pace.in_flight_ops:
            return _DEVICE_SECONDS  # waiting for the device or for the peer to read
        return _SLEEP_SECONDS

    def _take_in(self, timeout_seconds: float) -> bool:
        ready = self._ports.wait(timeout_seconds)
        if ready.data and self._conversation is not None:
            self._heard = monotonic()
            for peer, frames in self._ports.read_data():
                self._conversation.receive(peer, frames)
            if self._conversation.owner != self._owner:
                self._owner = self._conversation.owner
                self._ports.watch_owner(self._owner)
            if self._conversation.released:
                self._end("The notebook released the session.", EndCause.RELEASED)
        if ready.control:
            for order in self._ports.control.read():
                self._obey(order)
        return ready.data or ready.control

    def _obey(self, order: Order) -> None:
        if isinstance(order, Gates):
            self._take_gates(order)
            return
        if isinstance(order, control.RenewLease):
            self._wanted_until = monotonic() + order.seconds
        elif isinstance(order, control.Stop):
            self._end(order.reason, EndCause.STOPPED)
            return
        elif self._assignment is None:
            self._assign(order)
        self._report()

    def _take_gates(self, gates: Gates) -> None:
        self._ports.hear_bell(None)
        try:
            self._gate.take(*gates)
        except OSError as error:
            log.error("what an arbiter handed over is of no use: %s", error)
        self._ports.hear_bell(self._gate.line)

    def _assign(self, order: control.Assign) -> None:
        self._assignment = order
        self._heard = monotonic()
        if order.memory_limit_bytes:
            self._device.set_memory_limit(order.memory_limit_bytes)
        self._stream.limit_memory(order.memory_limit_bytes, order.memory_rule)
        info = self._device.info
        welcome = Welcome(
            0,
            order.epoch,
            self._config.credit_ops,
            self._config.credit_bytes,
            self._device.memory().limit_bytes,
            dict(info._asdict()),
        )
        self._conversation = Conversation(welcome, order.session)

    # --- leases and the end -------------------------------------------------------------------------------------------

    def _check_leases(self) -> None:
        lapse = self._lapse()
        if lapse is not None and not self._take_in(0):  # it may have been heard while a long op ran
            self._end(*lapse)

    def _lapse(self) -> tuple[str, EndCause] | None:
        now = monotonic()
        if now > self._wanted_until:
            return "Nobody in the pool answers for this executor any more.", EndCause.ORPHANED
        if self._assignment is not None and now - self._heard > self._assignment.lease_seconds:
            return f"The notebook was not heard for {self._assignment.lease_seconds:.0f} s.", EndCause.LEASE_LAPSED
        if self._owner is not None and now - self._owner_seen > _OWNER_SECONDS:
            self._owner_seen = now
            if self._ports.has_owner_ended():
                return "The process that held the session has ended.", EndCause.CLIENT_ENDED
        return None

    def _end(self, reason: str, cause: EndCause, status: int = EXIT_ORDERED) -> None:
        self._ended, self._cause, self._status = reason, cause, status

    def _finish(self) -> None:
        reason = self._ended or ""
        log.info("ends: %s", reason)
        if self._conversation is not None:
            self._conversation.end(reason)
            self._ports.send(self._conversation.outbox)
            self._pace.close_group()
            self._pace.collect()
            self._tell_gate(self._conversation, is_resting=True)
        self._report()
        self._ports.close()

    def _report(self) -> None:
        assigned = self._assignment
        phase = control.Phase.WARM if assigned is None else control.Phase.SERVING
        self._ports.control.report(
            control.Report(
                phase=str(control.Phase.ENDING if self._ended is not None else phase),
                session=assigned.session if assigned else "",
                epoch=assigned.epoch if assigned else 0,
                pid=os.getpid(),
                used_bytes=0 if self._status == EXIT_FATAL else self._device.memory().used_bytes,
                ops=self._conversation.applied if self._conversation else 0,
                idle_seconds=monotonic() - self._heard,
                detail=self._ended or "",
                cause=self._cause,
                usage=self._usage(),
            )
        )

    def _usage(self) -> control.Usage:
        talk = self._conversation
        if self._status != EXIT_FATAL:
            self._pace.collect()
            self._measure_memory()
        return control.Usage(
            self._pace.used_seconds,
            self._peak_bytes,
            talk.received_bytes if talk else 0,
            talk.sent_bytes if talk else 0,
            tuple(self._pace.used_by_class),
        )


def shut_pause(gate: Gate, pace: Pace) -> float:
    """Return how long to sleep at most behind a shut gate, seconds."""
    if pace.in_flight_ops and pace.op_seconds > LONG_OP_SECONDS:
        return _DRAIN_SECONDS
    if gate.is_pausing:
        return min(gate.pause_seconds, _SHUT_SECONDS) or (_SPIN_SECONDS if pace.in_flight_ops else _DEVICE_SECONDS)
    return _DEVICE_SECONDS if pace.in_flight_ops or gate.is_way_taken else _SHUT_SECONDS


def serve(config: configuration.ExecutorConfig, device: Device) -> int:
    """Be the executor that ``config`` describes, on ``device``, until something ends it; return the exit status."""
    if config.memory_limit_bytes:
        device.set_memory_limit(config.memory_limit_bytes)
    # Ops and their values come and go by the thousand and hold no cycles; what was imported stays for good.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    return Executor(config, device, Ports(config)).run()
