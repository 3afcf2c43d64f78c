"""The order page: what an arbiter lets one executor launch. The arbiter writes it, the executor can only read it.

A memfd that the arbiter makes, maps, and then seals against every other writer, so that whoever is given its descriptor
can map it to read and nothing else. The executor's test before a launch reads one word, and the clock if its opening
ends, and makes no system call.

An order may be written before it holds: a gate that opens at the end of another's turn says so a moment ahead, so that
its executor is awake by then.

Layout, little-endian, 8 bytes each: the magic number and version; at 64 the sequence, heartbeat, open from, open until,
open until for short ops, window, use until, duty in parts of a million, lane until; behind them the state. Times are
nanoseconds of the host's monotonic clock.
"""

from __future__ import annotations

import mmap
import os
from math import inf
from typing import Protocol

import msgspec

from gpu_backend.gate.words import Words
from gpu_backend.transport import sealed

__all__ = ["STATE", "UNBOUNDED", "GateOrder", "Lane", "Opening", "OrderPage", "OrderView"]

_SIZE = 192
_MAGIC = int.from_bytes(b"gpuwbor\x06", "little")
_ORDER = 64 // 8
_HEARTBEAT, _OPEN_FROM, _OPEN_UNTIL = _ORDER + 1, _ORDER + 2, _ORDER + 3
#: The word that changes with every order; see `OrderView.state`.
STATE = _ORDER + 9
_FOREVER = 2**63 - 1
_MILLION = 1_000_000
#: Short ops are launched for so long behind the end of an opening, nanoseconds, unless the gate is shut by then: an
#: arbiter may be late by a wake-up, and what is in flight keeps the device busy until the next executor is awake.
_GRACE_NS = 300_000
#: Where the end was said ahead, they are launched until so long before it, nanoseconds, and for half of the opening at
#: least: that much is in flight then.
_DRAIN_NS = 250_000
#: Heartbeats: none yet, and one that nobody waits for any more.
_NEVER, _LONG_AGO = 0, 1


class GateOrder(msgspec.Struct, frozen=True, gc=False):
    """What the arbiter last wrote. Times in nanoseconds of the monotonic clock."""

    open_until_ns: int
    #: The same for short ops.
    short_until_ns: int
    window_ops: int
    #: How far the executor's own count of GPU time may go.
    use_until_ns: int
    duty: float
    #: How far that count may go by short ops while the gate is shut; 0 for not at all.
    lane_until_ns: int = 0
    #: Before this it is shut.
    open_from_ns: int = 0

    def ends_sooner(self, former: GateOrder) -> bool:
        """Tell whether this is the opening that ``former`` was, with an end that is not later."""
        bounds = (self.open_from_ns, self.window_ops, self.use_until_ns, self.duty)
        is_same = bounds == (former.open_from_ns, former.window_ops, former.use_until_ns, former.duty)
        return is_same and 0 < self.open_until_ns <= former.open_until_ns < _FOREVER


#: What holds where no arbiter is heard.
UNBOUNDED = GateOrder(_FOREVER, _FOREVER, 0, _FOREVER, 1.0)
_SHUT = GateOrder(0, 0, 0, 0, 1.0)


class Opening(Protocol):
    """The bounds within which an executor may launch; `arbiter.events.OpenGate` says what they are."""

    @property
    def until(self) -> float: ...
    @property
    def window_ops(self) -> int: ...
    @property
    def budget_seconds(self) -> float: ...
    @property
    def duty(self) -> float: ...


class Lane(Protocol):
    """The bound within which short ops pass a shut gate; see `arbiter.events.OpenLane`."""

    @property
    def budget_seconds(self) -> float: ...


