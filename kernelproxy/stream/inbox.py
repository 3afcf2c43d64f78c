"""What the executor has said: answers that somebody waits for, and failures that nobody has heard of yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import msgspec

from gpu_backend.opstream.contents import KEEP, WRITE_KEPT, KnownContents
from gpu_backend.opstream.journal import Journal
from gpu_backend.wire import messages as wire
from gpu_backend.wire.bounds import MOST_BYTES
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.errors import ErrorRecord, ProtocolError, WarningRecord
from gpu_backend.wire.values import Value
from kernelproxy import compiled
from kernelproxy.errors import deferred_exception, remote_exception
from kernelproxy.source_lines import Site
from kernelproxy.stream.ahead import Ahead
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.retention import Retention, until_done

#: How long one thread reads for all before others get a turn, seconds.
TURN_SECONDS = 0.005
#: Failures remembered after they were shown, to explain what they make impossible later.
_REMEMBERED_FAILURES = 1_000
#: The same for ops that an interrupt dropped; each interrupt brings at most as many as may be under way.
_REMEMBERED_SITES = 32_768
#: The executor keeps answers until it hears that they were read; it hears at the latest after so many, or so much.
_UNTOLD_READS = 256
_UNTOLD_BYTES = 64 << 20

NOTHING = wire.Want.NOTHING


class Answer(msgspec.Struct):
    """What the executor said to one op."""

    value: Value
    buffers: list[Frame]
    warnings: tuple[WarningRecord, ...] | None = None


class Inbox:
    """Sorts what comes in. Written by whoever reads the connection, read by those who wait.

    What is said to be done is noted in ``journal``, where everybody reads it; what it took is told to ``ahead``.
    ``retention`` says what of it the journal need not keep; ``contents`` hear of it if they may not be kept. An answer
    in pieces has at most ``most_bytes``, what the device holds, unless whoever asks knows better (`bounded`).
    """

    # Slots for what each answer changes: they are found faster, also by the compiled core.
    __slots__ = (
        "__dict__", "_awaited", "_chunks", "_failures", "_journal", "_retention", "_untold_bytes", "_untold_reads",
        "answers", "moved_at", "received",
    )  # fmt: skip

    def __init__(
        self, journal: Journal[OpenBatch], ahead: Ahead, retention: Retention = until_done,
        contents: KnownContents | None = None, most_bytes: int = MOST_BYTES,
    ) -> None:  # fmt: skip
        self._journal = journal
        self._contents = contents
        self._ahead = ahead
        self._retention = retention
        #: When it was seen that the ops go on, and when the executor last said that they are no further.
        self.moved_at = self.heard_at = 0.0
        #: Number of the last op whose answer was read.
        self.received = 0
        #: Ops above the first number up to the second were cancelled and never run, as the executor says.
        self.dropped = 0, 0
        self._untold_reads = 0
        self._untold_bytes = 0
        self._awaited: set[int] = set()
        #: What has come of what is awaited, by the number of the op. To be changed by the inbox only.
        self.answers: dict[int, Answer | Exception] = {}
        self._chunks: dict[int, bytearray] = {}
        self._most_bytes = most_bytes
        self._bounds: dict[int, int] = {}
        #: How many failures were told.
        self.failed = 0
        self._failures: dict[int, Exception] = {}
        self._told: Exception | None = None  # what those who waited last were all answered by
        self._remembered: dict[int, tuple[ErrorRecord, Site | None]] = {}
        self._cancelled_sites: dict[int, Site | None] = {}

    @property
    def spoken_at(self) -> float:
        """When the executor was last heard to be free to speak."""
        return max(self.moved_at, self.heard_at)

    # --- for those who wait -------------------------------------------------------------------------------------------

    def expect(self, seq: int) -> None:
        """Keep the answer of op ``seq`` when it comes."""
        self._awaited.add(seq)

    def forget(self, seq: int) -> None:
        """Nobody waits for op ``seq`` any more: neither its answer nor its failure is anybody's to hear."""
        self._awaited.discard(seq)
        self.answers.pop(seq, None)

    @contextmanager
    def bounded(self, seq: int, most_bytes: int) -> Iterator[None]:
        """Take no more than ``most_bytes`` of pieces for op ``seq``, as long as this is entered."""
        self._bounds[seq] = most_bytes
        try:
            yield
        finally:
            del self._bounds[seq]

    def seen(self, seq: int) -> Answer | None:
        """Return the answer of op ``seq`` if it is there and no error; raises nothing, so that failures are kept."""
        answer = self.answers.get(seq)
        return answer if isinstance(answer, Answer) else None

    def take(self, seq: int) -> Answer:
        """Return the answer of op ``seq``, which is there.

        Raises
        ------
        Exception
            What the op raised; or, if an earlier op that nobody waited for failed, what that raised.
        """
        __tracebackhide__ = True
        answer = self.answers[seq]
        if isinstance(answer, Exception):
            earliest = min(self._failures, default=seq)
            error = self._failures[earliest] if earliest < seq else answer
            self._failures.clear()
            try:
                raise error
            finally:
                del answer, error  # the error's traceback holds this frame: in a cycle they would keep arrays alive
        if self._failures:
            self.raise_deferred()
        return answer

    def raise_deferred(self) -> None:
        """Raise the first failure of an op that nobody waited for, if there is one.

        One failure is told once, and those behind it not at all: without it, their ops would never have been asked for.

        Raises
        ------
        Exception
            What the op raised, with a note naming the line that recorded it.
        """
        __tracebackhide__ = True
        if self._failures:
            error = self._failures[min(self._failures)]
            self._failures.clear()
            try:
                raise error
            finally:
                del error  # as in `take`

    def fail_all(self, error: Exception) -> None:
        """Answer everybody who waits by ``error``."""
        awaited = tuple(self._awaited)
        if awaited:
            self._told = error
        for seq in awaited:
            self.answers.setdefault(seq, error)

    def tell_later(self, error: Exception) -> None:
        """Let the next who waits hear of ``error``, unless those who waited when it came do."""
        if error is not self._told:
            self._failures.setdefault(0, error)

    def remember_sites(self) -> None:
        """Remember where all that is under way was recorded: it is cancelled, and may be missing later."""
        if len(self._cancelled_sites) > _REMEMBERED_SITES:
            self._cancelled_sites.clear()
        waiting = list(self._journal.waiting())
        self._cancelled_sites |= {batch.first + place: batch.sites[place] for batch, place in waiting}

    # --- for whoever reads --------------------------------------------------------------------------------------------

    def note(self, message: wire.ToClient, buffers: list[Frame]) -> wire.Refused | None:
        """Take in what came, and pass on how far it says the ops to be. Returns a refusal: it is no answer.

        Raises
        ------
        ProtocolError
            If the executor says what cannot be.
        """
        if isinstance(message, wire.Reply):
            self._note_reply(message, buffers)
            self._note_applied(message.seq, message.done)
        elif isinstance(message, wire.Ack):
            self._note_progress(message)
        elif isinstance(message, wire.Failed):
            self._note_failure(message)
            self._note_applied(message.seq, message.done)
        elif isinstance(message, wire.Chunk):
            self._note_chunk(message, buffers)
        return message if isinstance(message, wire.Refused) else None

    note = compiled.quick("hear", note)

    def _note_applied(self, applied: int, done: int) -> None:
        journal, before = self._journal, self._journal.marks.applied
        journal.note_progress(applied, done)
        if applied > before:
            self.moved_at = monotonic()
        self.let_go()

    def let_go(self) -> None:
        """Let the journal go of what nobody will ask for again."""
        self._journal.note_durable(self._retention(self._journal.marks))

    def _note_progress(self, ack: wire.Ack) -> None:
        if ack.applied <= self._journal.marks.applied:  # no news, so it is really there
            self.heard_at = monotonic()
        self._note_applied(ack.applied, ack.done)
        if ack.done >= self._journal.marks.done:  # else of an op that was answered since the time is not counted yet
            self._ahead.note_time(ack.busy_seconds, ack.dropped_through)
        if ack.dropped_through > self.dropped[1]:
            self.dropped = ack.dropped_after, ack.dropped_through

    def forget_all(self) -> None:
        """Forget what is under way: the executor that would have answered is gone, and its failures with it."""
        self._failures.clear()
        self._remembered.clear()

    def forget_parts(self) -> None:
        """Forget unfinished answers: a new connection brings them again from their beginning."""
        self._chunks.clear()

    def _note_chunk(self, chunk: wire.Chunk, buffers: list[Frame]) -> None:
        if chunk.seq not in self._awaited:  # nobody waits for it any more; the executor keeps it all the same
            self._untold_bytes += sum([len(one) for one in buffers])
            return
        whole = self._chunks.setdefault(chunk.seq, bytearray())
        if chunk.offset != len(whole) or len(buffers) != 1:
            raise ProtocolError(f"The executor sent part {chunk.offset} of an answer of which {len(whole)} bytes came.")
        most = self._bounds.get(chunk.seq, self._most_bytes)
        if len(whole) + len(buffers[0]) > most:
            raise ProtocolError(
                f"The executor sent more than {most} bytes, which is all that there can be of an answer."
            )
        whole += buffers[0]

    def _note_reply(self, reply: wire.Reply, buffers: list[Frame]) -> None:
        chunks = self._chunks.get(reply.seq)
        whole: list[Frame] = buffers if chunks is None else [chunks]
        if reply.seq in self._awaited:
            self.answers[reply.seq] = Answer(reply.value, whole, reply.warnings)
        self._chunks.pop(reply.seq, None)
        self._note_read(reply.seq, sum(map(len, whole)))

    def _note_failure(self, failed: wire.Failed) -> None:
        seq, error = failed.seq, failed.error
        self.failed += 1
        found = self._journal.find(seq)
        op, site = found[0].at(found[1]) if found is not None else (None, None)
        if op is not None and op.name in (KEEP, WRITE_KEPT) and error.caused_by < 0 and self._contents is not None:
            self._contents.forget()
        is_given_up = op is not None and op.want is not NOTHING and seq not in self._awaited
        cause = self._remembered.get(error.caused_by)
        if error.caused_by >= 0:  # the line to blame is that which asked for what is missing; none rather than another
            site = cause[1] if cause is not None else self._cancelled_sites.get(error.caused_by)
        elif len(self._remembered) < _REMEMBERED_FAILURES:
            self._remembered[seq] = (error, site)
        if seq in self._awaited:
            late = error.caused_by >= 0
            self.answers[seq] = deferred_exception(error, site) if late else remote_exception(error)
        elif is_given_up:
            pass  # who asked has heard of another failure, or was interrupted: this one is of no later cell
        elif (error.caused_by < 0 or cause is None) and len(self._failures) < _REMEMBERED_FAILURES:
            self._failures[seq] = deferred_exception(error, site)
        self._note_read(seq, 0)

    def _note_read(self, seq: int, size: int) -> None:
        if seq > self.received:
            self.received = seq
        self._untold_reads += 1
        self._untold_bytes += size

    @property
    def should_tell(self) -> bool:
        """True if the executor keeps much that was read here."""
        return self._untold_reads >= _UNTOLD_READS or self._untold_bytes >= _UNTOLD_BYTES

    def note_told(self) -> None:
        """Note that ``received`` was sent."""
        self._untold_reads = self._untold_bytes = 0


compiled.learn(
    Answer=Answer, Inbox=Inbox, Reply=wire.Reply, monotonic=monotonic, turn_seconds=TURN_SECONDS, until_done=until_done
)
