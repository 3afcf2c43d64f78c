"""An executor played in this very thread: the real conversation, behind a link that can be cut and interrupted."""

from __future__ import annotations

import mmap
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dis import opmap
from pathlib import Path
from types import FrameType
from typing import Any

import kernelproxy
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.conversation import Conversation
from gpu_backend.executor.outbox import Message
from gpu_backend.executor.program.failures import CANCELLED
from gpu_backend.opstream import contents
from gpu_backend.opstream.contents import KEEP, WRITE_KEPT, KeptContents
from gpu_backend.transport import framing, interrupts, message_socket, tls
from gpu_backend.transport.copying import Bytes
from gpu_backend.transport.shared_frames import FRAMES_BYTES, SharedFrames
from gpu_backend.wire import messages as wire
from gpu_backend.wire import values
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import ErrorRecord
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Buffer, Tuple
from gpu_backend.wire.version import MINOR_VERSION
from kernelproxy.session.connection import Connection
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.pipeline import Pipeline
from kernelproxy.stream.retention import Retention, until_done

#: Bytecodes by which handlers begin and end.
_OF_HANDLERS = {opmap[name] for name in ("PUSH_EXC_INFO", "COPY", "POP_EXCEPT")}
_CLIENT = (
    str(Path(kernelproxy.__file__).parent),
    *(str(Path(one.__file__)) for one in (framing, interrupts, message_socket, tls, contents)),
)


class PlayedExecutor:
    """Carries ops out by noting them.

    The first argument of an op is what the op is known by; ``fail`` ops fail; ``.write`` ops must bring the buffer that
    says the same as they do, or name what is kept. Time passes when the client waits: then what is under way arrives,
    and ops run.
    """

    def __init__(
        self, credit_ops: int = 1_000, credit_bytes: int = 1_000_000, memory_limit_bytes: int = 0, kept_bytes: int = 0
    ) -> None:
        self.epoch = 0
        self.kept_bytes = kept_bytes
        self.credits = (credit_ops, credit_bytes, memory_limit_bytes)
        self.connections = 0
        #: What each op takes, by its name; none of the others takes any time.
        self.op_seconds: dict[str, float] = {}
        self.busy_seconds = 0.0
        #: Whether the device has done what it was given as soon as that is carried out.
        self.is_quick = True
        #: How many ops it runs while the client waits once.
        self.pace = 1_000_000
        #: Which verbs it knows.
        self.minor = MINOR_VERSION
        self.restart()

    def restart(self) -> None:
        """Lose everything and begin anew under the next epoch."""
        self.epoch += 1
        welcome = wire.Welcome(0, self.epoch, *self.credits, {"kind": "played"}, self.kept_bytes, self.minor)
        self.contents = KeptContents(self.kept_bytes)
        self.talk = Conversation(welcome, "s")
        self.busy_seconds = 0.0
        #: What was carried out: the number of each op and what it is known by; None for it if it was cancelled.
        self.done: list[tuple[int, Any]] = []
        self.dropped: list[int] = []
        self.link: PlayedLink | None = None

    def ticket(self) -> Ticket:
        return Ticket(0, "s", self.epoch, ("tls://played",), "00" * 32, "c" * 64, "played", "cpu", 0, 60.0)

    def connect(self, first: int = 1, received: int = 0) -> PlayedConnection:
        """Return a greeted connection."""
        connection = PlayedConnection(self)
        connection.greet(first, received, 1.0)
        return connection

    def renew(self, pipeline: Pipeline) -> Connection:
        """Do what a session does for a lost connection."""
        pipeline.connection.close()
        if pipeline.connection.ticket.epoch != self.epoch:
            pipeline.abandon()
        return self.connect(pipeline.first, pipeline.inbox.received)

    def pipeline(
        self, retention: Retention = until_done, kind: type[MirroredPipeline] = MirroredPipeline
    ) -> MirroredPipeline:
        """Return a pipeline that knows already that ops take no time; those in ``op_seconds`` it has to learn."""
        made = kind(self.connect(), self.renew, retention=retention)
        made.ahead.clock = lambda: 0.0  # or it would be the host's time that decides what goes in one message
        for name in {"op", "fail", ".write"} - self.op_seconds.keys():
            for digits in range(40):
                made.ahead.costs[digits][name].learn(0.0)
        return made

    # --- the passing of time ------------------------------------------------------------------------------------------

    def hear(self) -> None:
        """Let what is under way to the executor arrive."""
        link = self.link
        while link is not None and link.under_way:
            self.talk.receive(link.peer, link.under_way.popleft())

    def work(self, most: int) -> None:
        """Run so many ops."""
        while most and (batch := self.talk.front()) is not None:
            most -= 1
            op, seq = batch.ops[batch.next], batch.first + batch.next
            cancelled = self.talk.is_cancelled
            self.talk.advance(batch, batch.next + 1)
            self.busy_seconds += 0.0 if cancelled else self.op_seconds.get(op.name, 0.0)
            if self.is_quick:
                self.talk.note_done(self.talk.applied, self.busy_seconds)
            self.dropped += [*(op.drop or ()), *((op.reuse,) if op.reuse else ())]
            answer = Answer(error=CANCELLED) if cancelled else self._carry_out(op, batch.frames)
            self.done.append((seq, None if cancelled else op.args[0] if op.args else op.name))
            if op.want is not Want.NOTHING or (answer.error is not None and not cancelled):
                self.talk.answer(answer)

    def _carry_out(self, op: wire.Op, frames: Sequence[Frame]) -> Answer:
        if op.name == ".write":
            told, buffer = op.args
            assert isinstance(buffer, Buffer)
            content = buffer.data if buffer.frame < 0 else frames[buffer.frame]
            assert bytes(content) == str(told).encode()
        if op.name == KEEP:
            digest, buffer, gone = op.args
            assert isinstance(digest, values.Bytes)
            assert isinstance(buffer, Buffer)
            left = (
                [one.data for one in gone.items if isinstance(one, values.Bytes)] if isinstance(gone, Tuple) else None
            )
            self.contents.keep(digest.data, bytes(frames[buffer.frame]), left)
        if op.name == WRITE_KEPT:
            told, digest = op.args
            assert isinstance(digest, values.Bytes)
            assert self.contents.get(digest.data) == str(told).encode()
        if op.name in ("fail", ".fail"):
            return Answer(error=ErrorRecord("builtins.ValueError", f"{op.args[0]} failed"))
        return Answer(op.args[0] if op.args else None)

    def speak(self) -> None:
        """Let what the executor says arrive."""
        self.talk.report_progress()
        self.talk.outbox.send(self._arrive)

    def _arrive(self, peer: bytes, message: Message) -> bool:
        if self.link is not None and peer == self.link.peer:
            self.link.arrived.append([bytes(frame) for frame in message])
        return True

    def live(self) -> None:
        """Let everything happen that can."""
        self.hear()
        self.work(self.pace)
        self.speak()


