"""The CPU device looks into its own arrays and into no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.cpu.device import CpuDevice


class Foreign:
    """What lies as an array does, on another device."""

    shape = strides = ()
    dtype = np.dtype("f4")
    ndim, size, itemsize, nbytes = 0, 1, 4, 4
    flags = np.empty(()).flags
    base = None


@pytest.mark.parametrize(
    "look",
    [
        lambda device, array: device.download(array),
        lambda device, array: device.write(array, 0, memoryview(b"1234")),
        lambda device, array: device.view(array, 0, (), (), np.dtype("f4")),
        lambda device, array: device.shares_base(array, array),
    ],
)
def test_an_array_of_another_device_is_refused_by_name(look: Any) -> None:
    with pytest.raises(TypeError, match=r"Foreign is no array of the CPU device, whose arrays are numpy\.ndarray"):
        look(CpuDevice(), Foreign())


@pytest.mark.parametrize("name", ["as_strided", "sliding_window_view"])
def test_a_strided_window_needs_no_memory_and_shows_that_of_its_array(name: str) -> None:
    device = CpuDevice()
    array = device.upload(np.arange(1999.0))
    before = device.held_bytes()
    make: Any = device.resolve(f"cupy.lib.stride_tricks.{name}")
    window = make(array[8:], *(((1000, 900), (8, 8)) if name == "as_strided" else (900,)))
    assert device.held_bytes() == before
    assert device.shares_base(window, array) == 64
    assert not device.owns_memory(window)
