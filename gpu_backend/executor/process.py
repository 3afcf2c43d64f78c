"""The executor's process: carries out what `loop` says is next, with its sockets, gate and device; and its leases."""

from __future__ import annotations

import gc
import logging
import os
from time import perf_counter, process_time_ns
from typing import Final

from gpu_backend.devices.base import Device
from gpu_backend.executor import config as configuration
from gpu_backend.executor.answer import Answer, fault_in_words, told_of_fault
from gpu_backend.executor.control_door import Gates, Order
from gpu_backend.executor.conversation import Conversation
from gpu_backend.executor.instructions import (
    Check,
    Drop,
    Learn,
    Measure,
    Receive,
    Rehearse,
    Report,
    Run,
    Sleep,
    Spin,
    Stop,
    Wait,
)  # fmt: skip
from gpu_backend.executor.lanes import Lanes, make_lanes
from gpu_backend.executor.leases import Leases
from gpu_backend.executor.loop import Loop
from gpu_backend.executor.op_classes import OpClasses
from gpu_backend.executor.pace import FEW_OPS
from gpu_backend.executor.ports import Ports
from gpu_backend.executor.program.run import OpStream
from gpu_backend.executor.rehearsal import Rehearsal
from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.processors import has_spare
from gpu_backend.wire import control, orders
from gpu_backend.wire.control import EndCause
from gpu_backend.wire.messages import Want, Welcome
from gpu_backend.wire.version import MINOR_VERSION

log = logging.getLogger("executor")

_WORK: Final = Wait.WORK  # a member is found in its class by much searching
_GATE: Final = Wait.GATE
_CONTENTS: Final = Want.CONTENTS

#: How often who spins lets others have the interpreter, and the processor, seconds.
_YIELD_SECONDS: Final = 50e-6

#: Who hears nothing for so long has time for what is done in advance, seconds.
_IDLE_SECONDS: Final = 0.5

EXIT_ORDERED: Final = 0
EXIT_FATAL: Final = 3


