"""Where every device puts what is downloaded, and what it makes of memory that it was told of."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device, no_landing

MEGABYTE = 1 << 20


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Device:
    os.environ.setdefault("CUPY_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
    return open_device(request.param)


@pytest.fixture
def landing(device: Device) -> Iterator[np.ndarray[Any, Any]]:
    """Memory of whole pages, in which what is downloaded lies from now on if it is large enough."""
    memory = np.frombuffer(mmap.mmap(-1, MEGABYTE), np.uint8)
    device.landing = lambda size: memory[:size] if 40_000 <= size <= MEGABYTE else None
    yield memory
    device.landing = no_landing


@pytest.mark.parametrize("shape", [(12_345,), (100, 123), (3, 0, 5), (7,), (), (400_000,)])
def test_what_is_downloaded_lies_where_it_shall(
    device: Device, landing: np.ndarray[Any, Any], shape: tuple[int, ...]
) -> None:
    host = np.random.default_rng(0).random(shape)
    made = device.upload(host)
    wide = device.resolve("cupy.repeat")(made, 2, axis=-1) if shape else made  # of which every other is a window
    layout = device.layout(wide)
    window = device.view(wide, 0, shape, (*layout.strides[:-1], 16), np.dtype("f8")) if shape else made
    for array in (made, window):
        back = device.download(array)
        assert back.flags.c_contiguous
        assert (back.shape, back.dtype) == (host.shape, host.dtype)
        np.testing.assert_array_equal(back, host)
        assert np.shares_memory(back, landing) <= (40_000 <= host.nbytes <= MEGABYTE)
    back = device.download(made)
    assert np.shares_memory(back, landing) == (40_000 <= host.nbytes <= MEGABYTE)


def test_memory_that_the_device_knows_is_copied_from_and_to(device: Device, landing: np.ndarray[Any, Any]) -> None:
    pinned = device.pin(landing)
    landing[:] = np.random.default_rng(1).integers(0, 256, MEGABYTE, np.uint8)
    told = landing.copy()
    array = device.resolve("cupy.zeros")(MEGABYTE + 16, "u1")
    device.write(array, 8, landing.data)
    landing[:] = 0  # it was copied when `write` returned
    for _ in range(2):
        back = device.download(device.view(array, 8, (MEGABYTE,), (1,), np.dtype("u1")))
        assert np.shares_memory(back, landing)
        np.testing.assert_array_equal(back, told)
        landing[:] = 0
        if pinned is not None:  # and then it is memory as any
            pinned.release()
            pinned = None
    assert int(device.download(array)[0]) == 0
