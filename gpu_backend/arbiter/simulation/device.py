"""One device in virtual time: executors that obey their gates, and the arbiter's core above them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from math import ceil, inf, nextafter

from gpu_backend.arbiter import events as ev
from gpu_backend.arbiter.policies.base import SharingPolicy
from gpu_backend.arbiter.scheduler import Scheduler
from gpu_backend.arbiter.simulation.outcome import Outcome, Watch
from gpu_backend.arbiter.simulation.trace import Cell, Script
from gpu_backend.gate.terms import SessionTerms

__all__ = ["SimulatedDevice"]

#: What the driver's own turns between processes leave of the throughput: 9 % were lost with two of them.
_SIDE_BY_SIDE = 0.91
#: An executor keeps as many ops in flight as last this long, at least one and at most the window.
_WINDOW_SECONDS = 0.0005
_WINDOW_OPS = 8
#: Shorter than any op: what is left of sums of floats.
_DUST = 1e-9


class _Executor:
    """One session's queue, its gate, and what it has in flight beyond the gate."""

    __slots__ = (
        "arrived_at", "budget", "cell", "cells", "gate", "in_flight", "is_urgent", "ops_reported", "queued", "ran",
        "terms", "unreported",
    )  # fmt: skip

    def __init__(self, script: Script) -> None:
        self.terms = script.terms
        self.cells = iter(script.cells)
        self.cell: Cell | None = None
        self.gate: ev.OpenGate | None = None
        self.budget = inf
        self.queued = self.in_flight = self.ran = self.unreported = self.arrived_at = 0.0
        self.ops_reported = 0
        self.is_urgent = False

    def launch_window(self) -> None:
        """The gate shuts: what was launched stays in flight and is not preempted."""
        if self.cell is None or self.queued <= 0 or self.budget <= _DUST:
            return
        op = self.cell.op_seconds
        most = self.gate.window_ops if self.gate is not None and self.gate.window_ops else _WINDOW_OPS
        current = op - self.ran % op
        current = current if current > _DUST else op
        window = current + op * min(most - 1, int(_WINDOW_SECONDS / op))
        self.in_flight = min(self.queued, window)
        self.queued -= self.in_flight
        if self.queued < _DUST:
            self.queued = 0.0

    def report(self) -> ev.Reported:
        """Return what is new since the last report."""
        used, self.unreported = self.unreported, 0.0
        if self.cell is None:
            return ev.Reported(self.terms.session, used, 0, 0)
        op, is_waiting = self.cell.op_seconds, self.queued > 0
        done = int(self.ran / op + 1e-6)
        ops = done - self.ops_reported
        self.ops_reported = done
        queued = (ceil(self.queued / op - 1e-6) or 1) if is_waiting else 0
        flying = ceil(self.in_flight / op - 1e-6) if self.in_flight > 0 else 0
        is_urgent = is_waiting and self.is_urgent
        compute, memory = (self.cell.compute_part, self.cell.memory_part) if used else (-1.0, -1.0)
        return ev.Reported(
            self.terms.session, used, ops if ops > 0 else 0, queued, flying, is_urgent, 0.0, compute, memory
        )


