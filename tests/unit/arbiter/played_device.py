"""A device shared in virtual time by the real arbiter, gates, paces and loops: played are GPU, notebooks and waking up.

Where the simulator's executors are a fluid, these launch, wait, ring and report as a process does, each at a price in
time; the GPU gives equal slices to the processes that have work in it, as the driver does.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

from gpu_backend.arbiter.seat import Seat
from gpu_backend.arbiter.service import Arbiter
from gpu_backend.engine.detached import ProcessId
from gpu_backend.executor.gate import Gate
from gpu_backend.executor.instructions import Report, Run, Sleep, Spin, Stop, Wait
from gpu_backend.executor.loop import Loop
from gpu_backend.executor.pace import Pace
from gpu_backend.gate import reports
from gpu_backend.gate import roster as rosters
from gpu_backend.gate.bell import Line
from gpu_backend.gate.reports import ReportView
from gpu_backend.gate.roster import ArbiterConfig, Member, Roster
from gpu_backend.gate.terms import SessionTerms
from gpu_backend.wire.op_classes import OP_CLASSES, OpClass

#: What things cost, seconds: waking a process, a launch, a look around, a round trip to the notebook, a decision.
WAKE, LAUNCH, LOOK, ROUND_TRIP, DECISION = 50e-6, 6e-6, 10e-6, 150e-6, 80e-6
#: The driver's slice for each process with work in the device, seconds.
DRIVER_SLICE = 2e-3

#: What a process does next: (whether a ring ends it early, seconds).
Pause = tuple[bool, float]
Life = Generator[Pause, None, None]


def busy(seconds: float) -> Pause:
    return False, seconds


def asleep(seconds: float) -> Pause:
    return True, seconds


class Clock:
    """Virtual time, and what happens in it."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = self.now_ns = start_ns
        self._plans: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()

    @property
    def now(self) -> float:
        # From the start: where the host has been up for long, its own time is a large float, and sums differ.
        return (self.now_ns - self._start_ns) / 1e9

    def ns(self) -> int:
        return self.now_ns

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        heappush(self._plans, (self.now_ns + max(0, int(seconds * 1e9)), next(self._numbers), act))

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.now_ns + int(seconds * 1e9)
        while self._plans and self._plans[0][0] <= end:
            at, _, act = heappop(self._plans)
            self.now_ns = max(self.now_ns, at)
            act()
        self.now_ns = end


class Process:
    """Lives from one pause to the next. A ring ends a sleep early, or the next one if it is busy."""

    def __init__(self, clock: Clock, life: Life) -> None:
        self._clock, self._life = clock, life
        self._number = 0
        self._is_asleep = self._is_rung = False
        clock.after(0, lambda: self._go_on(0))

    def ring(self) -> None:
        if self._is_asleep:
            number = self._number
            self._clock.after(WAKE, lambda: self._go_on(number))
        self._is_rung = True

    def _go_on(self, number: int) -> None:
        if number != self._number:
            return  # it was woken before
        self._number += 1
        if self._is_asleep:
            self._is_asleep = self._is_rung = False
        try:
            is_asleep, seconds = next(self._life)
        except StopIteration:
            self._number = -1
            return
        self._is_asleep = is_asleep
        number = self._number
        self._clock.after(LOOK if is_asleep and self._is_rung else seconds, lambda: self._go_on(number))


@dataclass
class Mark:
    """A place in a process's queue on the GPU."""

    gpu: Gpu
    owner: int
    at: float = -1.0

    def is_done(self) -> bool:
        self.gpu.advance()
        return self.at >= 0

    def seconds_since(self, earlier: Mark) -> float:
        return self.at - earlier.at


