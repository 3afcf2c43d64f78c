"""Dtypes that a device refuses, in CuPy's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device
from tests.conformance.in_process import notebook_on
from tests.cupy_names import CuPy

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


@pytest.fixture(scope="module")
def notebook(device: Device) -> Iterator[CuPy]:
    with notebook_on(device):
        yield CuPy()


@pytest.mark.parametrize("kind", [np.longdouble, np.clongdouble])
@pytest.mark.parametrize(
    "make",
    [
        lambda cp, kind: cp.asarray(np.ones(3, kind)),
        lambda cp, kind: cp.array(kind(2)),
        lambda cp, kind: cp.array([kind(2), kind(3)]),
        lambda cp, kind: cp.array([1, 2], dtype=kind),
        lambda cp, kind: cp.frombuffer(bytes(64), dtype=kind),
        lambda cp, kind: cp.zeros(3, kind),
        lambda cp, kind: cp.ones(3).cumsum(dtype=kind),
    ],
)
def test_numbers_wider_than_a_devices_are_refused_where_they_are_named(
    notebook: CuPy, kind: type, make: Callable[[CuPy, type], object]
) -> None:
    with pytest.raises(ValueError, match=f"^Unsupported dtype {np.dtype(kind)}$"):
        make(notebook, kind)
    if kind is np.longdouble:  # what can be held is
        assert notebook.array(np.ones(3, kind), dtype="f4").get().tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", [np.longdouble, np.clongdouble])
def test_nothing_is_computed_with_them(notebook: CuPy, kind: type) -> None:
    x = notebook.ones(3)
    for call in (
        lambda: x + kind(2),
        lambda: notebook.where(x > 0, kind(2), 1.0),
        lambda: x.clip(kind(0), kind(1)),
        lambda: x.sum(dtype=kind),
    ):
        with pytest.raises(TypeError):
            call()
    x.fill(np.longdouble(2))
    assert x.get().tolist() == [2, 2, 2]