class SimulatedDevice:
    """Runs scripts under a policy. Ops of one session are a fluid, cut at op boundaries where a gate shuts.

    Kernels of different processes do not overlap: one open session has the device, several are served side by side
    in equal parts with the driver's loss, and what is in flight behind a shut gate goes first.

    ``has_overlap`` makes it a device on which open sessions' kernels do run at the same time, as they may under MPS,
    and at the best that could be: each as fast as alone while they want of arithmetic and of memory no more than there
    is, and nothing lost. It shows what a policy does there, and measures no device.
    """

    def __init__(
        self,
        policy: SharingPolicy,
        scripts: tuple[Script, ...],
        log_length: int | None = 0,
        changes: Iterable[tuple[float, SessionTerms]] = (),
        has_overlap: bool = False,
    ) -> None:
        """Run ``scripts``, of whose sessions some have other terms from some times on (``changes``)."""
        self._changes = deque(sorted(changes, key=lambda change: change[0]))
        self.scheduler = Scheduler(policy, log_length=log_length)
        self._divided = _overlapped if has_overlap else _shares
        self._executors = {script.terms.session: _Executor(script) for script in scripts}
        self._flying: list[_Executor] = []
        self._working: dict[_Executor, None] = {}  # those with a cell under way
        self._runners: list[_Executor] | None = None
        self._arrivals: list[tuple[float, str]] = []
        self._landed: list[_Executor] = []  # whose ops behind a shut gate are counted and not reported
        self._free_at = 0.0  # when those are done
        self._now = self._told_at = 0.0  # when it is, and when the arbiter last heard anything
        self._watch = Watch([script.terms for script in scripts])
        for script in scripts:
            self._handle(ev.SessionJoined(script.terms))
            self._plan(self._executors[script.terms.session], script.start_seconds)

    def run(self, seconds: float) -> Outcome:
        """Run until ``seconds`` and return what was seen."""
        while True:
            progress = self._progress()
            upcoming = min(self.scheduler.next_deadline(), self._watch.window_end, seconds)
            if self._arrivals and self._arrivals[0][0] < upcoming:
                upcoming = self._arrivals[0][0]
            if self._changes and self._changes[0][0] < upcoming:
                upcoming = self._changes[0][0]
            for executor, rate in progress:
                done = max(self._now, self._free_at) + self._limit(executor) / rate
                upcoming = done if done < upcoming else upcoming
            self._advance(progress, max(upcoming, self._now))
            if self._now >= seconds:
                break
            while self._changes and self._changes[0][0] <= self._now:
                self._handle(ev.TermsChanged(self._changes.popleft()[1]))
            self._settle(progress)
            if self._now >= self._watch.window_end:
                self._watch.end_window()
        for executor in self._executors.values():
            self._handle(executor.report())
        return self._watch.outcome(seconds)

    # --- time ---------------------------------------------------------------------------------------------------------

    def _progress(self) -> list[tuple[_Executor, float]]:
        """Return who uses the device now, and how much of it."""
        if self._flying:
            return [(self._flying[0], 1.0)]
        if self._runners is None:
            self._runners = [
                executor
                for executor in self._working
                if executor.gate is not None and executor.queued > 0 and executor.budget > _DUST
            ]
        runners = self._runners
        if not runners:
            return []
        if len(runners) == 1:
            gate = runners[0].gate
            return [(runners[0], gate.duty if gate is not None else 1.0)]
        return self._divided(runners)

    @staticmethod
    def _limit(executor: _Executor) -> float:
        return executor.in_flight or min(executor.queued, executor.budget)

    def _advance(self, progress: list[tuple[_Executor, float]], now: float) -> None:
        elapsed, running = now - self._now, now - max(self._now, self._free_at)
        useful = elapsed - max(0.0, running) if self._free_at > self._now else 0.0
        self._now = now
        if not elapsed:
            return
        for executor, rate in progress if running > 0 else ():
            done = rate * running
            useful += done
            executor.ran += done
            executor.unreported += done
            if executor.in_flight:
                executor.in_flight = executor.in_flight - done if executor.in_flight - done > _DUST else 0.0
            else:
                executor.queued = executor.queued - done if executor.queued - done > _DUST else 0.0
                executor.budget -= done
            self._watch.used(executor.terms.user, done)
        self._watch.passed(elapsed, useful, bool(progress))

    # --- what happens -------------------------------------------------------------------------------------------------

    def _settle(self, progress: list[tuple[_Executor, float]]) -> None:
        now = self._now
        has_landed = bool(self._flying) and not self._flying[0].in_flight
        if has_landed:
            self._flying.pop(0)
        # A real arbiter reads every page at every look; here only before something is decided.
        deadline = self.scheduler.next_deadline()
        is_due = now >= deadline or bool(self._arrivals and self._arrivals[0][0] <= now)
        # By what all of them say, as there: not by what the first says, with the others' news still to come.
        read_at = max(self._told_at, nextafter(deadline, -inf)) if now >= deadline and len(progress) > 1 else now
        for executor, _ in progress:
            if executor.in_flight or executor.queued:
                if is_due or has_landed or executor.budget <= _DUST:
                    self._runners = None
                    self._handle(executor.report(), read_at)
            else:
                self._finish(executor)
        if self._landed and now >= self._free_at:
            landed, self._landed = self._landed, []
            for executor in landed:
                self._handle(executor.report())
        while self._arrivals and self._arrivals[0][0] <= now:
            self._begin(self._executors[heappop(self._arrivals)[1]])
        if now >= self.scheduler.next_deadline():
            self._handle(ev.TimePassed())

    def _begin(self, executor: _Executor) -> None:
        cell = executor.cell
        assert cell is not None
        executor.queued, executor.ran, executor.ops_reported = cell.seconds, 0.0, 0
        executor.is_urgent = cell.is_urgent
        executor.arrived_at = self._now
        self._runners = None
        self._working[executor] = None
        self._watch.began(executor.terms.user)
        self._handle(executor.report())

    def _finish(self, executor: _Executor) -> None:
        cell = executor.cell
        assert cell is not None
        self._runners = None
        del self._working[executor]
        self._handle(executor.report())
        self._watch.ended(executor.terms.user, self._now - executor.arrived_at - cell.seconds, cell)
        self._plan(executor, self._now)

    def _plan(self, executor: _Executor, after: float) -> None:
        executor.cell = next(executor.cells, None)
        if executor.cell is not None:
            heappush(self._arrivals, (after + executor.cell.think_seconds, executor.terms.session))

    def _handle(self, event: ev.Event, now: float | None = None) -> None:
        self._told_at = self._now if now is None else now
        for instruction in self.scheduler.handle(event, self._told_at):
            executor = self._executors[instruction.session]
            self._runners = None
            if isinstance(instruction, ev.OpenGate):
                executor.gate, executor.budget = instruction, instruction.budget_seconds
            elif executor.gate is not None:
                if executor not in self._flying:
                    executor.launch_window()
                    if executor.in_flight:
                        self._fly(executor)
                executor.gate = None

    def _fly(self, executor: _Executor) -> None:
        """Let what is in flight finish: at once in the books where nothing else comes of it, which saves an event."""
        if not executor.queued:
            self._flying.append(executor)
            return
        seconds, executor.in_flight = executor.in_flight, 0.0
        executor.ran += seconds
        executor.unreported += seconds
        self._watch.used(executor.terms.user, seconds)
        self._free_at = max(self._now, self._free_at) + seconds
        self._landed.append(executor)


