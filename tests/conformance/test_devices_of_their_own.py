"""Devices that have an executor each: what is made again for each, what passes between them, and what costs nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.wire.errors import SessionLost
from kernelproxy.calls import transfer
from kernelproxy.client import Beside, current
from kernelproxy.namespace.names import make
from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.in_process import InProcess, cost, notebook_on_two

SOURCE = """
extern "C" __global__ void add(double* x, int n, double by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
}
"""


@pytest.fixture(scope="module", autouse=True)
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with notebook_on_two("apart", tmp_path_factory.mktemp("kernels")) as one:
        yield one


@pytest.fixture(autouse=True)
def on_the_first() -> Iterator[None]:
    yield
    cp.cuda.Device(0).use()


@pytest.mark.parametrize("kind", ["elementwise", "reduction", "vectorize"])
def test_one_kernel_runs_on_each_device(kind: str) -> None:
    kernel, expected = {
        "elementwise": (cp.ElementwiseKernel("T x", "T y", "y = 2 * x", "double"), np.arange(8.0) * 2),
        "reduction": (cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "all"), np.float64(28)),
        "vectorize": (make("cupy.vectorize")(lambda x: 2 * x), np.arange(8.0) * 2),
    }[kind]
    for number in (0, 1, 0, 1):
        with cp.cuda.Device(number):
            made = kernel(cp.arange(8.0))
            assert made.device.id == number
            np.testing.assert_array_equal(made.get(), expected)
            assert cost(lambda: kernel(cp.arange(8.0))) == 0 or kind == "vectorize"


@pytest.mark.parametrize("of_module", [False, True])
def test_what_is_compiled_of_a_source_is_made_again_by_each(of_module: bool) -> None:
    raw = cp.RawModule(code=SOURCE).get_function("add") if of_module else cp.RawKernel(SOURCE, "add")
    assert raw._here() is raw
    with cp.cuda.Device(1):
        other = raw._here()
        assert other is not raw
        assert other is raw._here()
        assert (other._client.number, other.__name__, type(other)) == (1, raw.__name__, type(raw))


def test_nothing_waits_for_what_another_device_does() -> None:
    x = cp.arange(10.0)
    with cp.cuda.Device(1):
        y = cp.arange(10.0)
        z = y * 2 + 1

        def loop() -> None:
            nonlocal z
            for _ in range(20):
                z = z * 0.5 + y
                z[1:] += y[:-1]

        assert cost(loop) == 0
        assert not current().streams.is_used  # so that the compiled core records it
    assert x._client is not y._client
    assert not current().streams.is_used


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("how", ["asarray", "copyto", "store", "window"])
def test_what_is_large_passes_in_pieces(how: str, order: Any) -> None:
    host = np.asarray(np.random.default_rng(1).normal(size=(3, transfer.CHUNK_BYTES // 10)), order=order)
    assert host.nbytes > 2 * transfer.CHUNK_BYTES
    there = cp.asarray(host)
    with cp.cuda.Device(1):
        if how == "asarray":
            here = cp.asarray(there)
            assert (here.flags.c_contiguous, here.flags.f_contiguous) == (order == "C", order == "F")
        elif how == "window":
            here = cp.empty((5, *host.shape[1:]))
            here[1:4] = there if order == "C" else cp.asarray(there, order="C")
            here = here[1:4]
        else:
            here = cp.empty_like(there)
            if how == "copyto":
                cp.copyto(here, there)
            elif order == "C":
                here[...] = there
            else:
                with pytest.raises(ValueError, match="Peer access is unavailable"):
                    here[...] = there  # CuPy looks for C's order alone
                return
    there *= 0  # a copy is its own
    np.testing.assert_array_equal(here.get(), host)


def test_what_comes_behind_an_event_of_another_executor_comes_behind_it() -> None:
    with cp.cuda.Device(1):
        made = cp.arange(1000.0).sum()
        event = cp.cuda.get_current_stream().record()
    stream = cp.cuda.Stream()
    stream.wait_event(event)
    assert event.done
    assert float(made) == 499_500


def test_copies_in_python_stay_where_the_array_is() -> None:
    with cp.cuda.Device(1):
        y = cp.arange(4)
    assert copy.deepcopy(y).device.id == 1
    assert copy.copy(y).device.id == 0


def test_devices_in_lists_and_results_of_several_are_refused_in_cupys_words() -> None:
    x = cp.arange(4.0)
    with cp.cuda.Device(1):
        y = cp.arange(4.0)
        for mixed in (
            lambda: cp.concatenate([x, y]), lambda: cp.where(y > 1, x, y), lambda: cp.dot(x, y), lambda: y.__iadd__(x),
            lambda: y[cp.asarray([0, 1])] + x[:2], lambda: cp.add(y, y, out=x), lambda: cp.linalg.norm(x),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=r"resides \(0\) is different from the current device \(1\)"):
                mixed()


def test_arrays_of_a_device_that_was_left_say_so() -> None:
    left = Beside(current())
    left.number = 1
    left.close()
    with pytest.raises(SessionLost, match="This belongs to device 1 of a session that was left"):
        _ = left.session