class Executor:
    """Serves one session on its devices, from its assignment to its end."""

    def __init__(self, config: configuration.ExecutorConfig, device: Device, ports: Ports) -> None:
        self._config = config
        self._device = device
        self._ports = ports
        self._stream = OpStream(device, config.passes, config.kept_bytes, ports.channels)
        self._lanes = Lanes(make_lanes(config, device), device.held_bytes)
        self._has_several = device.count > 1
        self._gate, self._pace = self._lanes.all[0]  # of the current device
        self._classes = OpClasses()
        self._rehearsal = Rehearsal(self._stream.rehearse)
        self._loop = Loop(
            self._gate, self._pace, has_spare, lambda: self._stream.has_lesson, lambda: self._rehearsal.has_question
        )
        self._held_bytes = 0  # on the current device
        self._has_answered = False  # the last op that ran
        self._conversation: Conversation | None = None
        self._assignment: orders.Assign | None = None
        self._leases = Leases(config.orphan_seconds)
        self._owner: bytes | None = None  # the connection whose process is watched
        self._ended = ""  # why, once it has
        self._cause = ""
        self._status = EXIT_ORDERED
        device.landing = self._lend

    def run(self) -> int:
        """Serve until something ends the session; return the exit status."""
        self._report()
        self._prepare()
        while True:
            if self._has_several and self._lanes.turn(self._conversation):
                self._turn_to(self._lanes.number)
            match step := self._loop.next_step(self._conversation, perf_counter()):
                case Run() | Drop():
                    self._work(step)
                case Spin() | Report() | Sleep():  # early: to tell what a step is not takes a while
                    self._wait(step)
                case Receive():
                    self._loop.note_looked(perf_counter(), self._take_in(0))
                case Measure():
                    self._measure_memory()
                case Learn():
                    self._stream.learn()
                    self._loop.note_learnt(perf_counter(), self._take_in(0))
                case Rehearse():
                    self._rehearsal.hold()
                    self._loop.note_rehearsed(perf_counter(), self._take_in(0))
                case Check():
                    self._check_leases()
                case Stop():
                    break
        self._finish()
        return self._status

    # --- ops ----------------------------------------------------------------------------------------------------------

    def _work(self, step: Run | Drop) -> None:
        talk = self._conversation
        assert talk is not None
        if isinstance(step, Run):
            self._tell_gate(talk)  # first: what is short and awaited shuts the others' gates
            before = process_time_ns() if self._has_several else 0
            try:
                self._run_ops(talk, step.until)
            finally:
                self._gate.note_return()
                self._stream.let_go()
                if self._has_several:
                    self._lanes.note_other_work(process_time_ns() - before)
        else:
            self._drop_ops(talk, step.until)
        if not talk.has_work and self._ports.hears_peers():
            self._take_in(0)  # ops that have come meanwhile are timed with what ran
        if not talk.has_work:
            self._pace.close_group()
        self._ports.send(talk.outbox)
        if self._has_answered:
            self._pace.collect()  # all that was awaited is done: now, while the notebook thinks, not when it asks again
        self._loop.note_ran(perf_counter(), self._has_answered)

    def _turn_to(self, number: int) -> None:
        self._gate, self._pace = self._lanes.all[number]
        self._held_bytes = self._lanes.held_bytes[number]
        self._loop.turn_to(self._gate, self._pace)
        self._stream.turn_to(number)

    def _run_ops(self, conversation: Conversation, until: float) -> None:
        stream, pace, classes, batch = self._stream, self._pace, self._classes, conversation.front()
        while batch is not None:  # the first may be launched: the step says so
            before = batch.next
            self._gate.note_launch()
            most = len(batch.ops) if self._gate.is_passing else pace.run_ops
            most = self._lanes.most_ops(batch, most) if self._has_several else most
            pace.begin(batch.ops[-1].want is _CONTENTS and len(batch.ops) - before <= min(most, FEW_OPS))
            place, answer = stream.run(batch, until, most)
            ended_at = perf_counter()
            conversation.advance(batch, place)
            self._send(conversation, answer)  # before the bookkeeping: somebody waits for it
            if not self._has_several:
                self._rehearsal.note(batch.ops[min(place, len(batch.ops)) - 1], answer)
            is_question = classes.count(batch.ops, before, place, pace.counts)
            is_done = answer is not None and answer.is_synchronized
            pace.note_launches(place - before, answer is not None, ended_at, conversation.applied, is_done, is_question)
            self._note_done(conversation)
            if self._loop.is_over or perf_counter() > until:
                return
            batch = conversation.front()
            if batch is not None and not self._loop.may_launch():
                return
            if self._has_several and batch is not None and self._lanes.is_for_another(batch):
                return

    def _drop_ops(self, conversation: Conversation, until: float) -> None:
        self._rehearsal.forget()
        while conversation.is_cancelled and (batch := conversation.front()) is not None and not self._loop.is_over:
            place, answer = self._stream.cancel(batch)
            conversation.advance(batch, place)
            self._send(conversation, answer)
            if perf_counter() > until:
                break
        self._note_done(conversation)

    def _send(self, conversation: Conversation, answer: Answer | None) -> None:
        self._has_answered = answer is not None
        if answer is not None:
            answer = told_of_fault(answer, self._config.group) if answer.fatal else answer
            conversation.answer(answer)
            self._ports.send(conversation.outbox)
            if answer.fatal and answer.error is not None:
                self._end(fault_in_words(answer), EndCause.DEVICE_FAULT, EXIT_FATAL)

    def _tell_gate(self, conversation: Conversation, is_resting: bool = False) -> None:
        self._gate.tell(conversation.ready_ops, conversation.is_awaited, self._held_bytes, is_resting)
        if is_resting and self._has_several:
            self._lanes.rest()

    def _lend(self, size: int) -> Bytes | None:
        """Return where the device shall put contents that go to the notebook; None for memory of its own."""
        talk = self._conversation
        return self._ports.lend(talk.peer, size) if talk is not None and not self._rehearsal.is_on else None

    def _note_done(self, conversation: Conversation) -> None:
        pace = self._pace
        if self._has_several:
            conversation.note_done(self._lanes.done_through(conversation.applied), self._lanes.used_seconds)
        else:
            conversation.note_done(pace.done_through if pace.in_flight_ops else conversation.applied, pace.used_seconds)

    def _measure_memory(self) -> None:
        self._lanes.measure()
        self._held_bytes = self._lanes.held_bytes[self._lanes.number]
        self._loop.note_measured(perf_counter())

    # --- waiting ------------------------------------------------------------------------------------------------------

    def _wait(self, step: Report | Spin | Sleep) -> None:
        # What comes in costs the processor, and where others want the device, who waits for work has a shut gate too.
        is_told = step.wait is _GATE or (step.wait is _WORK and not self._gate.is_alone)
        before = process_time_ns() if is_told else 0
        if isinstance(step, Spin):
            self._spin(step)
        elif isinstance(step, Report):
            self._tell(step)
        else:
            self._sleep(step)
        if step.wait is _GATE:
            self._gate.end_wait()
        if is_told:
            self._gate.note_other_work(process_time_ns() - before)

    def _tell(self, step: Report) -> None:
        talk = self._conversation
        assert talk is not None
        if step.is_resting:
            self._pace.close_group()
            self._lanes.collect()  # before it is said what is done: nobody looks again while all sleep
        self._note_done(talk)
        if step.is_resting and step.wait is _WORK:
            talk.report_progress()
        self._ports.send(talk.outbox)
        self._tell_gate(talk, step.is_resting)
        self._loop.note_told(step.is_resting)

    def _spin(self, step: Spin) -> None:
        until, ports = step.until, self._ports
        has_come = None if step.wait is _WORK else self._gate.may_launch if step.wait is _GATE else self._has_room
        yield_at = 0.0
        while (now := perf_counter()) < until:
            if has_come is None:
                if ports.spin(min(until, yield_at)):
                    break
            elif has_come() or ports.hears_peers():
                break
            if now > yield_at:
                os.sched_yield()
                yield_at = now + _YIELD_SECONDS
        self._note_looked(step, self._take_in(0))

    def _sleep(self, step: Sleep) -> None:
        seconds = max(0.0, step.until - perf_counter())
        has_come = self._take_in(seconds)
        if step.wait is _WORK and seconds > _IDLE_SECONDS and not has_come:
            has_come = self._prepare()
        self._note_looked(step, has_come)

    def _prepare(self) -> bool:
        """Get ready what copies pass through, a piece at a time, until something comes; tell whether it has."""
        while self._ports.prepare():
            if self._take_in(0) or (self._conversation is not None and self._conversation.has_work):
                return True
        return False

    def _note_looked(self, step: Spin | Sleep, has_come: bool) -> None:
        if step.wait is _WORK:
            self._loop.note_heard(perf_counter(), has_come)
        else:
            self._loop.note_looked(perf_counter(), has_come or isinstance(step, Sleep))

    def _has_room(self) -> bool:
        return not self._pace.is_full()

    # --- messages -----------------------------------------------------------------------------------------------------

    def _take_in(self, timeout_seconds: float) -> bool:
        ready = self._ports.wait(timeout_seconds)
        if ready.data and self._conversation is not None:
            self._leases.note_heard()
            is_first = not self._conversation.received_bytes
            for peer, frames in self._ports.read_data():
                self._conversation.receive(peer, frames)
            if is_first:
                self._report()  # that its notebook came: an op may be next, in which nobody is told anything
            if self._conversation.owner != self._owner:
                self._owner = self._conversation.owner
                self._ports.watch_owner(self._owner)
            if self._conversation.released:
                self._end("The notebook released the session.", EndCause.RELEASED)
            self._ports.send(self._conversation.outbox)
        if ready.control:
            for order in self._ports.orders():
                self._obey(order)
        return ready.data or ready.control

    def _obey(self, order: Order) -> None:
        if isinstance(order, Gates):
            self._lanes.take_gate(order, self._ports.hear_bell)
            return
        if isinstance(order, orders.RenewLease):
            self._leases.renew(order.seconds)
        elif isinstance(order, orders.Stop):
            self._end(order.reason, EndCause.STOPPED)
            return
        elif self._assignment is None:
            self._assign(order)
        self._report()

    def _assign(self, order: orders.Assign) -> None:
        self._assignment = order
        self._leases.assign(order.lease_seconds)
        if order.memory_limit_bytes:
            self._device.set_memory_limit(order.memory_limit_bytes)
        self._stream.limit_memory(order.memory_limit_bytes, order.memory_rule)
        told = dict(self._device.info._asdict())
        if self._has_several:
            told["devices"] = self._device.count
        limit_bytes, config = self._device.memory().limit_bytes, self._config
        credit = config.credit_ops, config.credit_bytes
        welcome = Welcome(0, order.epoch, *credit, limit_bytes, told, config.kept_bytes, MINOR_VERSION)
        self._conversation = Conversation(welcome, order.session)

    # --- leases and the end -------------------------------------------------------------------------------------------

    def _check_leases(self) -> None:
        lapse = self._leases.lapse(self._ports.has_owner_ended())
        if lapse is not None:
            if self._take_in(0):  # it may have been heard while a long op ran
                self._loop.note_looked(perf_counter(), True)
            else:
                self._end(*lapse)
        self._loop.note_checked(perf_counter())

    def _end(self, reason: str, cause: EndCause, status: int = EXIT_ORDERED) -> None:
        self._ended, self._cause, self._status = reason, cause, status
        self._loop.is_over = True

    def _finish(self) -> None:
        log.info("ends: %s", self._ended)
        if self._conversation is not None:
            self._conversation.end(self._ended)
            self._ports.send(self._conversation.outbox)
            self._pace.close_group()
            self._lanes.collect()
            self._tell_gate(self._conversation, is_resting=True)
        self._report()
        self._ports.close()

    def _report(self) -> None:
        assigned = self._assignment
        phase = orders.Phase.WARM if assigned is None else orders.Phase.SERVING
        self._ports.control.report(
            orders.Report(
                phase=str(orders.Phase.ENDING if self._loop.is_over else phase),
                session=assigned.session if assigned else "",
                epoch=assigned.epoch if assigned else 0,
                pid=os.getpid(),
                used_bytes=0 if self._status == EXIT_FATAL else self._lanes.measure(),
                ops=self._conversation.applied if self._conversation else 0,
                idle_seconds=self._leases.idle_seconds,
                detail=self._ended,
                cause=self._cause,
                usage=self._usage(),
            )
        )

    def _usage(self) -> control.Usage:
        talk = self._conversation
        if self._status != EXIT_FATAL:
            self._lanes.collect()
            self._measure_memory()
        return control.Usage(
            self._lanes.used_seconds,
            self._lanes.peak_bytes,
            talk.received_bytes if talk else 0,
            talk.sent_bytes if talk else 0,
            self._lanes.used_by_class,
        )


def serve(config: configuration.ExecutorConfig, device: Device) -> int:
    """Be the executor that ``config`` describes, on ``device``, until something ends it; return the exit status."""
    if config.memory_limit_bytes:
        device.set_memory_limit(config.memory_limit_bytes)
    # Ops and their values come and go by the thousand and hold no cycles; what was imported stays for good.
    has_spare()  # what it opens stays open: from before the first op, so that whatever is open later is the notebook's
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    return Executor(config, device, Ports(config, device.pin)).run()