def _shares(runners: list[_Executor]) -> list[tuple[_Executor, float]]:
    """Return equal parts of what the driver's turns leave; who pauses by their duty leaves the rest to the others."""
    left, shares = _SIDE_BY_SIDE, []
    ordered = sorted(runners, key=lambda executor: executor.gate.duty if executor.gate is not None else 1.0)
    for place, executor in enumerate(ordered):
        duty = executor.gate.duty if executor.gate is not None else 1.0
        part = min(duty, left / (len(ordered) - place))
        left -= part
        shares.append((executor, part))
    return shares


def _overlapped(runners: list[_Executor]) -> list[tuple[_Executor, float]]:
    """Return how fast each runs where all slow down alike as soon as arithmetic or memory is wanted more than whole."""
    duties = [executor.gate.duty if executor.gate is not None else 1.0 for executor in runners]
    wanted = [_wanted(executor) for executor in runners]
    most = max(1.0, *(sum(map(float.__mul__, duties, each)) for each in zip(*wanted, strict=True)))
    return [(executor, duty / most) for executor, duty in zip(runners, duties, strict=True)]


def _wanted(executor: _Executor) -> tuple[float, float]:
    """Return what an executor wants of arithmetic and of memory: all of both where its cell does not tell."""
    cell = executor.cell
    if cell is None or cell.compute_part + cell.memory_part <= 0:
        return 1.0, 1.0
    return max(0.0, cell.compute_part), max(0.0, cell.memory_part)
