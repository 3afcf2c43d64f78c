"""Dtypes that a device refuses, in CuPy's words."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device

_FIELDS: list[tuple[str, type]] = [("a", int)]


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    return open_device(request.param)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "eye"])
def test_a_dtype_that_cannot_be_looked_up_is_refused(device: Device, name: str) -> None:
    """Libraries tell by it whether an array library has structures."""
    with pytest.raises(TypeError, match=r"^unhashable type: 'list'$"):
        device.resolve(f"cupy.{name}")(3, dtype=_FIELDS)
    assert device.layout(device.resolve(f"cupy.{name}")(3, dtype=np.dtype("i2"))).dtype == np.dtype("i2")


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "ndarray.astype", "ndarray.view", "asarray"])
def test_so_is_one_of_an_array(device: Device, name: str) -> None:
    array = device.upload(np.zeros(3))
    with pytest.raises(TypeError, match=r"^unhashable type: 'list'$"):
        device.resolve(f"cupy.{name}")(array, dtype=_FIELDS)
    made = device.resolve("cupy.array")([(1,)], dtype=_FIELDS)  # NumPy makes this one, and takes it
    assert device.layout(made).dtype == np.dtype(_FIELDS)