class OrderPage:
    """The arbiter's side: it makes the page, and writes orders and its heartbeat."""

    def __init__(self) -> None:
        #: For the executor, who can map it to read only.
        self.descriptor = sealed.make("orders", _SIZE, is_sealed=False)
        self._page = Words(mmap.mmap(self.descriptor, _SIZE))
        sealed.refuse_writers(self.descriptor)
        self._page.words[0] = _MAGIC
        self._number = self._is_contended = 0
        self._order = _SHUT
        self._since_ns = 0  # when the opening begins
        #: How far the executor's own count of GPU time has been taken in, nanoseconds: budgets are on top of it.
        self.taken_ns = 0

    @property
    def open_until_ns(self) -> int:
        """Until when the gate is open by the last order; 0 if it is shut."""
        return self._order.open_until_ns

    def open(self, opening: Opening, now_ns: int, origin_ns: int = 0, from_ns: int = 0) -> None:
        """Let the executor launch within these bounds, whose times are seconds since ``origin_ns``.

        A budget is on top of what is taken in: what was used and not yet reported comes off it. A gate that is shut
        opens at ``from_ns``.
        """
        if not self._order.open_from_ns <= now_ns < self._order.open_until_ns:
            self._since_ns = max(now_ns, from_ns)
        until_ns = _FOREVER if opening.until == inf else origin_ns + int(opening.until * 1e9)
        order = GateOrder(
            until_ns,
            until_ns if until_ns == _FOREVER else until_ns + _GRACE_NS,
            opening.window_ops,
            _FOREVER if opening.budget_seconds == inf else self.taken_ns + int(opening.budget_seconds * 1e9),
            opening.duty,
            open_from_ns=self._since_ns if self._since_ns > now_ns else 0,
        )
        self._give_order(order, now_ns)

    def open_lane(self, lane: Lane, now_ns: int) -> None:
        """Let the executor launch nothing but short ops that somebody waits for, and these before anybody was asked."""
        self._give_order(GateOrder(0, 0, 0, 0, 1.0, self.taken_ns + int(lane.budget_seconds * 1e9)), now_ns)

    def shut(self, now_ns: int, at_ns: int = 0) -> None:
        """Let the executor launch nothing more, from ``at_ns`` on."""
        order = self._order
        if at_ns > now_ns and order.open_until_ns:
            until_ns = min(order.open_until_ns, at_ns)
            short_until_ns = max(until_ns - _DRAIN_NS, (self._since_ns + until_ns) // 2)
            self._give_order(
                msgspec.structs.replace(order, open_until_ns=until_ns, short_until_ns=short_until_ns), now_ns
            )
        else:
            self._give_order(_SHUT, now_ns)

    def _give_order(self, order: GateOrder, now_ns: int) -> None:
        duty = max(1, round(order.duty * _MILLION))
        values = (
            now_ns, order.open_from_ns, order.open_until_ns, order.short_until_ns, order.window_ops,
            order.use_until_ns, duty, order.lane_until_ns,
        )  # fmt: skip
        self._order = order
        self._page.write(_ORDER, values)
        self._number += 1
        self._page.words[STATE] = self._number * 2 + self._is_contended

    def beat(self, now_ns: int) -> None:
        """Say that the arbiter lives: what it ordered holds, and one word that is whole by itself says so."""
        self._page.words[_HEARTBEAT] = now_ns

    def abandon(self) -> None:
        """Take the heartbeat back: the gate is open at once, as if the arbiter had been gone for long."""
        self._page.words[_HEARTBEAT] = _LONG_AGO

    def set_contended(self, is_contended: bool) -> None:
        """Tell the executor whether others want the device too: it then keeps little in flight, and rings."""
        if is_contended != self._is_contended:
            self._is_contended = int(is_contended)
            self._page.words[STATE] = self._number * 2 + self._is_contended

    def close(self) -> None:
        """Let go of the page, which lives as long as the executor has it."""
        self._page.close()
        os.close(self.descriptor)


class OrderView:
    """The executor's side: it reads orders.

    A gate whose arbiter has not been heard for ``patience_ns`` is open: a dead arbiter must not hold anybody back, and
    the driver's own turns share the device until there is another. Where none was ever heard, patience begins when the
    gate is first asked.

    Parameters
    ----------
    descriptor
        Of an arbiter's page; stays the caller's. None stands for the page of an arbiter that has not come yet.
    patience_ns
        How long a silent arbiter is waited for.

    Raises
    ------
    NotSealed
        If the descriptor is none of a page of this version.
    """

    def __init__(self, descriptor: int | None, patience_ns: int = 1_000_000_000) -> None:
        if descriptor is None:
            mapped = mmap.mmap(-1, _SIZE)
        else:
            sealed.require(descriptor, _SIZE)
            mapped = mmap.mmap(descriptor, _SIZE, prot=mmap.PROT_READ)
        self._page = Words(mapped)
        #: The whole page.
        self.words = self._page.words
        self._patience_ns = patience_ns
        self._asked_ns = 0
        if descriptor is not None and self.words[0] != _MAGIC:
            self.close()
            raise sealed.NotSealed("It is no order page, or one of another version of this package.")

    def may_launch(self, now_ns: int) -> bool:
        """Return whether the gate is open at ``now_ns``. Budget, window and duty are the executor's to keep.

        The words that it reads are whole by themselves, and a new heartbeat beside an order of a moment ago is as
        good as having asked that moment earlier; so it needs no counter.
        """
        return self.words[_OPEN_FROM] <= now_ns < self.words[_OPEN_UNTIL] or self.is_unheard(now_ns)

    def is_unheard(self, now_ns: int) -> bool:
        """Return whether the arbiter has not been heard for so long that it counts as gone."""
        return now_ns - self._heard_ns(self.words[_HEARTBEAT], now_ns) > self._patience_ns

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
        return self.words[STATE]

    def order(self, now_ns: int) -> GateOrder:
        """Return the whole order in force: one without any bounds if the arbiter is gone."""
        values = self._page.read(_ORDER, 8)
        if values is None or now_ns - self._heard_ns(values[0], now_ns) > self._patience_ns:
            return UNBOUNDED
        if values[0] == _NEVER:
            return _SHUT
        _, since, until, short_until, window, use_until, duty, lane_until = values
        return GateOrder(until, short_until, window, use_until, duty / _MILLION, lane_until, since)

    def close(self) -> None:
        """Unmap the page."""
        self._page.close()
