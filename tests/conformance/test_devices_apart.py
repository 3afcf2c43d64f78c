"""What several devices have each for itself, and what uses all: blocks of threads, plans, transforms, timings."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextvars import copy_context

import numpy as np
import pytest

from kernelproxy.namespace.names import make
from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.in_process import InProcess, notebook_on_two

#: CuPy says so of several GPUs in one transform, and of all that is about plans.
pytestmark = pytest.mark.filterwarnings("ignore:.* is experimental")


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], autouse=True)
def executor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with notebook_on_two(request.param, tmp_path_factory.mktemp("kernels")) as one:
        yield one


@pytest.fixture(autouse=True)
def on_the_first() -> Iterator[None]:
    yield
    cp.cuda.Device(0).use()


def test_one_device_and_one_stream_may_be_entered_by_several_threads() -> None:
    zero, one, stream = cp.cuda.Device(0), cp.cuda.Device(1), cp.cuda.Stream()
    entered, left = threading.Event(), threading.Event()
    found: list[tuple[int, bool]] = []

    def where() -> tuple[int, bool]:
        return cp.cuda.Device().id, cp.cuda.get_current_stream() == stream

    def work() -> None:
        with one:
            with zero, stream:
                entered.set()
                assert left.wait(60)
                found.append(where())
            found.append(where())

    thread = threading.Thread(target=work)
    with zero:
        with zero, stream:
            thread.start()
            assert entered.wait(60)
        found.append(where())
        left.set()
        thread.join()
    assert found == [(0, False), (0, True), (1, False)]


def test_each_device_has_plans_of_its_own() -> None:
    caches = []
    for number in range(2):
        with cp.cuda.Device(number):
            cp.fft.config.clear_plan_cache()
            caches.append(cp.fft.config.get_plan_cache())
    with cp.cuda.Device(1):
        cp.fft.fft(cp.ones(10, "F"))
    assert [one.get_curr_size() for one in caches] == [0, 1]
    cp.fft.fft(cp.ones(12, "F"))
    cp.fft.fft(cp.ones(14, "F"))
    assert [one.get_curr_size() for one in caches] == [2, 1]
    with cp.cuda.Device(1):
        cp.fft.config.clear_plan_cache()
    assert [one.get_curr_size() for one in caches] == [2, 0]


def test_a_transform_is_spread_over_devices() -> None:
    copy_context().run(_transform_on_both)  # settings hold for the context that sets them


def _transform_on_both() -> None:
    known = np.random.default_rng(3).random((4, 64)).astype("F")
    config = cp.fft.config
    config.set_cufft_gpus([0, 1])
    config.use_multi_gpus = True
    for host in (known, known[0]):
        there = cp.asarray(host)
        np.testing.assert_allclose(cp.asnumpy(cp.fft.fft(there)), np.fft.fft(host), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(cp.asnumpy(cp.fft.ifft(there)), np.fft.ifft(host), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="must be a power of 2"):
        cp.fft.fft(cp.ones(96, "F"))
    config.use_multi_gpus = False


def test_a_function_is_timed_on_each_device() -> None:
    def both() -> None:
        for number in range(2):
            with cp.cuda.Device(number):
                cp.ones(1000).sum()

    found = make("cupyx.profiler.benchmark")(both, n_repeat=3, n_warmup=1, devices=(0, 1))
    assert (found.cpu_times.shape, found.gpu_times.shape) == ((3,), (2, 3))
    assert (found.gpu_times >= 0).all()
    assert "GPU-1" in str(found)
    with pytest.raises(ValueError, match="`devices` should be of tuple type"):
        make("cupyx.profiler.benchmark")(both, devices=[0, 1])


def test_a_measurement_asks_times_own_clock_whoever_plays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As CuPy's does, and whenever the module was loaded."""
    measure = make("cupyx.profiler.benchmark")
    measure(int, n_repeat=1, n_warmup=0)
    monkeypatch.setattr("time.perf_counter", lambda: 2.4)
    assert measure(int, n_repeat=1, n_warmup=0).cpu_times.tolist() == [0.0]
