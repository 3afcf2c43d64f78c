"""The op pipeline: sends what was recorded in batches, keeps the journal, and waits for answers.

Two locks. ``_recording`` guards the open batch and is held for moments. ``_io`` guards the connection
and everything behind it; whoever holds it reads for all threads. Who needs both takes ``_io`` first.

An interrupt may strike between any two bytecodes, so every step that commits something is one append or assignment, and
doing a step twice is harmless: the executor skips ops that it has taken and handles that it has dropped. A connection
on which a message was half sent or read is given up for a new one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from time import monotonic

from gpu_backend.opstream.devices import OF_DEVICE
from gpu_backend.wire import messages as wire
from gpu_backend.wire.errors import OversizedMessage, ProtocolError, RefusalCode, SessionLost, WorkbenchError
from gpu_backend.wire.messages import Op, Want
from kernelproxy import compiled
from kernelproxy.errors import session_lost
from kernelproxy.mirror.effects import LOOKING
from kernelproxy.session.connection import Connection, refusal_error
from kernelproxy.session.signs import SILENT_SECONDS, Signs
from kernelproxy.source_lines import user_site
from kernelproxy.stream import work
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.batch_size import batch_ops
from kernelproxy.stream.counters import Counters
from kernelproxy.stream.credit import Credit
from kernelproxy.stream.dropped import oldest
from kernelproxy.stream.inbox import TURN_SECONDS, Answer, Inbox
from kernelproxy.stream.link_speed import LinkSpeed
from kernelproxy.stream.memory_model import MemoryModel
from kernelproxy.stream.recorder import HANDLES_PER_CALL, NOTHING, Args, Buffers, Kwargs, Recorder
from kernelproxy.stream.retention import Retention, until_done

_CANCEL_SECONDS = 0.1  #: how long who was interrupted waits for a turn with the connection

Renew = Callable[["Pipeline"], Connection]


class Pipeline(Recorder):
    """The one ordered stream of ops from this process to its executor.

    Parameters
    ----------
    connection
        A connection that has been greeted.
    renew
        Called when the connection is lost; returns another one, greeted. Before it greets an executor of another epoch
        it calls `abandon`. Raises `SessionLost` if the session is gone for good; after any other error the connection
        is sought again when the next op needs it.
    signs
        Where is shown what is waited for; nowhere else than in this client, by default.
    retention
        How long the journal keeps what is done.
    """

    def __init__(
        self, connection: Connection, renew: Renew, signs: Signs | None = None, *, retention: Retention = until_done
    ) -> None:
        super().__init__(MemoryModel.of(connection.welcome))
        self.signs = signs or Signs()
        self.connection = connection  #: the one in use
        self._renew = renew
        self.reading = self._io = threading.RLock()  #: held by whoever uses the connection
        self.credit = Credit(self.journal.marks)  #: what may be sent beside what is under way
        self.inbox = Inbox(self.journal, self.ahead, retention, self.contents, self.memory.device_bytes)
        self.counters = Counters()
        self.link_speed = LinkSpeed()
        self._cancelled_through = self._cancel_told = self._drained_at = 0
        self._end: WorkbenchError | None = None

    # --- asking -------------------------------------------------------------------------------------------------------

    def call(
        self, name: str, args: Args, want: Want, kwargs: Kwargs = None, buffers: Buffers = None, stream: int = 0
    ) -> Answer:
        """Send an op with all before it, and return its answer. One round trip.

        ``Buffer`` values in ``args`` count ``buffers`` from 0, so a call with buffers travels in a message of its own.
        Raises what the op raised, or the first deferred failure of an earlier op, with the line that recorded it.
        """
        __tracebackhide__ = True
        return self.answer(self.ask(name, args, want, kwargs, buffers, stream))

    @partial(compiled.quick, "ask")
    def ask(
        self, name: str, args: Args, want: Want, kwargs: Kwargs = None, buffers: Buffers = None, stream: int = 0
    ) -> int:
        """Send an op with all before it, as `call`; return the number under which `answer` has its answer."""
        seq = 0
        try:
            with self._recording:
                if name not in LOOKING:  # here, or another thread comes to know in between what was before the op
                    self.mirror.note_asked(name, args, kwargs)
                if buffers:
                    self._seal()
                    # Assigned, not added: an interrupt may have left the buffers of a call that was never noted.
                    self.open_batch.frames, self.open_batch.bytes = list(buffers), sum([len(one) for one in buffers])
                batch = self.open_batch
                out = self.next_handle | stream & OF_DEVICE
                self.next_handle += HANDLES_PER_CALL
                gone = len(self.dropped)
                drop = oldest(self.dropped, gone, None)[0] if gone else None
                seq = batch.first + len(batch.ops)
                self.inbox.expect(seq)
                batch.add(Op(name, out, args, drop, want, kwargs, stream), user_site(2), self._costs[0][name])
                self._take_dropped(gone)
                if buffers:
                    self._seal()
            self._send_recorded()
            return seq
        except BaseException:  # whatever it is, nobody will ask for the answer
            self.inbox.forget(seq)
            raise

    # --- sending ------------------------------------------------------------------------------------------------------

    @partial(compiled.quick, "flush")
    def flush(self) -> None:
        """Send all that has been recorded. Waits while as much is under way as may be."""
        self._send_recorded()
        with self._io:
            self._read_all()

    def _send_recorded(self) -> None:
        since = 0.0
        while True:
            with self._io:  # let go of between two tries, for others who want to read
                self._seal()
                if self._send_sealed():
                    break
                self._pump(TURN_SECONDS)
            self.signs.look(since := since or monotonic(), lambda: work.sign(self, self.signs.transfer))
        if since and self.signs.is_shown:
            self.signs.settle()

    def flush_if_open(self, batch: OpenBatch) -> None:
        """Send what can be sent now if ``batch`` is still open; for the background sender. Never waits for credit."""
        if self._io.acquire(blocking=False):
            try:
                if self.open_batch is batch:
                    self._seal()
                self._send_sealed()
                self._read_all()
            finally:
                self._io.release()

    @property
    def is_behind(self) -> bool:
        """True if something waits to be sent that needs no further op."""
        return self.journal.next_unsent() is not None or self._cancel_told < self._cancelled_through

    def ping(self) -> None:
        """Tell the executor that the notebook is alive and what it has read, unless another thread is talking to it."""
        if self._io.acquire(blocking=False):
            try:
                self._tell_read(self._sound_connection())
                self._read_all()
            finally:
                self._io.release()

    def drain(self) -> None:
        """Have all that is recorded carried out, without waiting; until then `is_draining`."""
        with self._recording:
            self._seal()
            self._drained_at = self.open_batch.first - 1
        self.read(0)
        self.wake_sender()

    @property
    def is_draining(self) -> bool:
        """True while something is not done of what was recorded when it was last drained."""
        self.read(0)
        return self.journal.marks.done < self._drained_at

    def read(self, timeout_seconds: float) -> None:
        """Take in what the executor says, waiting so long at most for the next; nothing while another thread does."""
        if self.connection.is_sound and self._io.acquire(timeout=_CANCEL_SECONDS):
            try:
                self._send_sealed()
                self._pump(timeout_seconds)
                self._read_all()
            finally:
                self._io.release()

    def cancel_pending(self) -> list[tuple[int, Op]]:
        """Drop every op that has not started on the device; return those that may not have, with their numbers.

        Arrays they would have made say so when used. Which of them never run, the executor says later: `Inbox.dropped`.
        """
        with self._recording:
            self._seal()
            self.contents.forget()
            self._cancelled_through = self.open_batch.first - 1
            pending = [(batch.first + place, batch.ops[place]) for batch, place in self.journal.waiting()]
            self.inbox.remember_sites()
        # Whoever uses the connection next says it. If that is a thread that waits for the executor, it does so at once;
        # and where the connection itself must be replaced first, the background sender does, and nobody is kept.
        if self.connection.is_sound and self._io.acquire(timeout=_CANCEL_SECONDS):
            try:
                self._tell_cancelled(self.connection)
            finally:
                self._io.release()
        else:
            self.wake_sender()
        return pending

    def _send_sealed(self) -> bool:
        """Send sealed batches while there is credit; tell whether all are sent."""
        journal, connection = self.journal, self._sound_connection()
        while (batch := journal.next_unsent()) is not None:
            if batch is self.open_batch:  # an interrupt struck inside _seal, or another thread is in there
                self._seal()
            if len(batch.ops) > connection.welcome.credit_ops:  # it would never have room
                with self._recording:
                    journal.take_apart(batch)
                continue
            has_time = batch.ops[-1].want is not NOTHING or self.ahead.has_room(batch)  # who waits adds no more
            if not has_time or not self.credit.has_room(batch, connection.welcome):
                return False
            sent_before = connection.bytes_sent
            journal.note_sending(batch)
            try:
                if not connection.send(wire.Batch(batch.first, self.inbox.received, tuple(batch.ops)), batch.frames):
                    return False
            except (OversizedMessage, ValueError, OverflowError, TypeError) as error:  # it cannot be put into bytes
                with self._recording:
                    journal.take_apart(batch) if len(batch.ops) > 1 else journal.let_fail(batch, str(error))
                continue
            if not self.credit.ops_in_flight:
                self.inbox.moved_at = monotonic()
            self.ahead.note_sent(batch)
            self.credit.note_sent(batch)
            journal.note_sent(batch, connection.bytes_sent - sent_before)
            self.inbox.note_told()
            self.counters.ops += len(batch.ops)
            self.counters.batches += 1
        return True

    # --- receiving ----------------------------------------------------------------------------------------------------

    @partial(compiled.quick, "answer")
    def answer(self, seq: int) -> Answer:
        """Return the answer of the op that `ask` has sent as ``seq``. Once, and as `call`."""
        __tracebackhide__ = True
        try:
            self._wait(seq)
            return self.inbox.take(seq)
        except KeyboardInterrupt as error:
            self.signs.settle(error)
            raise
        finally:
            self.inbox.forget(seq)

    def _wait(self, seq: int) -> None:
        since = asked = monotonic()
        answers, journal = self.inbox.answers, self.journal
        while seq not in answers:
            # Whoever gets the connection reads for everybody; the others look at their answers now and then.
            if self._io.acquire(timeout=TURN_SECONDS):
                try:
                    if journal.cursor < journal.marks.recorded:  # a lost connection took it along
                        self._send_sealed()
                    if seq not in answers and not self._pump(TURN_SECONDS) and monotonic() - asked > 1.0:
                        asked = monotonic()
                        self._tell_read(self._sound_connection())
                finally:
                    self._io.release()
            if monotonic() - since > SILENT_SECONDS:
                self.signs.look(since, lambda: work.sign(self, self.signs.transfer))
        if self.signs.is_shown:
            self.signs.settle()
        self.most_ops = batch_ops(self.credit.ops_in_flight)

    def _pump(self, timeout_seconds: float) -> bool:
        """Take in one message, waiting so long at most; tell whether there was one. The caller holds ``_io``."""
        connection = self._sound_connection()
        incoming = connection.receive(timeout_seconds)
        if incoming is None:
            if timeout_seconds and connection.is_cut:
                self._recover()
            return False
        refused = self.inbox.note(*incoming)
        if refused is not None:
            self._note_refusal(refused)
        connection.settle()
        if self.inbox.should_tell:
            self._tell_read(connection)
        return True

    def _read_all(self) -> None:
        while self._pump(0):
            pass
        self.most_ops = batch_ops(self.credit.ops_in_flight)

    def _note_refusal(self, refused: wire.Refused) -> None:
        if refused.code in (RefusalCode.NOT_GREETED, RefusalCode.OUT_OF_ORDER, RefusalCode.ENDED):
            return self._recover()
        error = refusal_error(refused)
        self.inbox.fail_all(error)
        self.connection.settle()
        raise error

    def _tell_read(self, connection: Connection) -> None:
        if connection.send(wire.Ping(self.inbox.received)):
            self.inbox.note_told()

    def _tell_cancelled(self, connection: Connection) -> None:
        if connection.send(wire.Cancel(through := self._cancelled_through)):
            self._cancel_told = through

    # --- losing the connection, losing the session --------------------------------------------------------------------

    @property
    def first(self) -> int:
        """Number of the oldest op that is not known to be done."""
        return self.journal.marks.done + 1

    def _sound_connection(self) -> Connection:
        """Return a connection that can be used. The caller holds ``_io``."""
        if self._end is not None:
            raise type(self._end)(*self._end.args)
        if not self.connection.is_sound:
            self._recover()
        if self._cancel_told < self._cancelled_through:
            self._tell_cancelled(self.connection)
        return self.connection

    def _recover(self) -> None:
        try:
            fresh = self._renew(self)
        except SessionLost as error:
            self.abandon()
            self.end(error)
            raise
        # All this before the old connection is replaced: if an interrupt strikes here, it is done again.
        self._cancel_told = 0
        self.inbox.forget_parts()
        self._resume(fresh)
        loss = None
        if fresh.is_another_executors(self.connection):
            loss = session_lost(self.connection.ended_for or fresh.ticket.former_end, fresh.ticket.epoch)
            self.inbox.fail_all(loss)
        self.connection = fresh
        if loss is not None:
            raise loss

    def _resume(self, fresh: Connection) -> None:
        try:
            self.journal.resume(fresh.welcome.taken)
        except ProtocolError:
            fresh.close()
            raise
        self.credit.resume(fresh.welcome.taken)
        self.ahead.resume(fresh.welcome.taken)
        self.inbox.let_go()

    def abandon(self) -> None:
        """Forget every op under way: the executor that should have run it is gone, and its successor counts anew."""
        with self._recording:
            self._seal()
            self.journal.clear()
            self.contents.forget()
            self._drained_at = 0
            self.ahead.clear()
            self.inbox.forget_all()
            self.dropped.clear()
            self.memory.clear()

    def close(self, farewell: wire.Bye | None, timeout_seconds: float) -> bool:
        """Send ``farewell`` and close the connection; False if another thread kept it for ``timeout_seconds``."""
        self.end(SessionLost("This session was closed, and its arrays with it. Restart the kernel for another."))
        if not self._io.acquire(timeout=timeout_seconds):
            return False
        try:
            if farewell is not None and self.connection.is_sound:
                self.connection.send(farewell)
            self.connection.close()
        finally:
            self._io.release()
        return True

    def leave_to_parent(self, why: WorkbenchError) -> None:
        """Let every use raise ``why``, in a process that was forked from the one whose threads may hold our locks."""
        self.recording = self._recording = compiled.lock()
        self.reading = self._io = threading.RLock()
        self.end(why)

    def end(self, why: WorkbenchError) -> None:
        """Let every use from now on raise ``why``."""
        self._end = why
        self._cancel_told = self._cancelled_through
        self.inbox.fail_all(why)
