"""How much work the device may have under way, enough to stay busy and little enough to stop soon; and what it took."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from gpu_backend.devices.base import Marker
from gpu_backend.executor.op_classes import HOST
from gpu_backend.wire.op_classes import OP_CLASSES, OpClass

#: Work in flight, seconds: with the device to oneself, and while others wait for it. What is in flight when a gate
#: shuts delays the next user; 0.4 ms of it gave interactive work a p99 of 1.3 ms beside hogs with 0.2 ms kernels.
_WINDOW_SECONDS, _SHORT_WINDOW_SECONDS = 4e-3, 0.3e-3
#: Part of the window that one group of launches is worth: groups are timed, and noticed when they are done, which costs
#: as much as an op.
_GROUPS: Final = 3
#: While others wait, and where ops take all about the same, up to so many times as long: there are so many in a group
#: at least, since between two ops with a marker the device rests for 4 µs more (H200), and in between what is in flight
#: is told by how long they take.
_STEADY: Final = 1.2
_STEADY_OPS: Final = 3
#: Most groups in flight, and most ops in one.
_MOST_GROUPS: Final = 8
_MOST_OPS: Final = 256
#: So many ops with an answer behind them are timed by the host's clock.
FEW_OPS: Final = 32
#: Two ops keep a device busy; behind one that is longer than this the gap does not matter, and the wait would.
_LONG_OP_SECONDS: Final = 5e-3
#: What an op is taken to be before any was timed.
_FIRST_GUESS_SECONDS: Final = 50e-6
#: How much of the longest op is remembered with each group after it, and what is taken for it before any was timed,
#: seconds: it takes some twenty short groups until a session's ops are taken for short.
_REMEMBERED: Final = 0.9
_FIRST_LONGEST_SECONDS: Final = 8e-3
#: The least that an op is taken to be: more of them are never in flight than this allows.
_LEAST_OP_SECONDS: Final = 2e-6
_OTHER: Final = OP_CLASSES.index(OpClass.OTHER)


class _Group(NamedTuple):
    start: Marker | None  # None where the host's clock says when it began
    begun_at: float
    end: Marker
    ops: int
    counts: list[int]
    through: int
    is_question: bool


class Pace:
    """Bounds the launches in flight by markers (CUDA events) in the device's queue, and times them in groups.

    A cancelled cell, or one whose gate shuts, stops when what was launched is done, so what is in flight must be short
    in time and not only in number. Time is the device's own, from the first launch of a group to the end of its last;
    a group that follows another begins where that one ended, so nothing is counted twice.

    Parameters
    ----------
    marker
        Puts a marker into the device's queue.
    clock
        The host's, in seconds.
    say_alone
        Told whether the device is this session's alone, before each group, and when others come to want it.
    """

    def __init__(
        self,
        marker: Callable[[], Marker],
        clock: Callable[[], float],
        say_alone: Callable[[bool], None] = lambda one: None,
    ) -> None:
        self._marker, self._say_alone = marker, say_alone
        self._clock = clock
        self._groups: deque[_Group] = deque()
        self._start: Marker | None = None  # of the group that is being launched
        self._begun_at, self._is_begun, self._is_question = 0.0, False, False
        self._free_at = 0.0  # when what is in flight will be done, about
        self._open_ops = 0
        self._is_contended = False
        self._window_seconds = _WINDOW_SECONDS
        self._window_ops = 0
        #: Device time used so far, seconds.
        self.used_seconds = 0.0
        #: The same by class of op, in the order of `OP_CLASSES`. A group of several classes is split among them in
        #: proportion to what ops of each class took in groups of their own.
        self.used_by_class = [0.0] * len(OP_CLASSES)
        self._class_seconds = [_FIRST_GUESS_SECONDS] * len(OP_CLASSES)
        #: Ops of the group that is being launched by class; whoever launches them counts them here.
        self.counts = [0] * (HOST + 1)
        #: Ops that are done.
        self.ops_done = 0
        #: Number of the last of them, where whoever launched them gave numbers; and of the last one launched.
        self.done_through = self._launched_through = 0
        #: Ops launched and not known to be done.
        self.in_flight_ops = 0
        #: Running estimate of one op's device time, seconds.
        self.op_seconds = _FIRST_GUESS_SECONDS
        #: The longest op of late, seconds: what is mostly short and sometimes long is not short.
        self.longest_seconds = _FIRST_LONGEST_SECONDS
        #: How many ops to launch before looking up again.
        self.run_ops = 1
        self._group_ops = 1
        self._is_steady, self._most_steady = False, 0
        self._fit_groups()

    def bound(self, is_contended: bool, window_ops: int) -> None:
        """Keep little in flight while others want the device; at most ``window_ops``, where that is not 0."""
        self._is_contended = is_contended
        if is_contended:
            self._say_alone(False)
        self._window_seconds = _SHORT_WINDOW_SECONDS if is_contended else _WINDOW_SECONDS
        self._window_ops = window_ops
        self._fit_groups()

    def _fit_groups(self) -> None:
        most = max(1, self._window_ops // 2) if self._window_ops else _MOST_OPS
        self.run_ops = max(1, min(int(self._window_seconds / _GROUPS / self.op_seconds), most))
        is_short = self._is_contended and not self._window_ops and self.op_seconds <= self._window_seconds
        self._is_steady = is_short and self.longest_seconds <= _STEADY * self.op_seconds
        self._group_ops = max(self.run_ops, _STEADY_OPS) if self._is_steady else self.run_ops
        self._most_steady = self._group_ops + int(self._window_seconds / self.op_seconds) + 1

    def begin(self, is_awaited: bool) -> None:
        """Launches follow. ``is_awaited`` says that they are few, and the last comes back when all of them are done."""
        if self._is_begun:
            return
        self.collect()
        self._say_alone(not self._is_contended)
        self._begun_at, self._is_begun, self._is_question = self._clock(), True, True
        if self._groups:
            self._start = self._groups[-1].end
        elif not is_awaited:
            self._start = self._marker()

    def note_launches(
        self, ops: int, is_awaited: bool = False, ended_at: float | None = None, through: int = 0,
        is_done: bool = False, is_question: bool = False,
    ) -> None:  # fmt: skip
        """Count ``ops`` launches, the last of which returned ``ended_at`` by the clock, or now.

        ``is_awaited`` says that it came back with its result, and ``is_done`` that so all are done that were ever
        launched. ``through`` is its number. ``is_question`` says that nothing of them was for the device: how long that
        took says nothing of ops to come.
        """
        self._launched_through, self._is_question = through, self._is_question and is_question
        now = self._clock() if ended_at is None else ended_at
        self._open_ops += ops
        self.in_flight_ops += ops
        self._free_at = max(self._free_at, now) + ops * self.op_seconds
        if is_done and self._start is None:  # nothing else was in flight: the host's clock has timed it, without events
            ops, self._open_ops = self._open_ops, 0
            self._count(now - self._begun_at, ops, self._take_counts(), self._is_question)
            self._is_begun = False
            self.done_through = through
        elif is_awaited or self._start is None or self._open_ops >= self._group_ops:
            self.close_group()

    def close_group(self) -> None:
        """Put a marker behind what was launched, so that its end is noticed."""
        if self._open_ops:
            told = self._open_ops, self._take_counts(), self._launched_through, self._is_question
            self._groups.append(_Group(self._start, self._begun_at, self._marker(), *told))
            self._start, self._is_begun, self._open_ops = None, False, 0

    def collect(self) -> None:
        """Count what is done."""
        groups = self._groups
        while groups and groups[0].end.is_done():
            group = groups.popleft()
            start = group.start
            seconds = group.end.seconds_since(start) if start is not None else self._clock() - group.begun_at
            self._count(max(0.0, seconds), group.ops, group.counts, group.is_question)
            self.done_through = group.through

    def _take_counts(self) -> list[int]:
        counts, self.counts = self.counts, [0] * (HOST + 1)
        return counts

    def _count(self, seconds: float, ops: int, counts: list[int], is_question: bool) -> None:
        self.used_seconds += seconds
        self._split(seconds, counts)
        self.ops_done += ops
        self.in_flight_ops -= ops
        self._free_at = self._clock() + self.in_flight_ops * self.op_seconds if self.in_flight_ops else 0.0
        if ops and not is_question:
            each = seconds / ops
            self.op_seconds = max(_LEAST_OP_SECONDS, (self.op_seconds + each) / 2)
            self.longest_seconds = max(each, self.longest_seconds * _REMEMBERED)
            self._fit_groups()

    def _split(self, seconds: float, counts: list[int]) -> None:
        """Book a group's time under the classes of its ops."""
        kinds = [kind for kind in range(HOST) if counts[kind]]
        if len(kinds) == 1:
            kind = kinds[0]
            self.used_by_class[kind] += seconds
            each = seconds / counts[kind]
            self._class_seconds[kind] = max(_LEAST_OP_SECONDS, (self._class_seconds[kind] + each) / 2)
        elif kinds:
            weights = [counts[kind] * self._class_seconds[kind] for kind in kinds]
            part = seconds / sum(weights)
            for kind, weight in zip(kinds, weights, strict=True):
                self.used_by_class[kind] += weight * part
        else:
            self.used_by_class[_OTHER] += seconds

    @property
    def works_long(self) -> bool:
        """Whether what is in flight is of long ops."""
        return self.in_flight_ops > 0 and self.op_seconds > _LONG_OP_SECONDS

    def left_seconds(self) -> float:
        """Return for how long, about, the device will work on what is in flight."""
        return max(0.0, self._free_at - self._clock()) if self.in_flight_ops else 0.0

    def is_full(self) -> bool:
        """True while the device has all the work it may have."""
        if not self._is_enough():  # nor is it when what was done since is counted; to ask costs a tenth of an op
            return False
        self.collect()
        if not self._is_enough():
            return False
        left = self.left_seconds()
        if self._is_steady and left and self.in_flight_ops < self._most_steady:
            return left > self._window_seconds - self.op_seconds / 2
        self.close_group()  # else nobody would notice when it is done
        self.collect()
        return self._is_enough()

    def _is_enough(self) -> bool:
        flying = self.in_flight_ops
        if not flying:
            return False
        if (self._window_ops and flying >= self._window_ops) or len(self._groups) >= _MOST_GROUPS:
            return True
        is_long = self._is_contended and self.op_seconds > _LONG_OP_SECONDS
        return flying >= (1 if is_long else 2) and flying * self.op_seconds >= self._window_seconds
