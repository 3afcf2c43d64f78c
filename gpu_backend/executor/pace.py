"""How much work the device may have under way: enough to stay busy, little enough to stop soon."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

#: Most markers under way.
_WINDOW = 4
#: Ops between two markers while they are short.
_OPS_PER_MARKER = 256


class Pace:
    """Bounds the launches in flight by markers (CUDA events) in the device's queue.

    A cancelled cell stops when what was launched is done, so what is in flight must be short in time and not only in
    number: when the device does not keep up, markers are set after every op.
    """

    def __init__(self, marker: Callable[[], Callable[[], bool]]) -> None:
        self._marker = marker
        self._in_flight: deque[Callable[[], bool]] = deque()
        self._since_marker = 0
        self._ops_per_marker = _OPS_PER_MARKER

    def note_launches(self, ops: int) -> None:
        """Count ``ops`` launches; put a marker behind them if enough have gathered."""
        self._since_marker += ops
        if self._since_marker >= self._ops_per_marker:
            self._since_marker = 0
            self._in_flight.append(self._marker())

    def is_full(self) -> bool:
        """True while the device has all the work it may have."""
        while self._in_flight and self._in_flight[0]():
            self._in_flight.popleft()
        full = len(self._in_flight) >= _WINDOW
        if full:
            self._ops_per_marker = max(1, self._ops_per_marker // 2)
        elif not self._in_flight:
            self._ops_per_marker = min(_OPS_PER_MARKER, self._ops_per_marker * 2)
        return full
