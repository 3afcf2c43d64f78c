"""What CuPy does to an array of another device than the current one without a kernel, and what takes a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.in_process import InProcess, notebook_on_two


@pytest.fixture(scope="module", params=["cpu", "apart", pytest.param("cuda", marks=pytest.mark.gpu)])
def executor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with notebook_on_two(request.param, tmp_path_factory.mktemp("kernels")) as one:
        yield one


def put(x: Any, key: Any, value: object) -> None:
    x[key] = value


@pytest.mark.parametrize("clear", [lambda x: put(x, ..., 0), lambda x: put(x, slice(None), -0.0), lambda x: x.fill(0)])
@pytest.mark.parametrize("dtype", ["f4", "q", "D", "?"])
def test_memory_is_cleared_wherever_it_is(executor: InProcess, clear: Callable[[Any], None], dtype: str) -> None:
    x = cp.ones((3, 4), dtype)
    with cp.cuda.Device(1):
        clear(x)
        assert x.device.id == 0
    assert not x.get().any()


def test_a_window_in_one_piece_is_cleared_and_no_more(executor: InProcess) -> None:
    x = cp.ones((3, 4))
    with cp.cuda.Device(1):
        x[1] = 0
        x[2, 1:3] = 0
    np.testing.assert_array_equal(x.get(), [[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 1]])


def test_an_array_that_is_as_wanted_is_given_back_wherever_it_is(executor: InProcess) -> None:
    x = cp.arange(6.0).reshape(2, 3)
    with cp.cuda.Device(1):
        kept = [x.astype("d", copy=False), x.astype("d", order="C", copy=False), x.T.astype("d", "F", copy=False)]
    assert [one.device.id for one in kept] == [0, 0, 0]
    kept[0][0, 0] = 9
    assert float(x[0, 0]) == float(kept[2][0, 0]) == 9


@pytest.mark.parametrize(
    "start",
    [
        lambda x: put(x, ..., 1),
        lambda x: put(x, (slice(None), 1), 0),
        lambda x: x.fill(2),
        lambda x: x.astype("f4"),
        lambda x: x.astype("d"),
        lambda x: x.astype("d", order="F", copy=False),
        lambda x: x.flat[1:5],
        lambda x: x.flat[...],
    ],
)
def test_what_takes_a_kernel_is_refused(executor: InProcess, start: Callable[[Any], object]) -> None:
    if cp.cuda.runtime.deviceCanAccessPeer(1, 0):
        pytest.skip("here nothing is refused")
    x = cp.arange(6.0).reshape(2, 3)
    start(x)
    before = x.get()
    with cp.cuda.Device(1), pytest.raises(ValueError, match="Peer access is unavailable"):
        start(x)
    np.testing.assert_array_equal(x.get(), before)


def test_one_element_of_a_flat_iterator_is_copied_to_the_current_device(executor: InProcess) -> None:
    x = cp.arange(6.0)
    with cp.cuda.Device(1):
        one = x.flat[3]
        assert one.device.id == 1
    assert float(one) == 3
