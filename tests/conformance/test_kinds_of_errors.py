"""Mistakes that a program may catch by their class: it is CuPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from gpu_backend.devices import open_device
from tests.conformance.in_process import notebook_on
from tests.cupy_names import CuPy

NO_INT = "invalid literal for int"
NO_ARRAY = r"Argument 'b' has incorrect type \(expected cupy\._core\.core\._ndarray_base, got "
NO_SIDES = "not enough values to unpack"


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def cp(request: pytest.FixtureRequest) -> Iterator[CuPy]:
    with notebook_on(open_device(request.param)):
        yield CuPy()


@pytest.mark.parametrize(
    ("mistake", "kind", "words"),
    [
        (lambda cp: cp.ones(3)["a"], ValueError, NO_INT),
        (lambda cp: cp.ones(3)[b"a"], ValueError, NO_INT),
        (lambda cp: cp.ones((3, 3))[0, "a"], ValueError, NO_INT),
        (lambda cp: cp.ones(3).__setitem__("a", 1), ValueError, NO_INT),
        (lambda cp: cp.zeros(2, np.dtype([("a", "f4")]))[("a",)], ValueError, NO_INT),
        (lambda cp: cp.ones(3)[np.datetime64("2020")], TypeError, "int"),
        (lambda cp: cp.linalg.svd(cp.ones(3)), ValueError, NO_SIDES),
        (lambda cp: cp.linalg.qr(cp.array(1.0)), ValueError, NO_SIDES),
        (lambda cp: cp.linalg.pinv(cp.ones(3)), ValueError, NO_SIDES),
        (lambda cp: cp.matmul(cp.ones((2, 3)), 2), TypeError, NO_ARRAY + "int"),
        (lambda cp: cp.ones((2, 3)) @ np.float64(2), TypeError, NO_ARRAY + "numpy.float64|float64"),
        (lambda cp: 2 @ cp.ones(2), TypeError, "_ndarray_base"),
        (lambda cp: cp.ones(2).dot(2), TypeError, NO_ARRAY + "int"),
        (lambda cp: cp.dot(2, cp.ones(2)), AttributeError, "'int' object has no attribute 'dot'"),
        (lambda cp: cp.copyto(cp.ones(2), 1, where=np.ones(2, bool)), TypeError, "Unsupported type"),
        (lambda cp: cp.copyto(cp.ones(2), "?!"), TypeError, "did not understand one of the types"),
        (lambda cp: cp.copyto(cp.ones(2), "U3"), TypeError, "Cannot cast U3 to float64"),
        (lambda cp: cp.ones(2).get(out=np.ones(2, "f4")), TypeError, "float32 array cannot be obtained from float64"),
        (lambda cp: cp.ones(2).get(order="X"), ValueError, "unsupported order: X"),
    ],
)
def test_a_mistake_is_of_cupys_class(
    cp: CuPy, mistake: Callable[[CuPy], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as told:
        mistake(cp)
    assert type(told.value) is kind


def test_what_python_makes_an_int_of_is_an_index(cp: CuPy) -> None:
    assert cp.arange(3)["1"].item() == cp.arange(3)[1.5].item() == cp.arange(3)[np.int8(1)].item() == 1
    records = cp.zeros(2, np.dtype([("a", "f4")]))
    records["a"] = 3
    assert records["a"].get().tolist() == [3, 3]
