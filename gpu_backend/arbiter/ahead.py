"""What was decided a moment ahead: whose turns end then, and whose begin, which is both on their pages already.

What comes in before the moment can change that: whoever is let through at once cuts short the turns that would have
gone on, and who is to begin need not wait for a device that all others have left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpu_backend.arbiter import events as ev
from gpu_backend.arbiter.seat import Seat

__all__ = ["AHEAD_NS", "Ahead"]

#: How long before the end of a turn the next one is decided, nanoseconds: as long as it takes to decide, and to wake
#: whoever is next, who begins when the end has come.
AHEAD_NS = 700_000


class Ahead:
    """Turns that end, and begin, in a moment.

    Parameters
    ----------
    seats
        All executors' places, by session.
    is_open
        Whether a session's gate is to be open, by what was decided last.
    """

    def __init__(self, seats: Mapping[str, Seat], is_open: Callable[[str], bool]) -> None:
        self._seats, self._is_open = seats, is_open
        self._ending: set[str] = set()
        self._coming: dict[str, ev.OpenGate] = {}

    def begin(self) -> None:
        """Forget the last moment: another is decided."""
        self._ending.clear()
        self._coming.clear()

    def note(self, order: ev.OpenGate | ev.OpenLane | ev.ShutGate, now_ns: int) -> None:
        """Note an order that holds from the moment on."""
        if isinstance(order, ev.ShutGate):
            self._ending.add(order.session)
        elif isinstance(order, ev.OpenGate) and self._seats[order.session].orders.open_until_ns <= now_ns:
            self._coming[order.session] = order

    def overrule(self, order: ev.OpenGate | ev.OpenLane | ev.ShutGate, now_ns: int) -> None:
        """Make way for an order that holds at once."""
        self._coming.pop(order.session, None)
        if not isinstance(order, ev.OpenGate):
            return
        for key in self._ending - {order.session}:
            orders = self._seats[key].orders
            if not self._is_open(key) and now_ns < orders.open_until_ns:
                orders.shut(now_ns)
        self._ending.clear()

    def hurried(self) -> list[ev.OpenGate]:
        """Return the orders that need not wait: for what is urgent, and where the device is left by all others."""
        return [order for key, order in self._coming.items() if self._is_open(key) and self._is_hurried(key)]

    def _is_hurried(self, key: str) -> bool:
        if self._seats[key].last.is_urgent:
            return True
        return not any(self._is_working(other) for other in self._seats if other != key)

    def _is_working(self, key: str) -> bool:
        last = self._seats[key].last
        return bool(last.in_flight_ops or (last.queued_ops and key in self._ending))

    def forget(self, key: str) -> None:
        """A session has left."""
        self._coming.pop(key, None)
        self._ending.discard(key)
