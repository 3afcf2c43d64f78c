"""The protocol with the notebook, without its sockets: greeting, order, credits, cancelling, answers not yet read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from gpu_backend.executor.answer import Answer
from gpu_backend.executor.outbox import Message, Outbox
from gpu_backend.wire import messages as wire
from gpu_backend.wire.codec import Codec, Frame, encode, size_of
from gpu_backend.wire.errors import ErrorRecord, ForeignVersion, OversizedMessage, RefusalCode, WireError

#: With so many answers unread, or so many bytes of them, the executor waits for the notebook to read them.
MAX_UNREAD: Final = 1_024
MAX_UNREAD_BYTES: Final = 256 << 20
#: So many refusals may wait for a connection that is not, or not any more, the notebook's.
_MOST_REFUSALS: Final = 64
#: So many connections that were taken over are remembered.
_MOST_TAKEN_OVER: Final = 256
#: Ops are counted up to here: far more than can ever be asked for, and each number still fits its place on the wire.
_MOST_OPS: Final = 1 << 62
#: The notebook hears at the latest after so many ops that they are carried out, and sends more.
_REPORT_OPS: Final = 1_024
#: It hears of what the device has done at the latest after so much of the device's time, seconds: it lets no more than
#: a few dozen times as much wait here, and learns from it what ops take.
_REPORT_SECONDS: Final = 0.015

_NOTHING: Final = wire.Want.NOTHING
_codec: Final[Codec[wire.ToExecutor]] = Codec(wire.ToExecutor)
_BYTE: Final = np.dtype(np.uint8)


class QueuedBatch:
    """Ops of one message. Those from ``next`` on have not started; ``first`` is the number of ``ops[0]``.

    ``following`` is the batch behind it, None while that has not come. ``awaits`` is set while the next op lacks
    something, and tells whether that has come.
    """

    __slots__ = ("awaits", "bytes", "first", "following", "frames", "next", "ops")

    def __init__(self, first: int, ops: tuple[wire.Op, ...], skip: int, frames: Sequence[Frame]) -> None:
        self.first, self.ops, self.next, self.frames = first, ops, skip, frames
        self.bytes = size_of(frames) if frames else 0
        self.following: QueuedBatch | None = None
        self.awaits: Callable[[], bool] | None = None


class Conversation:
    """One session's talk with its notebook. Bytes in, bytes out; it opens no socket and reads no clock.

    A connection counts only after its Hello; a Hello of the same client instance on another one takes over, so a client
    that reconnects is never locked out by its own old connection, and that one stays out. Ops are taken strictly by
    number: those already taken are skipped, a gap is refused, and so no op is lost or run twice.
    """

    def __init__(self, welcome: wire.Welcome, session: str) -> None:
        self._welcome = welcome
        self._session = session
        self._instance: str | None = None
        self._peer: bytes | None = None
        self._taken_over: deque[bytes] = deque(maxlen=_MOST_TAKEN_OVER)
        self._queue: deque[QueuedBatch] = deque()
        #: Ops taken and not carried out.
        self.queued_ops = 0
        self._queued_bytes = 0
        self._taken = 0
        self._cancel_through = self._cancel_after = 0
        self._reported = self._reported_done = 0
        #: Number of the last op that the device has done, and its time for this session, seconds.
        self._done, self._busy_seconds, self._reported_seconds = 0, 0.0, 0.0
        #: The same when it was last told what ops took.
        self._timed = 0
        self._unread: deque[tuple[int, list[Message], int]] = deque()
        self._unread_bytes = 0
        #: Bytes that came from the notebook, and that were sent to it.
        self.received_bytes = self.sent_bytes = 0
        #: Number of the last op carried out.
        self.applied = 0
        #: True once the notebook has said that it is done with the session.
        self.released = False
        #: The connection by which the session's owner has greeted; None while nobody owns it who could end.
        self.owner: bytes | None = None
        #: Messages to send.
        self.outbox = Outbox()

    @property
    def peer(self) -> bytes | None:
        """The connection that was greeted last, by which answers go."""
        return self._peer

    @property
    def has_work(self) -> bool:
        """True if an op may run now. False while too many answers are unread or unsent."""
        if len(self._unread) >= MAX_UNREAD or self._unread_bytes >= MAX_UNREAD_BYTES:
            return False
        if not self._queue or self.outbox.waiting(self._peer) >= MAX_UNREAD:
            return False
        return self._queue[0].awaits is None or not self._lacks_something or self.is_cancelled

    @property
    def _lacks_something(self) -> bool:
        """True while the next op lacks something that is still to come, which nothing of the device is."""
        front = self._queue[0] if self._queue else None
        if front is None or front.awaits is None:
            return False
        if front.awaits():
            front.awaits = None
        return front.awaits is not None

    @property
    def ready_ops(self) -> int:
        """How many ops wait for the device and for nothing else."""
        return 0 if self._lacks_something else self.queued_ops

    @property
    def is_cancelled(self) -> bool:
        """True if the next op is not to be run."""
        front = self._queue[0] if self._queue else None
        return front is not None and front.first + front.next <= self._cancel_through

    @property
    def has_unsent(self) -> bool:
        """True while there is something to send that the sockets did not take."""
        return bool(self.outbox)

    @property
    def is_connected(self) -> bool:
        """True if some connection has been greeted."""
        return self._peer is not None

    @property
    def is_awaited(self) -> bool:
        """True if the notebook waits for the answer to the last op that is queued, and that for the device."""
        is_asked = bool(self._queue) and self._queue[-1].ops[-1].want is not _NOTHING
        return is_asked and not self._lacks_something

    # --- what comes in ------------------------------------------------------------------------------------------------

    def receive(self, peer: bytes, frames: Sequence[Frame]) -> None:
        """Take one message from ``peer``. Bad ones are refused by name and change nothing."""
        self.received_bytes += size_of(frames)
        try:
            message = _codec.decode(frames)
        except WireError as error:
            self._refuse(peer, _code_of(error), str(error))
            return
        if isinstance(message, wire.Batch) and peer == self._peer:
            self._take(peer, message, frames[1:])
        elif isinstance(message, wire.Hello):
            self._greet(peer, message)
        elif peer != self._peer:
            self._refuse(peer, RefusalCode.NOT_GREETED, "Say Hello first: this connection is not known.")
        elif isinstance(message, wire.Cancel):
            self._cancel(message.through)
        elif isinstance(message, wire.Ping):
            self._forget_read(message.received)
            self.report_progress(always=True)
        else:
            self.released = True

    def _cancel(self, through: int) -> None:
        """Let no op up to ``through`` begin that has not; said again, as on a new connection, it changes nothing."""
        if through > self._cancel_through:
            self._cancel_after, self._cancel_through = self.applied, through
        self.report_progress(always=True)

    def _greet(self, peer: bytes, hello: wire.Hello) -> None:
        if hello.session != self._session:
            self._refuse(peer, RefusalCode.WRONG_SESSION, f"This executor does not serve session {hello.session!r}.")
        elif not 0 < hello.first < _MOST_OPS:
            self._refuse(peer, RefusalCode.MALFORMED, f"{hello.first} is no number of an op.")
        elif hello.epoch != self._welcome.epoch:
            message = f"The session is in epoch {self._welcome.epoch}, not {hello.epoch}. Ask for a new ticket."
            self._refuse(peer, RefusalCode.STALE_EPOCH, message)
        elif self._instance not in (None, hello.instance):
            message = "Another process already uses this session. Restart the kernel, or open a session of its own."
            self._refuse(peer, RefusalCode.IN_USE, message)
        elif peer in self._taken_over:  # what still arrives from there must not take the session back
            message = "The notebook has connected anew since. Say Hello on a connection of its own."
            self._refuse(peer, RefusalCode.NOT_GREETED, message)
        else:
            self._admit(peer, hello)

    def _admit(self, peer: bytes, hello: wire.Hello) -> None:
        if self._instance is None:
            self._instance = hello.instance
            self.applied = self._taken = hello.first - 1
        # What was said of later ops may be lost with the connection that it went by.
        self._reported = self._reported_done = hello.first - 1
        self.outbox.drop(self._peer)
        if self._peer not in (None, peer):
            self._taken_over.append(self._peer)
        self._peer = peer
        self.owner = peer if hello.is_owner else None
        self._forget_read(hello.received)
        self._send(encode(msgspec.structs.replace(self._welcome, taken=self._taken)))
        for _, answer, _ in self._unread:
            for message in answer:
                self._send(message)

    def _take(self, peer: bytes, batch: wire.Batch, frames: Sequence[Frame]) -> None:
        self._forget_read(batch.received)
        skip = self._taken + 1 - batch.first
        fresh = len(batch.ops) - skip
        if skip < 0:
            message = f"Op {batch.first} came, op {self._taken + 1} was expected. Say Hello and send again from there."
            self._refuse(peer, RefusalCode.OUT_OF_ORDER, message)
        elif fresh > 0:
            queued = QueuedBatch(batch.first, batch.ops, skip, frames)
            if self._over_credit(fresh, queued.bytes):
                self._refuse(peer, RefusalCode.OVER_CREDIT, self._credit_story())
                self._peer = None
                return
            if self._queue:
                self._queue[-1].following = queued
            self._queue.append(queued)
            self.queued_ops += fresh
            self._queued_bytes += queued.bytes
            self._taken += fresh

    def _over_credit(self, ops: int, size: int) -> bool:
        if self.queued_ops + ops > self._welcome.credit_ops:
            return True
        # One message may pass the limit alone, or nothing larger than it could ever be sent.
        return size > 0 and self._queued_bytes > 0 and self._queued_bytes + size > self._welcome.credit_bytes

    def _credit_story(self) -> str:
        return (
            f"More was sent than the {self._welcome.credit_ops} ops and {self._welcome.credit_bytes} bytes that may be "
            "under way. Wait for Ack before sending more."
        )

    def _forget_read(self, received: int) -> None:
        while self._unread and self._unread[0][0] <= received:
            self._unread_bytes -= self._unread.popleft()[2]

    # --- what is done -------------------------------------------------------------------------------------------------

    def front(self) -> QueuedBatch | None:
        """Return the batch whose turn it is, if an op may run now."""
        return self._queue[0] if self.has_work else None

    def advance(self, batch: QueuedBatch, place: int) -> None:
        """Note that the ops of the front ``batch`` before ``place`` have been carried out.

        A ``place`` beyond its end counts on into the batches that follow.
        """
        self.queued_ops -= place - batch.next
        self.applied = batch.first + place - 1
        batch.next = place
        while batch.next >= len(batch.ops):
            beyond, following = batch.next - len(batch.ops), batch.following
            self._queue.popleft()
            self._queued_bytes -= batch.bytes
            if self.applied - self._reported >= _REPORT_OPS:
                self.report_progress()
            if following is None:
                return
            following.next += beyond
            batch = following

    def note_done(self, done: int, busy_seconds: float) -> None:
        """Note that the device has done every op up to ``done``, by ``busy_seconds`` of work; report if it is due."""
        self._done, self._busy_seconds = done, busy_seconds
        # What is done was told by answers already where somebody waits for each result, and what it took was not.
        is_due = busy_seconds - self._reported_seconds >= _REPORT_SECONDS
        if is_due and done > self._timed and done >= self._reported_done:
            self.report_progress(always=True)

    def answer(self, answer: Answer) -> None:
        """Send the answer of the last op carried out."""
        seq = self._reported = self.applied
        done = self._reported_done = seq if answer.is_synchronized else max(self._done, self._reported_done)
        messages = _encode_answer(seq, done, answer)
        size = size_of(messages[0]) if len(messages) == 1 else sum(map(size_of, messages))
        self._unread.append((seq, messages, size))
        self._unread_bytes += size
        for message in messages:
            self._send(message)

    def report_progress(self, always: bool = False) -> None:
        """Tell the client how far the ops are and what they took, if it does not know yet.

        Whoever reads nothing is not told for ever.
        """
        is_news = self.applied > self._reported or self._done > self._reported_done
        if self._busy_seconds > self._reported_seconds and self._done >= self._reported_done:
            is_news = True  # what it took, of no less than what is known to be done
        if (always or is_news) and self.outbox.waiting(self._peer) < MAX_UNREAD:
            self._reported, self._reported_done, self._reported_seconds = self.applied, self._done, self._busy_seconds
            self._timed = self._done
            dropped = (self._cancel_after, self._cancel_through)
            self._send(encode(wire.Ack(self.applied, self._done, self._busy_seconds, *dropped)))

    def end(self, reason: str) -> None:
        """Tell the client that the session is over."""
        self._send(encode(wire.Refused(RefusalCode.ENDED, reason)))

    def _refuse(self, peer: bytes, code: RefusalCode, message: str) -> None:
        # Whoever sends rubbish and reads nothing costs no more memory than this.
        if self.outbox.waiting(peer) < (2 * MAX_UNREAD if peer == self._peer else _MOST_REFUSALS):
            self.outbox.put(peer, encode(wire.Refused(code, message)))

    def _send(self, message: Message) -> None:
        if self._peer is not None:
            self.sent_bytes += size_of(message)
            self.outbox.put(self._peer, message)


def _code_of(error: WireError) -> RefusalCode:
    if isinstance(error, ForeignVersion):
        return RefusalCode.FOREIGN_VERSION
    if isinstance(error, OversizedMessage):
        return RefusalCode.OVERSIZED
    return RefusalCode.MALFORMED


def _encode_answer(seq: int, done: int, answer: Answer) -> list[Message]:
    if answer.error is not None:
        return [encode(wire.Failed(seq, answer.error, done))]
    reply, buffers = wire.Reply(seq, answer.value, answer.warnings, done), answer.buffers
    try:
        if not buffers:
            return [encode(reply)]
        if len(buffers) == 1 and buffers[0].nbytes > wire.CHUNK_BYTES:
            return [*_encode_chunks(seq, _bytes_of(buffers[0])), encode(reply)]
        return [encode(reply, list(map(_bytes_of, buffers)))]
    except (OverflowError, ValueError, TypeError) as error:  # a value that msgspec will not encode
        reason = f"The result cannot be sent: {error!a}"  # ASCII: it may be about characters without UTF-8
        return [encode(wire.Failed(seq, ErrorRecord("builtins.TypeError", reason), done))]


def _encode_chunks(seq: int, content: memoryview) -> list[Message]:
    starts = range(0, len(content), wire.CHUNK_BYTES)
    return [encode(wire.Chunk(seq, start), [content[start : start + wire.CHUNK_BYTES]]) for start in starts]


def _bytes_of(buffer: np.ndarray[Any, Any]) -> memoryview:
    if buffer.ndim == 1 and buffer.dtype == _BYTE and buffer.flags.c_contiguous:  # as it was lent
        return buffer.data
    return np.ascontiguousarray(buffer).reshape(-1).view(np.uint8).data