class Gpu:
    """Runs each process's work in order, and the processes' in slices."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at = clock.now
        self._queues: dict[int, deque[Mark | list[float]]] = {}
        self._order: deque[int] = deque()  # processes with work, the running one first
        self._left = DRIVER_SLICE
        #: True device time by process, seconds.
        self.ran: dict[int, float] = {}

    def mark(self, owner: int) -> Mark:
        mark = Mark(self, owner)
        self._put(owner, mark)
        return mark

    def launch(self, owner: int, seconds: float) -> None:
        self._put(owner, [seconds])

    def left(self, owner: int) -> float:
        """Return the work that a process has in the queue, seconds."""
        self.advance()
        return sum(item[0] for item in self._queues.get(owner, ()) if isinstance(item, list))

    def _put(self, owner: int, item: Mark | list[float]) -> None:
        self.advance()
        self._queues.setdefault(owner, deque()).append(item)
        if owner not in self._order:
            self._order.append(owner)
        self.advance()

    def advance(self) -> None:
        now = self._clock.now
        while self._order:
            owner = self._order[0]
            queue = self._queues[owner]
            if not queue:
                self._order.popleft()
                self._left = DRIVER_SLICE
                continue
            item = queue[0]
            if isinstance(item, Mark):
                item.at = self._at
                queue.popleft()
                continue
            if self._at >= now:
                return
            if self._left <= 1e-12:
                self._order.rotate(-1)
                self._left = DRIVER_SLICE
                continue
            step = min(item[0], self._left, now - self._at)
            item[0] -= step
            self._at += step
            self._left -= step
            self.ran[owner] = self.ran.get(owner, 0.0) + step
            if item[0] <= 1e-12:
                queue.popleft()
        self._at = now


@dataclass
class Op:
    """A kernel of some length, or a wait for all before it (0) whose answer the notebook waits for."""

    seconds: float
    is_awaited: bool = False
    kind: OpClass = OpClass.OTHER


@dataclass(eq=False)
class Player:
    """An executor and the notebook before it."""

    world: World
    number: int
    terms: SessionTerms
    report: int
    queue: deque[Op] = field(default_factory=deque)
    asked: int = 0
    answered: int = 0
    notebook: Process | None = None

    def __post_init__(self) -> None:
        clock, gpu = self.world.clock, self.world.gpu
        self.pace = Pace(lambda: gpu.mark(self.number), lambda: clock.now)
        self.gate = Gate(self.report, True, self.pace, clock.ns)
        self.loop = Loop(self.gate, self.pace)
        self.process = Process(clock, self._serve())

    def take(self, seat: Seat) -> None:
        """Take what the arbiter hands over; the bells between the two are played."""
        ours, theirs = Line.pair()
        ours.close()
        self.gate.take(os.dup(seat.orders.descriptor), os.dup(self.world.arbiter._way), theirs)
        assert self.gate.line is not None
        self.gate.line.close()
        self.gate.line = PlayedLine(lambda: self.world.ring(self.terms.session))  # type: ignore[assignment]
        seat.line.ring = self.process.ring  # type: ignore[method-assign]

    def ask(self, ops: Iterable[Op]) -> None:
        """Ops arrive from the notebook."""
        self.queue.extend(ops)
        self.asked += 1
        self.process.ring()

    @property
    def is_awaited(self) -> bool:
        return bool(self.queue) and self.queue[-1].is_awaited

    def _tell(self, is_resting: bool = False) -> None:
        self.gate.tell(len(self.queue), self.is_awaited, 0, is_resting)

    @property
    def has_work(self) -> bool:
        return bool(self.queue)

    #: Nothing is ever cancelled, and its notebook reads at once.
    is_cancelled = has_unsent = False

    def _serve(self) -> Life:
        """Carry out what the executor's own loop says; each look at the world has its price."""
        loop, clock = self.loop, self.world.clock
        while not isinstance(step := loop.next_step(self, clock.now), Stop):
            if isinstance(step, Run):
                self._tell()
                yield from self._run_ops(step.until)
            elif isinstance(step, Report):
                if step.is_resting:
                    self.pace.close_group()
                    self.pace.collect()
                self._tell(step.is_resting)
                loop.note_told(step.is_resting)
            elif isinstance(step, Spin | Sleep):
                yield from self._wait(step)
            else:  # there are no sockets, no memory and no leases to look at
                loop.note_looked(clock.now, False)
                loop.note_measured(clock.now)
                loop.note_checked(clock.now)

    def _run_ops(self, until: float) -> Life:
        pace, is_answered = self.pace, False
        while self.queue and self.loop.may_launch() and self.world.clock.now < until:
            pace.begin(self.queue[0].is_awaited)
            ops, is_answered = 0, False
            while self.queue and ops < pace.run_ops and not is_answered:
                op = self.queue[0]
                if op.seconds:
                    self.world.gpu.launch(self.number, op.seconds)
                    pace.counts[OP_CLASSES.index(op.kind)] += 1
                yield busy(LAUNCH)
                while op.is_awaited and (left := self.world.gpu.left(self.number)):
                    yield busy(left + 1e-6)
                self.queue.popleft()
                ops, is_answered = ops + 1, op.is_awaited
            pace.note_launches(ops, is_answered)
            if is_answered:
                self.answered += 1
                if self.notebook is not None:
                    self.notebook.ring()
        if not self.queue:
            pace.close_group()
        self.loop.note_ran(self.world.clock.now, is_answered)

    def _wait(self, step: Spin | Sleep) -> Life:
        clock, asked = self.world.clock, self.asked
        if isinstance(step, Sleep):
            yield asleep(max(step.until - clock.now, LOOK))
        else:
            while clock.now < step.until and self.asked == asked and not self._has_come(step.wait):
                yield busy(LOOK)
        if step.wait is Wait.GATE:
            self.gate.end_wait()
        if step.wait is Wait.WORK:
            self.loop.note_heard(clock.now, self.asked != asked)
        else:
            self.loop.note_looked(clock.now, isinstance(step, Sleep) or self.asked != asked)

    def _has_come(self, wait: Wait) -> bool:
        if wait is Wait.GATE:
            return self.gate.may_launch()
        return wait is Wait.ROOM and not self.pace.is_full()


