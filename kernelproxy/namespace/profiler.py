"""``cupyx.profiler``: timing remote work from the notebook."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from kernelproxy.namespace.cuda import Device, Event, get_current_stream, get_device_id, get_elapsed_time

Seconds: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"


#: Of what type arguments of `benchmark` must be.
_TYPES: dict[str, tuple[type, str]] = {
    "args": (tuple, "of tuple type"),
    "kwargs": (dict, "of dict type"),
    "n_repeat": (int, "an integer"),
    "name": (str, "a string"),
    "n_warmup": (int, "an integer"),
    "devices": (tuple, "of tuple type"),
}


class PerfCaseResult:
    """Measured times of one function, in seconds: ``cpu_times`` in the notebook, ``gpu_times`` on each device.

    Parameters
    ----------
    ts
        The times: a row of the processor's, and one for each of ``devices``.
    """

    def __init__(self, name: str, ts: Seconds, devices: Sequence[int]) -> None:
        assert ts.ndim == 2
        assert ts.shape[0] == len(devices) + 1
        assert ts.shape[1] > 0
        self.name = name
        self._ts = ts
        self._devices = devices

    @property
    def cpu_times(self) -> Seconds:
        """Of the processor, of shape (n_repeat,)."""
        first: Seconds = self._ts[0]
        return first

    @property
    def gpu_times(self) -> Seconds:
        """Of the devices, of shape (number of devices, n_repeat)."""
        return self._ts[1:]

    def to_str(self, show_gpu: bool = False) -> str:
        """Return mean, deviation, minimum and maximum in microseconds."""
        told = [_statistics("CPU", self.cpu_times)]
        if show_gpu:
            told += [_statistics(f"GPU-{one}", times) for one, times in zip(self._devices, self.gpu_times, strict=True)]
        return f"{self.name:<20s}:{' '.join(told)}"

    def __str__(self) -> str:
        return self.to_str(show_gpu=True)

    def __repr__(self) -> str:
        return str(self)


PerfCaseResult.__name__ = PerfCaseResult.__qualname__ = "_PerfCaseResult"
PerfCaseResult.__module__ = "cupyx.profiler._time"


def _statistics(name: str, seconds: Seconds) -> str:
    micro = seconds * 1e6
    text = f"    {name}: {micro.mean():9.03f} us"
    return text + (
        f"   +/- {micro.std():6.03f} (min: {micro.min():9.03f} / max: {micro.max():9.03f}) us" if micro.size > 1 else ""
    )


def benchmark(
    func: Callable[..., object],
    args: tuple[object, ...] = (),
    kwargs: dict[str, object] | None = None,
    n_repeat: int = 10_000,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = float("inf"),
    devices: Sequence[int] | None = None,
) -> PerfCaseResult:
    """Time ``func(*args, **kwargs)``: on the notebook's clock and between two events on each of ``devices``.

    Without ``devices`` on the current one.

    Raises
    ------
    ValueError
        If an argument is of the wrong type.
    """
    name = func.__name__ if name is None else name
    devices = (get_device_id(),) if devices is None else devices
    kwargs = {} if kwargs is None else kwargs
    if not callable(func):
        raise ValueError("`func` should be a callable object.")
    _require({"args": args, "kwargs": kwargs, "n_repeat": n_repeat, "name": name, "n_warmup": n_warmup})
    if not np.isreal(max_duration):
        raise ValueError("`max_duration` should be given in seconds")
    _require({"devices": devices})
    events = [(_event_on(number), _event_on(number)) for number in devices]
    for _ in range(n_warmup):
        func(*args, **kwargs)
    for event in _recorded([start for start, _ in events], devices):
        event.synchronize()
    times: list[list[float]] = []
    spent = 0.0
    while len(times) < n_repeat and not spent > max_duration:
        times.append(_once(partial(func, *args, **kwargs), events, devices))
        spent += times[-1].pop()
    return PerfCaseResult(name, np.array(times).T, devices)


def _once(call: Callable[[], object], events: Sequence[tuple[Event, Event]], devices: Sequence[int]) -> list[float]:
    """Return what ``call`` takes, seconds: of the processor, of each device, and until all of them are done."""
    starts, ends = zip(*events, strict=True)
    _recorded(starts, devices)
    began = time.perf_counter()
    call()
    on_processor = time.perf_counter() - began
    for event in _recorded(ends, devices):
        event.synchronize()
    on_devices = [get_elapsed_time(start, end) * 1e-3 for start, end in events]
    return [on_processor, *on_devices, time.perf_counter() - began]


def _event_on(number: int) -> Event:
    with Device(number):
        return Event()


def _recorded(events: Sequence[Event], devices: Sequence[int]) -> Sequence[Event]:
    """Record each of ``events`` on the current stream of its device; return them."""
    for event, number in zip(events, devices, strict=True):
        with Device(number):
            event.record()
    return events


def _require(given: Mapping[str, object]) -> None:
    """Refuse what is of another type than CuPy takes, in its words."""
    for name, value in given.items():
        kind, told = _TYPES[name]
        if not isinstance(value, kind):
            raise ValueError(f"`{name}` should be {told}.")


def repeat(*args: Any, **kwargs: Any) -> PerfCaseResult:
    """Do what `benchmark` does, under its older name."""
    warnings.warn(
        "cupyx.time.repeat has been moved to cupyx.profiler.benchmark since CuPy v10. Access through cupyx.time is "
        "deprecated and will be removed in the future.",
        stacklevel=2,
    )
    return benchmark(*args, **kwargs)


class time_range(contextlib.ContextDecorator):  # noqa: N801 (CuPy's name)
    """Names a stretch of code for a profiler that watches this process; nothing is sent."""

    __module__ = "cupyx.profiler._time_range"

    def __init__(
        self, message: str | None = None, color_id: int | None = None, argb_color: int | None = None, sync: bool = False
    ) -> None:
        self.message, self.color_id, self.argb_color, self.sync = message, color_id, argb_color, sync

    def __enter__(self) -> time_range:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.sync:
            get_current_stream().synchronize()


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Do nothing: the CUDA profiler runs where the GPU is, not here."""
    yield
