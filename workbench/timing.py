"""``%gpu timeit``: how long code takes until the device has done it, and how long the device itself was at it.

``%timeit`` stops its clock when the operations are recorded. Here a run ends when the device has reached its end.
"""

from __future__ import annotations

import timeit
from statistics import fmean, median, pstdev
from time import perf_counter
from typing import Any, NamedTuple

from kernelproxy.namespace.cuda import Event, get_current_stream, get_elapsed_time
from kernelproxy.session.amounts import duration_in_words

#: Round trips that are timed; their median is told.
_ROUND_TRIPS = 11


class Timing(NamedTuple):
    """Times of one loop in seconds, run by run, and of a round trip to the executor."""

    loops: int
    #: On the notebook's clock, until the device is done. The round trip by which that is heard is in each run once.
    all_runs: tuple[float, ...]
    #: On the device's clock, from the beginning of a run to its end.
    device_runs: tuple[float, ...]
    round_trip: float

    @property
    def average(self) -> float:
        """The mean of all runs."""
        return fmean(self.all_runs)

    @property
    def stdev(self) -> float:
        """Their standard deviation."""
        return pstdev(self.all_runs)

    @property
    def best(self) -> float:
        """The shortest run."""
        return min(self.all_runs)

    @property
    def worst(self) -> float:
        """The longest run."""
        return max(self.all_runs)

    def __str__(self) -> str:
        many = len(self.all_runs)
        runs = f"{many} run{'s' * (many > 1)}, {self.loops:,} loop{'s' * (self.loops > 1)} each"
        return (
            f"{_spread(self.all_runs)} per loop (mean ± std. dev. of {runs}), of that\n"
            f"{_spread(self.device_runs)} on the device; the round trip that ends a run takes "
            f"{duration_in_words(self.round_trip)}"
        )

    def _repr_pretty_(self, printer: Any, is_cycle: bool) -> None:
        printer.text(f"<Timing: {self}>")


def measure(statement: str, setup: str, names: dict[str, Any], loops: int = 0, repeat: int = 7) -> Timing:
    """Time ``statement`` in the namespace ``names``; with 0 ``loops``, as many as take a fifth of a second.

    ``setup`` runs before each run, untimed. Raises what they raise.
    """
    clock = _DeviceClock()
    timer = timeit.Timer(statement, setup, clock, names)
    if not loops:
        loops, _ = timer.autorange()
    runs = []
    for _ in range(repeat):
        elapsed = timer.timeit(loops)
        runs.append((elapsed / loops, clock.device_seconds / loops))
    on_clock, on_device = zip(*runs, strict=True)
    return Timing(loops, on_clock, on_device, _round_trip_seconds())


class _DeviceClock:
    """Reads the notebook's clock, before and after a run, when the device has done all that was asked of it."""

    def __init__(self) -> None:
        self._start, self._end = Event(), Event()
        self._is_running = False

    def __call__(self) -> float:
        self._is_running = not self._is_running
        if self._is_running:
            get_current_stream().synchronize()
            self._start.record()
            return perf_counter()
        self._end.record()
        self._end.synchronize()
        return perf_counter()

    @property
    def device_seconds(self) -> float:
        """The device's time between the last two readings."""
        return get_elapsed_time(self._start, self._end) * 1e-3


def _round_trip_seconds() -> float:
    stream = get_current_stream()
    taken = []
    for _ in range(_ROUND_TRIPS):
        began = perf_counter()
        stream.synchronize()
        taken.append(perf_counter() - began)
    return median(taken)


def _spread(seconds: tuple[float, ...]) -> str:
    return f"{duration_in_words(fmean(seconds))} ± {duration_in_words(pstdev(seconds))}"
