"""The op pipeline: records ops, sends them in batches, keeps the journal, and waits for answers.

Two locks. ``_recording`` guards the open batch and is held for less than a microsecond. ``_io`` guards the socket and
everything behind it; whoever holds it reads for all threads. An interrupt may strike between any two bytecodes, so
every step that commits something is a single append or assignment, and sending twice is harmless: the executor skips
what it has already taken.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from time import monotonic

from gpu_backend.wire import messages as wire
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.errors import ErrorRecord, RefusalCode, SessionLost
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Value
from kernelproxy.connection import Connection, refusal_error
from kernelproxy.counters import Counters
from kernelproxy.errors import deferred_exception, remote_exception
from kernelproxy.journal import Journal, OpenBatch
from kernelproxy.layout import Layout
from kernelproxy.source_lines import Site, user_site

NOTHING = Want.NOTHING
#: Ops per message: large enough to hide its cost, small enough that the device starts early.
BATCH_OPS = 64
#: Bytes of buffers after which a batch is sent even if it holds few ops.
BATCH_BYTES = 4 << 20
#: What `Pipeline.sure_bytes` is where there is no limit.
_SURE_BYTES = 1 << 30
#: How long one thread reads on behalf of all before others get a turn, seconds.
_TURN_SECONDS = 0.005
#: Failures remembered after they were shown, to explain what they make impossible later.
_REMEMBERED_FAILURES = 1_000

_CANCELLED = "gpu_backend.wire.errors.OpCancelled"

Renew = Callable[["Pipeline"], Connection]


class Answer:
    """What the executor said to one op."""

    __slots__ = ("buffers", "value")

    def __init__(self, value: Value, buffers: list[Frame]) -> None:
        self.value = value
        self.buffers = buffers


class Pipeline:
    """The one ordered stream of ops from this process to its executor.

    Parameters
    ----------
    connection
        A connection that has been greeted.
    welcome
        What the executor said then: the credits.
    renew
        Called when the connection is lost; returns another one, greeted, or raises what the user shall see.
    """

    def __init__(self, connection: Connection, welcome: wire.Welcome, renew: Renew) -> None:
        self._connection = connection
        self._renew = renew
        self._credit_ops = welcome.credit_ops
        self._credit_bytes = welcome.credit_bytes
        #: Results up to this size are not waited for: larger ones are, so that OutOfMemoryError comes at its own line.
        self.sure_bytes = welcome.memory_limit_bytes // 8 or _SURE_BYTES
        self._recording = threading.RLock()
        self._io = threading.RLock()
        self._open = OpenBatch(1)
        self._next_handle = 1
        #: Handles whose objects the notebook has dropped; filled by finalizers, which must not take locks.
        #: With each its layout, if its memory can serve for a result of that layout.
        self.dropped: deque[tuple[int, Layout | None]] = deque()
        self.journal = Journal()
        self.counters = Counters()
        self._received = 0
        self._unacknowledged_reads = 0
        self._answers: dict[int, Answer | Exception] = {}
        self._awaited: set[int] = set()
        self._chunks: dict[int, list[tuple[int, Frame]]] = {}
        self._failures: dict[int, Exception] = {}
        self._remembered: dict[int, tuple[ErrorRecord, Site | None]] = {}
        #: Set while the background sender sleeps; the first op of a quiet time wakes it.
        self.sender_sleeps = False
        self.wake_sender: Callable[[], None] = lambda: None

    # --- recording: the hot path --------------------------------------------------------------------------------------

    def record(
        self,
        name: str,
        args: tuple[Value, ...],
        results: int = 1,
        kwargs: dict[str, Value] | None = None,
        stream: int = 0,
        layout: Layout | None = None,
    ) -> int:
        """Note an op whose ``results`` are proved, and return the handle of the first. Sent later, in order.

        With ``layout``, that of its one result, the op may compute into the memory of an array of the same layout that
        the notebook has dropped; the name must be a ufunc's, which takes its output behind its operands.
        """
        with self._recording:
            out = self._next_handle if results else 0
            self._next_handle += results
            drop, reuse = None, 0
            if self.dropped:
                if layout is not None and self.dropped[-1][1] is layout:
                    reuse = self.dropped.pop()[0]
                if self.dropped:
                    drop = self._take_dropped()
            batch = self._open
            batch.sites.append(user_site(2))
            batch.ops.append(Op(name, out, args, drop, NOTHING, kwargs, stream, reuse))
        if len(batch.ops) >= BATCH_OPS:
            self.flush()
        elif self.sender_sleeps:
            self.wake_sender()
        return out

    def record_with_buffer(self, make: Callable[[int], tuple[str, tuple[Value, ...]]], data: Frame) -> None:
        """Note an op without result that carries ``data``; ``make`` gets the buffer's number in its message."""
        with self._recording:
            batch = self._open
            name, args = make(len(batch.frames))
            batch.frames.append(data)
            batch.bytes += len(data)
            self.record(name, args, 0)
        if batch.bytes >= BATCH_BYTES:
            self.flush()

    def call(
        self,
        name: str,
        args: tuple[Value, ...],
        want: Want,
        kwargs: dict[str, Value] | None = None,
        buffers: list[Frame] | None = None,
        stream: int = 0,
    ) -> Answer:
        """Send an op with all before it, and return its answer. One round trip.

        ``Buffer`` values in ``args`` count ``buffers`` from 0, so a call with buffers travels in a message of its own.

        Raises
        ------
        Exception
            What the op raised, or the first deferred failure of an earlier op, with the line that recorded it.
        """
        __tracebackhide__ = True
        with self._recording:
            if buffers:
                self._seal()
                self._open.frames.extend(buffers)
                self._open.bytes += sum(len(one) for one in buffers)
            out = self._next_handle
            self._next_handle += _HANDLES_PER_CALL
            drop = self._take_dropped() if self.dropped else None
            batch = self._open
            seq = batch.first + len(batch.ops)
            self._awaited.add(seq)
            batch.sites.append(user_site(2))
            batch.ops.append(Op(name, out, args, drop, want, kwargs, stream))
            if buffers:
                self._seal()
        self.counters.round_trips += 1
        try:
            self.flush()
            return self._wait(seq)
        except KeyboardInterrupt:
            self.cancel_pending()
            raise
        finally:
            self._awaited.discard(seq)
            self._answers.pop(seq, None)

    def _take_dropped(self) -> tuple[int, ...]:
        dropped = self.dropped
        return tuple([dropped.popleft()[0] for _ in range(len(dropped))])

    # --- sending ------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send all that has been recorded. Waits while the executor has as much under way as it accepts."""
        with self._io:
            self._seal()
            while not self._send_sealed():
                self._pump(_TURN_SECONDS)
            while self._pump(0):
                pass

    def flush_if_open(self, batch: OpenBatch) -> None:
        """Send what can be sent now if ``batch`` is still open; for the background sender. Never waits for credit."""
        if self._io.acquire(blocking=False):
            try:
                if self._open is batch:
                    self._seal()
                self._send_sealed()
                while self._pump(0):
                    pass
            finally:
                self._io.release()

    @property
    def open_batch(self) -> OpenBatch:
        """The batch that ops are being recorded into."""
        return self._open

    def ping(self) -> None:
        """Tell the executor that the notebook is alive and what it has read, unless another thread is talking to it."""
        if self._io.acquire(blocking=False):
            try:
                self._connection.send(wire.Ping(self._received))
                while self._pump(0):
                    pass
            finally:
                self._io.release()

    def cancel_pending(self) -> None:
        """Drop every op that has not started on the device. Arrays they would have made say so when used."""
        with self._io:
            self._seal()
            self._connection.send(wire.Cancel(self._open.first - 1))

    def _seal(self) -> None:
        with self._recording:
            if self._open.ops:
                self.journal.append(self._open)
                self._open = self._open.successor()

    def _send_sealed(self) -> bool:
        """Send sealed batches while there is credit; tell whether all are sent."""
        journal = self.journal
        while (batch := journal.next_unsent()) is not None:
            if batch is self._open:  # an interrupt struck inside _seal
                self._open = batch.successor()
            if journal.ops_in_flight + len(batch.ops) > self._credit_ops:
                return False
            if journal.bytes_in_flight and journal.bytes_in_flight + batch.bytes > self._credit_bytes:
                return False
            if not self._connection.send(wire.Batch(batch.first, self._received, tuple(batch.ops)), batch.frames):
                return False
            journal.note_sent(batch)
            self._unacknowledged_reads = 0
            self.counters.ops += len(batch.ops)
            self.counters.batches += 1
        return True

    # --- receiving ----------------------------------------------------------------------------------------------------

    def _wait(self, seq: int) -> Answer:
        started = monotonic()
        while seq not in self._answers:
            # Whoever gets the socket reads for everybody; the others look at their answers now and then.
            if self._io.acquire(timeout=_TURN_SECONDS):
                try:
                    if seq not in self._answers and not self._pump(_TURN_SECONDS) and monotonic() - started > 1.0:
                        started = monotonic()
                        self._connection.send(wire.Ping(self._received))
                finally:
                    self._io.release()
        answer = self._answers[seq]
        if isinstance(answer, Exception):
            self._forget_consequences()
            raise answer
        self.raise_deferred()
        return answer

    def raise_deferred(self) -> None:
        """Raise the first failure of an op that nobody waited for, if there is one.

        Raises
        ------
        Exception
            What the op raised, with a note naming the line that recorded it.
        """
        __tracebackhide__ = True
        if self._failures:
            error = self._failures[min(self._failures)]
            self._forget_consequences()
            raise error

    def _forget_consequences(self) -> None:
        """Let one failure be told once: what it made impossible downstream is not news."""
        self._failures.clear()

    def _pump(self, timeout_seconds: float) -> bool:
        """Take in one message, waiting so long at most; tell whether there was one. The caller holds ``_io``."""
        incoming = self._connection.receive(timeout_seconds)
        if incoming is None:
            if timeout_seconds and self._connection.was_cut():
                self._recover()
            return False
        message, buffers = incoming
        if isinstance(message, wire.Ack):
            self.journal.trim(message.applied)
        elif isinstance(message, wire.Reply):
            self._note_reply(message, buffers)
        elif isinstance(message, wire.Failed):
            self._note_failure(message)
        elif isinstance(message, wire.Chunk):
            self._chunks.setdefault(message.seq, []).append((message.offset, buffers[0]))
        elif isinstance(message, wire.Refused):
            self._note_refusal(message)
        return True

    def _note_reply(self, reply: wire.Reply, buffers: list[Frame]) -> None:
        self._note_read(reply.seq)
        chunks = self._chunks.pop(reply.seq, None)
        if chunks is not None:
            buffers = [_join(chunks)]
        if reply.seq in self._awaited:
            self._answers[reply.seq] = Answer(reply.value, buffers)

    def _note_failure(self, failed: wire.Failed) -> None:
        error, seq = failed.error, failed.seq
        site = self.journal.site(seq)
        self._note_read(seq)
        if error.kind == _CANCELLED and error.caused_by < 0 and seq not in self._awaited:
            return  # nobody waits any more for the op that an interrupt gave up
        cause = self._remembered.get(error.caused_by)
        if cause is not None:
            site = cause[1]
        elif len(self._remembered) < _REMEMBERED_FAILURES:
            self._remembered[seq] = (error, site)
        if seq in self._awaited:
            late = error.caused_by >= 0
            self._answers[seq] = deferred_exception(error, site) if late else remote_exception(error)
        elif error.caused_by < 0 or cause is None:
            self._failures[seq] = deferred_exception(error, site)

    def _note_read(self, seq: int) -> None:
        if seq > self._received:
            self._received = seq
        self.journal.trim(seq)
        self._unacknowledged_reads += 1
        if self._unacknowledged_reads >= 256:
            self._unacknowledged_reads = 0
            self._connection.send(wire.Ping(self._received))

    def _note_refusal(self, refused: wire.Refused) -> None:
        if refused.code in (RefusalCode.NOT_GREETED, RefusalCode.OUT_OF_ORDER):
            self._recover()
        elif refused.code == RefusalCode.ENDED:
            self._recover(refused.message)
        else:
            raise refusal_error(refused)

    # --- losing the connection, losing the session --------------------------------------------------------------------

    @property
    def first(self) -> int:
        """Number of the oldest op that may have to be sent again."""
        return self.journal.first or self._open.first

    @property
    def received(self) -> int:
        """Number of the last op whose answer was read."""
        return self._received

    @property
    def connection(self) -> Connection:
        """The connection in use."""
        return self._connection

    def _recover(self, reason: str = "") -> None:
        old = self._connection
        try:
            self._connection = self._renew(self)
        except SessionLost as lost:
            self._abandon(lost)
            raise
        if self._connection.ticket.epoch != old.ticket.epoch:
            loss = SessionLost(_loss_story(reason, self._connection.ticket.epoch))
            self._abandon(loss)
            raise loss
        self._chunks.clear()
        self.journal.resend_all()

    def _abandon(self, lost: SessionLost) -> None:
        """Every op under way is lost with its executor: tell those who wait, and start anew."""
        with self._recording:
            self._seal()
            self.journal.clear()
            self._chunks.clear()
            self.dropped.clear()
            for seq in self._awaited:
                self._answers.setdefault(seq, lost)


def _loss_story(reason: str, epoch: int) -> str:
    why = reason or "The process that held this notebook's arrays ended unexpectedly."
    return (
        f"{why} The arrays made so far are lost; a fresh executor (epoch {epoch}) has taken over. "
        "Run the cells again that make your arrays."
    )


def _join(chunks: list[tuple[int, Frame]]) -> bytearray:
    whole = bytearray(sum(len(data) for _, data in chunks))
    for offset, data in chunks:
        whole[offset : offset + len(data)] = data
    return whole


#: A call whose results are unknown gets this many handles to give: numbers cost nothing.
_HANDLES_PER_CALL = 1 << 20

__all__ = ["Answer", "Pipeline"]
