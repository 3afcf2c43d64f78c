"""The page of shared memory between an arbiter and one executor: what may be launched, and what was.

One file of 320 bytes, mapped by both. Each half has one writer; a half is read as a whole under its sequence
counter (odd while it is being written, and a reader that saw it change reads again), so no reader ever sees one value
of before and another of after. Each word is stored whole, so one that stands for itself is read without the counter.
The executor's test before a launch reads one word, and the clock if its opening ends, and makes no system call.

Layout, little-endian, 8 bytes each: at 0 the magic number and version; at 64 the arbiter's half (sequence, heartbeat,
open until, window, use until, duty in parts of a million, lane until, state, time counted so far); at 192 the
executor's (sequence, used time, ops done, queued, in flight, urgent, memory, used time by class of op). Times are
nanoseconds of the host's monotonic clock. The order in which a processor makes stores visible is what the counters rely
on: x86-64 keeps it.
"""

from __future__ import annotations

import mmap
import os
from math import inf
from pathlib import Path
from struct import Struct

import msgspec

from gpu_backend.arbiter.events import OpenGate, OpenLane
from gpu_backend.wire.op_classes import OP_CLASSES

__all__ = ["UNBOUNDED", "ArbiterPage", "ExecutorPage", "GateOrder", "GateReport", "NotAGate", "create", "read_report"]

_SIZE = 320
_MAGIC = int.from_bytes(b"gpuwbgt\x04", "little")
_ARBITER, _EXECUTOR = 64 // 8, 192 // 8
_HEARTBEAT, _OPEN_UNTIL, _COUNTED = _ARBITER + 1, _ARBITER + 2, _ARBITER + 8
#: The word that changes with every order; see `ExecutorPage.state`.
STATE = _ARBITER + 7
_WORD = Struct("<q")
_FOREVER = 2**63 - 1
_MILLION = 1_000_000
#: Heartbeats: none yet, and one that nobody waits for any more.
_NEVER, _LONG_AGO = 0, 1
#: Tries to read a half that is being written; a writer is done in under a microsecond, so more means that it died.
_TRIES = 1_000


_NO_CLASSES = (0,) * len(OP_CLASSES)


class NotAGate(ValueError):
    """A file that is no gate's page, or one of another version."""


class GateOrder(msgspec.Struct, frozen=True, gc=False):
    """What the arbiter last wrote. Times in nanoseconds of the monotonic clock."""

    open_until_ns: int
    window_ops: int
    #: How far the executor's own count of GPU time may go.
    use_until_ns: int
    duty: float
    #: How far that count may go by short ops while the gate is shut; 0 for not at all.
    lane_until_ns: int = 0


#: What holds where no arbiter is heard.
UNBOUNDED = GateOrder(_FOREVER, 0, _FOREVER, 1.0)
_SHUT = GateOrder(0, 0, 0, 1.0)


class GateReport(msgspec.Struct, frozen=True, gc=False):
    """What an executor last wrote. Counters grow as long as it lives."""

    used_ns: int = 0
    ops_done: int = 0
    queued_ops: int = 0
    in_flight_ops: int = 0
    is_urgent: bool = False
    memory_bytes: int = 0
    #: The used time by class of op, in the order of `OP_CLASSES`.
    used_by_class_ns: tuple[int, ...] = _NO_CLASSES


def create(path: Path) -> None:
    """Make a fresh page at ``path``, readable by its owner only: shut until its arbiter is heard, or patience ends.

    Raises
    ------
    FileExistsError
        If there is a file already.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        os.write(descriptor, _WORD.pack(_MAGIC).ljust(_SIZE, b"\0"))
    finally:
        os.close(descriptor)


class _Page:
    """A mapped page, seen as words of eight bytes."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            if os.fstat(file.fileno()).st_size != _SIZE:
                raise NotAGate(f"{path} is not a gate's page: it is not {_SIZE} bytes long.")
            self._map = mmap.mmap(file.fileno(), _SIZE)
        #: The whole page; only its owner's own methods write here.
        self.words = self._words = memoryview(self._map).cast("q")
        if self._words[0] != _MAGIC:
            self.close()
            raise NotAGate(f"{path} is not a gate's page, or one of another version of this package.")

    def close(self) -> None:
        """Unmap the page. The file stays."""
        self._words.release()
        self._map.close()

    def _write(self, at: int, values: tuple[int, ...]) -> None:
        words = self._words
        words[at] |= 1  # a writer that died half-way left it odd
        for place, value in enumerate(values, at + 1):
            words[place] = value
        words[at] += 1

    def _read(self, at: int, count: int) -> tuple[int, ...] | None:
        """Return the words behind the counter at ``at``, or None if their writer died in the middle of writing."""
        words = self._words
        for _ in range(_TRIES):
            before = words[at]
            if before & 1:
                continue
            values = tuple(words[at + 1 : at + 1 + count])
            if words[at] == before:
                return values
        return None


