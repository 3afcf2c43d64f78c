"""Copies from device to device in one notebook: recorded like all else, where CUDA itself copies."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.in_process import InProcess, notebook_on_two


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def executor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with notebook_on_two(request.param, tmp_path_factory.mktemp("kernels")) as one:
        yield one


def host(array: Any) -> np.ndarray[Any, Any]:
    return cp.asnumpy(array)


def test_what_has_no_gaps_is_copied_without_waiting(executor: InProcess) -> None:
    """CUDA itself copies what has no gaps, and has any stream wait for any event: nothing of that can fail."""
    x, y = cp.arange(24, dtype="f4").reshape(4, 6), cp.asfortranarray(cp.arange(6.0).reshape(2, 3))
    counters = x._client.pipeline.counters
    with cp.cuda.Device(1):
        target, rows = cp.zeros((4, 6), "f4"), cp.zeros((9, 6), "f4")
        event = cp.cuda.Event()
    event_here = cp.cuda.Event()
    event_here.record()
    before = counters.round_trips
    with cp.cuda.Device(1):
        target[...] = x
        rows[2:6] = x
        made = [x.copy(), cp.copy(x), cp.asarray(x), cp.array(x), cp.asarray(y), cp.asarray(x[1:3], "f4"), y.copy("K")]
        cp.cuda.get_current_stream().wait_event(event_here)
        event.record()
        after = [one + 1 for one in made]
    cp.cuda.get_current_stream().wait_event(event)
    x *= 0
    assert counters.round_trips == before
    for one, later, of in zip(made, after, [x, x, x, x, y, x[1:3], y], strict=True):
        assert (one.device.id, one.strides) == (1, of.strides)
        expected = np.arange(6.0).reshape(2, 3) if of is y else np.arange(24, dtype="f4").reshape(4, 6)
        expected = expected[1:3] if of.shape == (2, 6) else expected
        np.testing.assert_array_equal(host(one), expected)
        np.testing.assert_array_equal(host(later), expected + 1)
    np.testing.assert_array_equal(host(target), np.arange(24).reshape(4, 6))
    np.testing.assert_array_equal(host(rows)[2:6], np.arange(24).reshape(4, 6))
    assert not host(rows)[[0, 1, 6, 7, 8]].any()


@pytest.mark.parametrize("shape", [(1, 5), (1,), (1, 2, 3)])
def test_a_store_that_is_a_kernel_is_waited_for(executor: InProcess, shape: tuple[int, ...]) -> None:
    """CuPy takes leading axes of one element from what is stored, and copies what then lies otherwise by a kernel."""
    _is_waited_for(cp.ones(shape), cp.zeros, shape)


def test_a_store_in_fortrans_order_is_waited_for(executor: InProcess) -> None:
    _is_waited_for(cp.ones((2, 3), order="F"), lambda shape: cp.zeros(shape, order="F"), (2, 3))


def _is_waited_for(value: Any, make: Callable[[tuple[int, ...]], Any], shape: tuple[int, ...]) -> None:
    counters = value._client.pipeline.counters
    with cp.cuda.Device(1):
        target = make(shape)
        before = counters.round_trips
        with warnings.catch_warnings(), suppress(ValueError):  # where devices do not reach each other's memory
            warnings.simplefilter("ignore")  # where they do
            target[...] = value
        assert counters.round_trips == before + 1
