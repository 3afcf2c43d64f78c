"""Extremes of arrays without elements: of none there is none, and no results want none."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device

NAMES = ["max", "min", "ptp", "argmax", "argmin", "nanmax", "nanmin", "nanargmax", "nanargmin"]


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    return open_device(request.param)


@pytest.mark.parametrize("dtype", ["f8", "i4"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("shape", "axis", "found"),
    [((0, 0), 0, (0,)), ((0, 3), 1, (0,)), ((0, 2, 0), (0, 1), (0,)), ((2, 0, 0), 1, (2, 0)), ((0, 0), (), (0, 0))],
)
def test_no_results_want_no_elements(
    device: Device, name: str, shape: tuple[int, ...], axis: int | tuple[int, ...], found: tuple[int, ...], dtype: str
) -> None:
    array = device.upload(np.zeros(shape, dtype))
    layout = device.layout(device.resolve(f"cupy.{name}")(array, axis=axis))
    assert layout.shape == found
    assert layout.dtype == np.dtype("i8" if "arg" in name else dtype)
    if name not in ("nanargmax", "nanargmin"):
        kept = device.layout(device.resolve(f"cupy.{name}")(array, axis=axis, keepdims=True)).shape
        assert (len(kept), 0 in kept) == (len(shape), True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((0,), 0), ((0, 3), 0), ((0, 0), None), ((0, 2, 3), (0, 1))])
def test_a_result_of_no_elements_is_refused(
    device: Device, name: str, shape: tuple[int, ...], axis: int | tuple[int, ...] | None
) -> None:
    with pytest.raises(ValueError, match=r"zero-size array to reduction operation \w+ which has no identity"):
        device.resolve(f"cupy.{name}")(device.upload(np.zeros(shape)), axis=axis)


def test_so_it_is_with_a_kernel_of_the_users(device: Device) -> None:
    largest = device.resolve("cupy.ReductionKernel")("T x", "T y", "x", "max(a, b)", "y = a", "", "largest")
    assert device.layout(largest(device.upload(np.zeros((0, 0))), axis=0)).shape == (0,)
    with pytest.raises(ValueError, match="zero-size array to reduction operation largest which has no identity"):
        largest(device.upload(np.zeros((0, 3))), axis=0)