class ArbiterPage(_Page):
    """The arbiter's side: it writes orders and its heartbeat, and reads reports. There is one for each page."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._order = _SHUT
        self._number, self._is_contended = divmod(self._words[STATE], 2)
        self._seen = -1

    def open(self, instruction: OpenGate, now_ns: int, origin_ns: int = 0) -> None:
        """Let the executor launch within the instruction's bounds; its times are seconds since ``origin_ns``.

        A budget is on top of what is counted: what was used and not yet reported comes off it.
        """
        self._order = GateOrder(
            _FOREVER if instruction.until == inf else origin_ns + int(instruction.until * 1e9),
            instruction.window_ops,
            _FOREVER if instruction.budget_seconds == inf else self.counted_ns + int(instruction.budget_seconds * 1e9),
            instruction.duty,
        )
        self._give_order(now_ns)

    def open_lane(self, instruction: OpenLane, now_ns: int) -> None:
        """Let the executor launch nothing but short ops that somebody waits for, and these before anybody was asked."""
        self._order = GateOrder(0, 0, 0, 1.0, self.counted_ns + int(instruction.budget_seconds * 1e9))
        self._give_order(now_ns)

    def shut(self, now_ns: int) -> None:
        """Let the executor launch nothing more."""
        self._order = _SHUT
        self._give_order(now_ns)

    def _give_order(self, now_ns: int) -> None:
        self.beat(now_ns)
        self._number += 1
        self._words[STATE] = self._number * 2 + self._is_contended

    def beat(self, now_ns: int) -> None:
        """Say that the arbiter lives, and what holds."""
        order = self._order
        duty = max(1, round(order.duty * _MILLION))
        values = (now_ns, order.open_until_ns, order.window_ops, order.use_until_ns, duty, order.lane_until_ns)
        self._write(_ARBITER, values)

    def abandon(self) -> None:
        """Take the heartbeat back: the gate is open at once, as if the arbiter had been gone for long."""
        self._words[_HEARTBEAT] = _LONG_AGO

    @property
    def counted_ns(self) -> int:
        """GPU time of this executor that has been counted, by this arbiter or one before it; nanoseconds."""
        return self._words[_COUNTED]

    @counted_ns.setter
    def counted_ns(self, used_ns: int) -> None:
        self._words[_COUNTED] = used_ns

    def set_contended(self, is_contended: bool) -> None:
        """Tell the executor whether others want the device too: it then keeps little in flight, and rings."""
        if is_contended != self._is_contended:
            self._is_contended = int(is_contended)
            self._words[STATE] = self._number * 2 + self._is_contended

    @property
    def has_news(self) -> bool:
        """Whether the executor has written since `report` was last called."""
        return bool(self._words[_EXECUTOR] != self._seen)

    def report(self) -> GateReport | None:
        """Return what the executor last wrote; None if it died while it wrote."""
        self._seen = self._words[_EXECUTOR]
        values = self._read(_EXECUTOR, 6 + len(OP_CLASSES))
        if values is None:
            return None
        used, done, queued, flying, urgent, memory, *classes = values
        return GateReport(used, done, queued, flying, bool(urgent), memory, tuple(classes))


class ExecutorPage(_Page):
    """The executor's side: it reads orders and writes reports. There is one for each page.

    A gate whose arbiter has not been heard for ``patience_ns`` is open: a dead arbiter must not hold anybody back, and
    the driver's own turns share the device until there is another. Where none was ever heard, patience begins when the
    gate is first asked.
    """

    def __init__(self, path: Path, patience_ns: int = 1_000_000_000) -> None:
        super().__init__(path)
        self._patience_ns = patience_ns
        self._asked_ns = 0

    def may_launch(self, now_ns: int) -> bool:
        """Return whether the gate is open at ``now_ns``. Budget, window and duty are the executor's to keep.

        Both words that it reads are whole by themselves, and a new heartbeat beside an order of a moment ago is as
        good as having asked that moment earlier; so it needs no counter.
        """
        words = self._words
        return now_ns < words[_OPEN_UNTIL] or self.is_unheard(now_ns)

    def is_unheard(self, now_ns: int) -> bool:
        """Return whether the arbiter has not been heard for so long that it counts as gone."""
        return now_ns - self._heard_ns(self._words[_HEARTBEAT], now_ns) > self._patience_ns

    def _heard_ns(self, heartbeat_ns: int, now_ns: int) -> int:
        if heartbeat_ns != _NEVER:
            return heartbeat_ns
        self._asked_ns = self._asked_ns or now_ns
        return self._asked_ns

    @property
    def state(self) -> int:
        """Twice the number of the last order, plus one while others want the device too, as far as the arbiter knows.

        As long as it stays the same, so does the order.
        """
        return self._words[STATE]

    def order(self, now_ns: int) -> GateOrder:
        """Return the whole order in force: one without any bounds if the arbiter is gone."""
        values = self._read(_ARBITER, 6)
        if values is None or now_ns - self._heard_ns(values[0], now_ns) > self._patience_ns:
            return UNBOUNDED
        if values[0] == _NEVER:
            return _SHUT
        _, until, window, use_until, duty, lane_until = values
        return GateOrder(until, window, use_until, duty / _MILLION, lane_until)

    def write(self, report: GateReport) -> None:
        """Publish what was used and what waits."""
        values = (
            report.used_ns, report.ops_done, report.queued_ops, report.in_flight_ops, int(report.is_urgent),
            report.memory_bytes, *report.used_by_class_ns,
        )  # fmt: skip
        self._write(_EXECUTOR, values)


def read_report(path: Path) -> GateReport | None:
    """Return what the executor of the page at ``path`` last wrote; None if there is no page or no whole report."""
    try:
        page = ArbiterPage(path)
    except (OSError, NotAGate):
        return None
    try:
        return page.report()
    finally:
        page.close()
