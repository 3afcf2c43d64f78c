"""Contents of a NumPy array that are assigned by a basic index: CuPy refuses them, and takes one number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from kernelproxy.array import indexing
from tests.conformance.in_process import notebook_on
from tests.cupy_names import CuPy

KEYS = [slice(None), ..., (), slice(0, None), slice(0, 3), (slice(None),), (..., slice(None)), slice(np.int64(0), None)]


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def cp(request: pytest.FixtureRequest) -> Iterator[CuPy]:
    with notebook_on(open_device(request.param)):
        yield CuPy()


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("value", [np.arange(3.0), np.arange(3), np.ones(1), np.ones((1, 1)), np.ones((2, 3))], ids=str)
def test_an_array_is_refused_wherever_it_would_fit(cp: CuPy, key: Any, value: Any) -> None:
    x = cp.zeros(3)
    with pytest.raises(ValueError, match=r"^non-scalar numpy\.ndarray cannot be used for fill$"):
        x[key] = value
    assert x.get().tolist() == [0, 0, 0]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_one_number_fills(cp: CuPy, key: Any) -> None:
    x = cp.zeros(3)
    x[key] = np.array(2)
    assert x.get().tolist() == [2, 2, 2]


def test_so_it_is_with_structures_and_without_elements(cp: CuPy) -> None:
    kind = np.dtype([("a", "f4"), ("b", "i4")])
    for x, value in ((cp.zeros(2, kind), np.ones(2, kind)), (cp.zeros(0), np.ones(0))):
        with pytest.raises(ValueError, match="cannot be used for fill"):
            x[...] = value


def test_an_array_of_the_same_dtype_is_copied_where_the_user_wants_that(
    cp: CuPy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_COPIES_SLICES", True)
    x = cp.zeros((2, 3), order="F")
    x[:] = np.arange(6.0).reshape(2, 3)
    assert x.get().tolist() == [[0, 1, 2], [3, 4, 5]]
    for value in (np.arange(6).reshape(2, 3), np.arange(3.0)):
        with pytest.raises(ValueError, match="must ensure arrays have same shape and dtype"):
            x[:] = value
    with pytest.raises(ValueError, match="cannot be used for fill"):
        x[...] = np.ones((2, 3))
