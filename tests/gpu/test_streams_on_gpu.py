"""What runs on a program's own streams is counted, and bounds what is launched, as on the default one."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import pytest

from gpu_backend.devices import open_device
from gpu_backend.executor.pace import Pace
from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.in_process import InProcess, notebook_on

pytestmark = pytest.mark.gpu

_SECONDS = 0.05
_BURN = r"""
extern "C" __global__ void burn(long long nanoseconds, double* out) {
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < nanoseconds);
    out[0] += 1;
}
"""


@pytest.fixture(scope="module")
def executor() -> Iterator[InProcess]:
    with notebook_on(open_device("cuda")) as one:
        yield one


class Launcher:
    """Burns time on a stream of the device's own library, as ops do."""

    def __init__(self, device: Any) -> None:
        import cupy

        self.device = device
        self.kernel = cupy.RawKernel(_BURN, "burn")
        self.out = cupy.zeros(1)
        self.pace = Pace(device.marker, perf_counter)
        self.launch(None, 0.0)
        device.synchronize()

    def launch(self, stream: Any, seconds: float = _SECONDS) -> None:
        if stream is None:
            self.kernel((1,), (1,), (int(seconds * 1e9), self.out))
            return
        with self.device.on_stream(stream):
            self.kernel((1,), (1,), (int(seconds * 1e9), self.out))

    def group(self, *streams: Any) -> None:
        """Launch one after the other, on these streams; the last of all is short, and on the default stream."""
        self.pace.begin(False)
        for stream in streams:
            self.launch(stream)
        self.launch(None, 0.0)
        self.pace.note_launches(len(streams) + 1)
        self.pace.close_group()

    def used(self) -> float:
        while self.pace.in_flight_ops:
            self.pace.collect()
        return self.pace.used_seconds


@pytest.fixture
def launcher(executor: InProcess) -> Launcher:
    return Launcher(executor.device)


def test_what_a_stream_does_that_the_default_one_does_not_wait_for_is_counted(launcher: Launcher) -> None:
    import cupy

    launcher.group(cupy.cuda.Stream(non_blocking=True))
    assert launcher.pace.in_flight_ops == 2
    assert launcher.used() >= _SECONDS
    assert not launcher.device.is_spread
    launcher.group()  # and from here on as if there had been no such stream
    assert launcher.used() < 2 * _SECONDS


def test_streams_at_the_same_time_are_counted_once(launcher: Launcher) -> None:
    import cupy

    streams = [cupy.cuda.Stream(non_blocking=one) for one in (True, True, False)]
    for _ in range(3):
        launcher.group(*streams)
    launcher.device.synchronize()
    assert 3 * _SECONDS <= launcher.used() < 3 * 2 * _SECONDS  # the blocking one waits for the default one


def test_who_goes_back_to_a_stream_is_counted_again(launcher: Launcher) -> None:
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    launcher.group(stream)
    used = launcher.used()
    launcher.group(stream, stream)
    assert launcher.used() - used >= 2 * _SECONDS


def test_a_read_on_the_default_stream_says_nothing_of_others(executor: InProcess) -> None:
    kernel = cp.RawKernel(_BURN, "burn")
    x, out, none = cp.arange(4.0), cp.zeros(1), cp.zeros(1)
    kernel((1,), (1,), (0, none))
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert not executor.device.is_spread
    with cp.cuda.Stream(non_blocking=True) as stream:
        kernel((1,), (1,), (int(_SECONDS * 1e9), out))
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert executor.device.is_spread
    stream.synchronize()
    cp.cuda.Device().synchronize()
    assert not executor.device.is_spread
    assert out.tolist() == [1.0]


def test_a_stream_that_is_captured_is_left_alone(executor: InProcess) -> None:
    device = executor.device
    x = cp.arange(4.0)
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        x += 1
    started = device.marker()
    assert started.is_done()
    with stream:
        graph = stream.end_capture()
    for _ in range(2):
        graph.launch(stream)
    stream.synchronize()
    assert x.tolist() == [2.0, 3.0, 4.0, 5.0]
