"""The pipeline under every order of events that hypothesis can think of: each op is carried out once, in order."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gpu_backend.wire.errors import SessionLost
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Buffer
from kernelproxy import compiled
from kernelproxy.stream.batch import OpenBatch

from .played import PlayedExecutor, interrupt_at


class PipelineMachine(RuleBasedStateMachine):
    """A notebook, its executor, and the network between them. Ops are known by the order in which they were asked."""

    @initialize(
        credit_ops=st.sampled_from([64, 70, 200]),
        credit_bytes=st.sampled_from([10, 100, 100_000]),
        is_compiled=st.booleans(),
    )
    def begin(self, credit_ops: int, credit_bytes: int, is_compiled: bool) -> None:
        self.ways = compiled.used(is_compiled)
        self.ways.__enter__()
        self.executor = PlayedExecutor(credit_ops, credit_bytes)
        #: Up to where what is done is durable; all of it if negative.
        self.durable = -1
        self.pipeline = self.executor.pipeline(
            lambda marks: marks.done if self.durable < 0 else min(marks.done, self.durable)
        )
        self.asked = 0
        #: Ops that may be missing: an interrupt struck while they were asked for, or a cancel or a loss while queued.
        self.excused: set[int] = set()
        self.seen_before: OpenBatch = self.pipeline.open_batch

    def _next(self) -> int:
        self.asked += 1
        return self.asked

    def _write(self, size: int) -> None:
        word = str(self._next()).ljust(size)
        self.pipeline.record_with_buffer(
            lambda frame: (".write", (word, Buffer(frame, "|u1", (len(word),)))), word.encode()
        )

    def _call(self) -> None:
        number = self._next()
        assert self.pipeline.call("op", (number,), Want.CONTENTS).value == number

    # --- the notebook -------------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 150))
    def record(self, count: int) -> None:
        for _ in range(count):
            self.pipeline.record("op", (self._next(),))

    @rule(size=st.integers(1, 300))
    def write(self, size: int) -> None:
        self._write(size)

    @rule()
    def call(self) -> None:
        self._call()

    @rule()
    def call_with_buffer(self) -> None:
        number = self._next()
        buffer = Buffer(0, "|u1", (1,))
        data = str(number).encode()
        assert self.pipeline.call(".write", (number, buffer), Want.CONTENTS, None, [data]).value == number

    @rule(moment=st.integers(0, 120), kind=st.sampled_from(["record", "write", "call"]))
    def be_interrupted(self, moment: int, kind: str) -> None:
        first = self.asked + 1
        try:
            with interrupt_at(moment):
                if kind == "call":
                    self._call()
                elif kind == "write":
                    self._write(50)
                else:
                    for _ in range(20):
                        self.pipeline.record("op", (self._next(),))
        except KeyboardInterrupt:
            self._excuse_queued()
            self.excused.update(range(first, self.asked + 1))

    @rule()
    def cancel(self) -> None:
        self._excuse_queued()
        self.pipeline.cancel_pending()

    def _excuse_queued(self) -> None:
        done = [int(word) for _, word in self.executor.done if word is not None]
        self.excused.update(range(max(done, default=0) + 1, self.asked + 1))

    # --- its background sender ----------------------------------------------------------------------------------------

    @rule()
    def look(self) -> None:
        self.seen_before = self.pipeline.open_batch

    @rule()
    def send_in_background(self) -> None:
        self.pipeline.flush_if_open(self.seen_before)

    @rule()
    def ping(self) -> None:
        self.pipeline.ping()

    # --- the executor and the network ---------------------------------------------------------------------------------

    @rule()
    def executor_hears(self) -> None:
        self.executor.hear()

    @rule(most=st.integers(1, 200))
    def executor_works(self, most: int) -> None:
        self.executor.work(most)

    @rule()
    def executor_speaks(self) -> None:
        self.executor.speak()

    @rule()
    def connection_is_cut(self) -> None:
        assert self.executor.link is not None
        self.executor.link.cut()

    @precondition(lambda self: self.asked > 0)
    @rule()
    def executor_dies(self) -> None:
        assert self.executor.link is not None
        self.executor.link.cut()
        self.executor.restart()
        self.excused.update(range(1, self.asked + 1))
        self.asked += 1
        try:
            self.pipeline.call("op", (self.asked,), Want.CONTENTS)
        except SessionLost:
            self.excused.add(self.asked)
        else:
            raise AssertionError("nobody was told of the loss")

    @rule(durable=st.integers(-1, 2_000))
    def durable_point_moves(self, durable: int) -> None:
        self.durable = durable

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def ops_run_once_and_in_order(self) -> None:
        numbers = [seq for seq, _ in self.executor.done]
        assert numbers == list(range(numbers[0] if numbers else 1, (numbers[-1] if numbers else 0) + 1))
        words = [int(word) for _, word in self.executor.done if word is not None]
        assert words == sorted(set(words))

    @invariant()
    def credit_is_kept(self) -> None:
        assert self.pipeline.credit.ops_in_flight <= self.executor.credits[0]

    @invariant()
    def marks_are_in_order(self) -> None:
        marks = self.pipeline.journal.marks
        assert marks.recorded >= marks.sent >= marks.taken >= marks.applied >= marks.done >= marks.durable
        assert self.executor.talk._taken >= marks.taken

    @invariant()
    def all_is_held_that_is_not_durable(self) -> None:
        journal, open_batch = self.pipeline.journal, self.pipeline.open_batch
        held = [number for one in journal.held() for number in range(one.first, one.last + 1)]
        assert journal.is_whole
        assert held == list(range(held[0], held[0] + len(held))) if held else True
        # An interrupt may strike while a batch goes from one to the other: it is in both, or noted and not yet held.
        newest = journal.held()[-1] if held else None
        assert newest is None or newest is open_batch or newest.last == open_batch.first - 1
        kept = {*held, *range(open_batch.first, open_batch.last + 1)}
        assert kept >= set(range(journal.marks.durable + 1, journal.marks.recorded + 1))

    def teardown(self) -> None:
        try:
            if hasattr(self, "pipeline"):
                self._call()
                done = {int(word) for _, word in self.executor.done if word is not None}
                assert set(range(1, self.asked + 1)) - self.excused <= done
        finally:
            self.ways.__exit__(None, None, None)


TestPipelineMachine = PipelineMachine.TestCase
TestPipelineMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
