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
