"""The executor's side of its gate: whether it may launch, within which bounds, and what its arbiter is told.

Asking is a look at shared memory. The arbiter's bell is rung only where others want the device and something has
changed that decides who has it; where this session is alone, the arbiter finds out by itself. A short op for which the
arbiter has left a lane goes at once: this side takes the device's right of way, for which the others' gates look too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import Final

from gpu_backend.executor.pace import Pace
from gpu_backend.gate.bell import Line
from gpu_backend.gate.orders import STATE, UNBOUNDED, OrderView
from gpu_backend.gate.reports import COMPUTING, OTHER_WORK, GateReport, ReportPage
from gpu_backend.gate.right_of_way import Patience, RightOfWay

#: What runs and is queued since nothing waited counts as short up to here, seconds: it is over soon. The end of a long
#: row of ops is not short, though somebody waits for it.
_SHORT_SECONDS: Final = 10e-3
#: What is at most so long, seconds, may pass those who wait, where no op of late was longer either.
_PASSING_SECONDS: Final = 1e-3
#: How often the page is written while nothing changes but the counters, nanoseconds; and where somebody decides by it.
_WRITE_NS: Final = 5_000_000
_CONTENDED_WRITE_NS: Final = 1_000_000
#: Ops longer than this, seconds, are not begun in the last moment of an opening: nearly all of them would be overrun.
_LONG_OP_SECONDS: Final = 1e-3
_LAST_SECONDS: Final = 0.2e-3


#: How often an order that shuts the gate is read again, though nothing says that there is another, nanoseconds.
_AGAIN_NS: Final = 100_000_000


class Gate:
    """Obeys the arbiter that was last heard of. Without one for its device it is open, and only tells.

    Parameters
    ----------
    report
        Descriptor of this executor's report page.
    has_arbiter
        Whether the device has an arbiter. It hands its pages over when it comes; see `take`.
    pace
        Counts this executor's launches; bounded here.
    clock
        The host's monotonic clock, nanoseconds.
    """

    def __init__(self, report: int, has_arbiter: bool, pace: Pace, clock: Callable[[], int] = monotonic_ns) -> None:
        self._report_page = ReportPage(report)
        self._report_words = self._report_page.words
        self._has_arbiter = has_arbiter
        self._way: RightOfWay | None = None
        self._way_words: Sequence[int] = (0,)
        self._patience = Patience()
        #: Rung when the gate opens; None until an arbiter has come.
        self.line: Line | None = None
        #: Whether short ops pass those who wait, by the right of way: all that is queued is over soon.
        self.is_passing = False
        self._state_passed = 0  # the page's when it began to
        self._pace = pace
        self._clock = clock
        self._order = UNBOUNDED
        self._page = OrderView(None)
        self._words = self._page.words
        self._state = -1
        self._read_at = 0  # when the order was read
        self._sure_until = 0  # up to then only the end is to be kept
        self._from_ns = 0  # when the opening begins, if that is to come
        self._end_ns = 0  # of the opening
        self._is_free = not has_arbiter  # nothing is to be kept, so nothing is to be looked at but the state
        self._is_contended = False
        self._used_at_pause = 0.0
        self._ops_at_order = 0
        self._resume_at = 0
        self._spent_at_rest = 0.0  # GPU time up to the last moment at which nothing waited
        self._told = GateReport()
        self._written = GateReport()
        self._written_at = 0

    def take(self, order: int, way: int, line: int) -> None:
        """Obey the arbiter that handed these descriptors over, from now on, and no other any more.

        They are this method's to close. What is none of an arbiter's changes nothing.

        Raises
        ------
        NotSealed
            If a page is not of a size for good, or of another version.
        """
        try:
            page = OrderView(order)
            try:
                new_way = RightOfWay(way)
            except OSError:
                page.close()
                raise
        except OSError:
            os.close(line)
            raise
        finally:
            os.close(order)
            os.close(way)
        self._let_go()
        self._page, self._words, self._state = page, page.words, -1
        self._way, self._way_words = new_way, new_way.words
        self.line = Line(line)
        self._told = self._written  # what it hears of is what changes from now on, and all that is on the page

    def _let_go(self) -> None:
        if self._way is not None:
            self._way.give_back()
            self._way.close()
        self.is_passing = False
        self._page.close()
        if self.line is not None:
            self.line.close()
            self.line = None

    # --- may it launch ------------------------------------------------------------------------------------------------

    def may_launch(self) -> bool:
        """Return whether to launch now. Makes no system call: a look at two words, and at the clock if need be."""
        if self._words[STATE] != self._state and self._has_arbiter:
            self._take_order()
        if self.is_passing:
            return True
        if self._way_words[0] and self.is_yielding:
            return False
        if self._is_free:
            return True
        now = self._clock()
        return now < self._sure_until or self._keeps_bounds(now)

    @property
    def is_contended(self) -> bool:
        """Whether others want the device: then short waits are worth a busy processor."""
        return self._is_contended

    @property
    def is_alone(self) -> bool:
        """Whether nobody else wants the device, by what the arbiter says now. Makes no system call."""
        return not self._words[STATE] & 1

    @property
    def has_device_alone(self) -> bool:
        """Whether there is an arbiter, and it says so: without one nobody knows of others."""
        return self.line is not None and self.is_alone

    @property
    def is_urgent(self) -> bool:
        """Whether its arbiter was told that something short waits that somebody waits for."""
        return self._told.is_urgent

    @property
    def is_yielding(self) -> bool:
        """Whether only another's short op has it wait, by the right of way: for a moment, and nobody will ring."""
        now, word = self._clock(), self._way_words[0]
        return word != 0 and not self.is_passing and now < self._end_ns and self._patience.holds(word, now)

    @property
    def is_way_taken(self) -> bool:
        """Whether the gate is open, but somebody has the right of way, honoured or not any more."""
        return self._way_words[0] != 0 and self._clock() < self._end_ns

    def end_wait(self) -> None:
        """Note that a wait is over, be it for another's short op."""
        self._patience.rest(self._clock())

    @property
    def is_pausing(self) -> bool:
        """Whether the gate is shut only until a pause is over, so that nobody will ring."""
        return self._order.duty < 1

    @property
    def pause_seconds(self) -> float:
        """How long, about, it still is shut for a pause and for what runs before that; 0 if nobody can tell."""
        if not self.is_pausing:
            return 0.0
        return max(self._pace.left_seconds(), (self._resume_at - self._clock()) / 1e9, 0.0)

    @property
    def opens_in(self) -> float:
        """How long it is until the gate opens, seconds; 0 where nobody has said."""
        return max(0.0, (self._from_ns - self._clock()) / 1e9) if self._from_ns else 0.0

    def _take_order(self) -> None:
        pace, state = self._pace, self._page.state  # the state first: what changes after it is taken the next time
        is_new = state >> 1 != self._state >> 1
        self._state, self._is_contended = state, bool(state & 1)
        self._read_at, former = self._clock(), self._order
        order = self._order = self._page.order(self._read_at)
        if is_new and not order.ends_sooner(former):  # another opening, and not the end of this one
            self._ops_at_order = pace.ops_done + pace.in_flight_ops
            self._used_at_pause, self._resume_at = pace.used_seconds, 0
        self._from_ns = order.open_from_ns if order.open_from_ns > self._read_at else 0
        self._be_sure()
        # With pauses after each group, one group at a time.
        pace.bound(self._is_contended, 1 if order.duty < 1 else order.window_ops)

    def _be_sure(self) -> None:
        """Find up to when nothing needs to be looked at, by the order and by how long ops are."""
        order, is_short = self._order, self._pace.op_seconds <= _LONG_OP_SECONDS
        is_plain = order.use_until_ns == UNBOUNDED.use_until_ns and order.duty == 1 and not self._from_ns
        self._end_ns = order.short_until_ns if is_short else order.open_until_ns
        self._sure_until = self._end_ns if is_plain and is_short else 0
        self._is_free = is_plain and order.open_until_ns == UNBOUNDED.open_until_ns

    def _keeps_bounds(self, now: int) -> bool:
        """Tell whether one more op keeps end, budget and duty."""
        order, pace = self._order, self._pace
        if self._from_ns:
            if now < self._from_ns:
                return self._is_open_after_all(now)
            self._from_ns = 0
            self._be_sure()
        flying = pace.in_flight_ops * pace.op_seconds
        if now >= self._end_ns or order.use_until_ns <= (pace.used_seconds + flying) * 1e9:
            return self._is_open_after_all(now)
        if pace.ops_done + pace.in_flight_ops == self._ops_at_order or self._page.is_unheard(now):
            return True
        if order.duty < 1 and not self._has_paused(now):
            return False
        if pace.op_seconds <= _LONG_OP_SECONDS:
            return True
        return now + (pace.left_seconds() + _LAST_SECONDS) * 1e9 <= order.open_until_ns

    def _is_open_after_all(self, now: int) -> bool:
        """Tell whether a gate that is shut by the order as it was read is open by now."""
        if self._page.is_unheard(now):
            return True
        if now - self._read_at < _AGAIN_NS:
            return False
        before = self._order
        self._take_order()
        return self._order != before and self._keeps_bounds(now)

    def _has_paused(self, now: int) -> bool:
        """Tell whether the device was left idle for ``1 / duty - 1`` times what the last ops took."""
        pace = self._pace
        pace.close_group()
        pace.collect()
        if pace.in_flight_ops:
            return False
        if pace.used_seconds > self._used_at_pause:
            took, self._used_at_pause = pace.used_seconds - self._used_at_pause, pace.used_seconds
            self._resume_at = now + int(took * (1 / self._order.duty - 1) * 1e9)
        return now >= self._resume_at

    # --- what the arbiter is told -------------------------------------------------------------------------------------

    def tell(self, queued_ops: int, is_awaited: bool, memory_bytes: int, is_resting: bool = False) -> None:
        """Publish what was used and what waits, if that is due; ring if it decides who has the device.

        Parameters
        ----------
        queued_ops
            Ops that wait to be launched.
        is_awaited
            Whether somebody waits for the result of the last of them.
        memory_bytes
            Memory held.
        is_resting
            Whether this executor is about to sleep: everything is told then.
        """
        now, is_alone = self._clock(), self.is_alone
        if is_alone and queued_ops and not (is_resting or self.is_passing) and now - self._written_at < _WRITE_NS:
            return  # as for most ops: nobody decides by it
        pace = self._pace
        spent = pace.used_seconds + pace.in_flight_ops * pace.op_seconds
        if not queued_ops:
            self._spent_at_rest = spent
        length = spent - self._spent_at_rest + queued_ops * pace.op_seconds
        is_urgent = is_awaited and queued_ops > 0 and length <= _SHORT_SECONDS
        if self._passes(is_urgent, length):
            self._write(self._report(queued_ops, is_urgent, memory_bytes))
            return
        told = self._told
        has_drained = told.in_flight_ops * pace.op_seconds > _LONG_OP_SECONDS and not pace.in_flight_ops
        has_changed = (queued_ops > 0) != (told.queued_ops > 0) or is_urgent != told.is_urgent or has_drained
        must_ring = has_changed and self._has_arbiter and not is_alone
        due_ns = _CONTENDED_WRITE_NS if self._is_contended else _WRITE_NS
        if not (must_ring or is_resting or now - self._written_at >= due_ns):
            return
        self._told = self._report(queued_ops, is_urgent, memory_bytes)
        self._write(self._told)
        self._written_at = now
        if must_ring and self.line is not None:
            self.line.ring()

    def _report(self, queued_ops: int, is_urgent: bool, memory_bytes: int) -> GateReport:
        pace = self._pace
        return GateReport(
            int(pace.used_seconds * 1e9), pace.ops_done, queued_ops, pace.in_flight_ops, is_urgent, memory_bytes,
            tuple([int(seconds * 1e9) for seconds in pace.used_by_class]),
        )  # fmt: skip

    def _write(self, report: GateReport) -> None:
        self._report_words[COMPUTING] = report.in_flight_ops
        if report != self._written:
            self._report_page.write(report)
            self._written = report

    def note_launch(self) -> None:
        """Say that an op is about to be launched: one that runs while the gate shuts is let finish."""
        self._report_words[COMPUTING] = 1

    def note_other_work(self, processor_ns: int) -> None:
        """Say that so much processor time went into other things than ops, behind a shut gate."""
        self._report_words[OTHER_WORK] += processor_ns

    def note_return(self) -> None:
        """Say that launching is over for now."""
        self._report_words[COMPUTING] = self._pace.in_flight_ops

    def _passes(self, is_urgent: bool, length: float) -> bool:
        """Return whether what is queued passes those who wait, by the right of way; take it, or give it back.

        The arbiter is not rung for what is over before it would be awake. If it looked meanwhile, what it saw was told.
        """
        way = self._way
        if way is None:
            return False
        if self._words[STATE] != self._state:
            self._take_order()
        pace, lane_until = self._pace, self._order.lane_until_ns
        if not (lane_until or self.is_passing):
            return False
        is_short = max(length, pace.longest_seconds) <= _PASSING_SECONDS
        may = is_urgent and is_short and pace.used_seconds * 1e9 < lane_until
        if may and not self.is_passing:
            self._state_passed = self._state
            way.take(self._clock())
        elif self.is_passing and not may:
            way.give_back()
            if self._state >> 1 != self._state_passed >> 1:
                self._told = self._written
        self.is_passing = may
        return may

    def close(self) -> None:
        """Let go of the pages."""
        self._let_go()
        self._report_page.close()