class World:
    """One device with its arbiter and players."""

    def __init__(self, directory: Path, policy: str = "fair_share") -> None:
        self.directory = directory
        self.arbiter = Arbiter(directory, ArbiterConfig(policy=policy))
        self.clock = Clock(self.arbiter._origin_ns)
        self.gpu = Gpu(self.clock)
        self.players: list[Player] = []
        self._rung: set[str] = set()
        self._process = Process(self.clock, self._arbitrate())

    def join(self, user: str, **terms: object) -> Player:
        number = len(self.players)
        own = SessionTerms(session=f"s{number}", user=user, **terms)  # type: ignore[arg-type]
        self.players.append(Player(self, number, own, reports.make()))
        me, nobody = ProcessId.mine(), str(self.directory / "nobody")
        members = [Member(one.terms, me.pid, me.start_time, nobody, one.report) for one in self.players]
        rosters.write(self.directory / rosters.ROSTER, Roster(tuple(members)))
        self.clock.run(0.05)
        return self.players[-1]

    def ring(self, session: str) -> None:
        """Be the arbiter's bell."""
        self._rung.add(session)
        self._process.ring()

    def _arbitrate(self) -> Life:
        arbiter = self.arbiter
        while True:
            rung, self._rung = self._rung, set()
            yield busy(DECISION)
            arbiter.step(self.clock.now_ns, rung)
            for one in self.players:
                if one.gate.line is None and one.terms.session in arbiter._seats:
                    one.take(arbiter._seats[one.terms.session])
            due = arbiter._decides_at() - arbiter._seconds(self.clock.now_ns)
            yield asleep(max(0.0, min(due, 0.05 if arbiter._computing else 0.1)))

    def used(self) -> dict[str, float]:
        """Return each user's GPU time as the pages say it, seconds."""
        found: dict[str, float] = {}
        for one in self.players:
            view = ReportView(os.getpid(), one.report)
            report = view.report()
            view.close()
            assert report is not None
            found[one.terms.user] = found.get(one.terms.user, 0.0) + report.used_ns / 1e9
        return found

    def ran(self) -> dict[str, float]:
        """Return each user's true device time, seconds."""
        found: dict[str, float] = {}
        self.gpu.advance()
        for one in self.players:
            found[one.terms.user] = found.get(one.terms.user, 0.0) + self.gpu.ran.get(one.number, 0.0)
        return found

    def close(self) -> None:
        for one in self.players:
            one.gate.close()
            os.close(one.report)
        self.arbiter.close()


class PlayedLine:
    """An executor's end of its bells."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self.ring = ring

    def close(self) -> None:
        pass
