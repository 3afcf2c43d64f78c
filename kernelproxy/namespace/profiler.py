"""``cupyx.profiler``: timing remote work from the notebook."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from kernelproxy.namespace.cuda import Event, get_current_stream, get_elapsed_time

Seconds: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"


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
    """Time ``func(*args, **kwargs)``: on the notebook's clock and between two events on the device."""
    kwargs = kwargs or {}
    for _ in range(n_warmup):
        func(*args, **kwargs)
    get_current_stream().synchronize()
    cpu_times, gpu_times = [], []
    start, end = Event(), Event()
    spent = 0.0
    for _ in range(n_repeat):
        start.record()
        began = perf_counter()
        func(*args, **kwargs)
        cpu_times.append(perf_counter() - began)
        end.record()
        end.synchronize()
        gpu_times.append(get_elapsed_time(start, end) * 1e-3)
        spent += perf_counter() - began
        if spent >= max_duration:
            break
    return PerfCaseResult(name or func.__name__, np.array([cpu_times, gpu_times]), (0,))


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