class PlayedLink:
    """A link as `kernelproxy.session.links` describes it."""

    def __init__(self, executor: PlayedExecutor) -> None:
        executor.connections += 1
        self.peer = b"peer %d" % executor.connections
        self.is_torn = False
        self.is_cut = False
        self.frames = SharedFrames(mmap.mmap(-1, FRAMES_BYTES), is_maker=True)
        self.under_way: deque[list[Frame]] = deque()
        self.arrived: deque[list[Frame]] = deque()
        self._executor = executor
        self._closed = False

    def send(self, frames: Sequence[Frame]) -> bool:
        assert not self._closed
        assert not self.is_torn, "a message in the middle of another"
        self.is_torn = True
        message: list[Frame] = []
        for frame in frames:
            message.append(frame)
        if not self.is_cut:
            self.under_way.append(message)
        self.is_torn = False
        return True

    def receive(self, timeout_seconds: float) -> list[Frame] | None:
        assert not self._closed
        if not self.arrived and timeout_seconds and not self.is_cut:
            with uninterrupted():
                self._executor.live()
        if not self.arrived:
            return None
        self.is_torn = True
        return self.arrived.popleft()

    def lend(self, size: int) -> Bytes | None:
        return self.frames.lend(size)

    def own(self) -> None:
        self.under_way = deque([[bytes(frame) for frame in message] for message in self.under_way])

    def cut(self) -> None:
        """Lose the connection and all that is under way on it."""
        self.is_cut = True
        self.under_way.clear()
        self.arrived.clear()

    def close(self) -> None:
        self._closed = True


class PlayedConnection(Connection):
    """The real connection over a played link."""

    link: PlayedLink

    def __init__(self, executor: PlayedExecutor) -> None:
        self._executor = executor
        super().__init__(executor.ticket(), "me", False, 1.0)

    def _open(self, timeout_seconds: float) -> Any:
        self.link = self._executor.link = PlayedLink(self._executor)
        (self.endpoint,) = self.ticket.endpoints
        return self.link


# --- interrupts at chosen moments -------------------------------------------------------------------------------------


@contextmanager
def interrupt_at(moment: int) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt at a moment counted from 0, or never if it is negative; yield how many have passed.

    Moments are those at which Python looks for signals in the client's code: a function begins, or a call is done.
    """
    passed = [0]

    def look(frame: FrameType, event: str, arg: object) -> None:
        if event != "c_call" and frame.f_code.co_filename.startswith(_CLIENT):
            passed[0] += 1
            if passed[0] - 1 == moment:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        yield passed
    finally:
        sys.setprofile(None)


@contextmanager
def interrupt_before_opcode(moment: int) -> Iterator[list[int]]:
    """Like `interrupt_at`, but moments are all bytecodes of the client's: for code that locks nothing.

    Where a lock is held by a ``with``, Python looks for signals at no bytecode at which it would stay held; nor does it
    where a handler begins or ends. What is raised there anyway has the thread handle an exception for ever.
    """
    passed = [0]

    def look(frame: FrameType, event: str, arg: object) -> Any:
        if not frame.f_code.co_filename.startswith(_CLIENT):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_code[frame.f_lasti] not in _OF_HANDLERS:
            passed[0] += 1
            if passed[0] - 1 == moment:
                sys.settrace(None)
                raise KeyboardInterrupt
        return look

    before = sys.gettrace()
    # CPython 3.12 tells of bytecodes from the next `settrace` on after a frame has asked: else of none at first.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(look)
    try:
        yield passed
    finally:
        sys.settrace(before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep interrupts away from what is not the client's."""
    profile = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(profile)
