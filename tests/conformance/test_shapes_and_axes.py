"""What may say how long axes are, and which are meant: integers, and what CuPy takes for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from tests.conformance.in_process import notebook_on
from tests.cupy_names import CuPy


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def cp(request: pytest.FixtureRequest) -> Iterator[CuPy]:
    with notebook_on(open_device(request.param)):
        yield CuPy()


MADE: dict[str, Callable[[CuPy, Any], Any]] = {
    "zeros": lambda cp, shape: cp.zeros(shape),
    "ones": lambda cp, shape: cp.ones(shape, "i4"),
    "empty": lambda cp, shape: cp.empty(shape),
    "full": lambda cp, shape: cp.full(shape, 7),
    "zeros_like": lambda cp, shape: cp.zeros_like(cp.ones(2), shape=shape),
    "broadcast_to": lambda cp, shape: cp.broadcast_to(cp.ones(1), shape),
    "normal": lambda cp, shape: cp.random.normal(size=shape),
}


@pytest.mark.parametrize("name", MADE)
def test_a_shape_is_of_integers(cp: CuPy, name: str) -> None:
    make = MADE[name]
    for shape in ((2, 3), [2, 3], np.array([2, 3]), (np.int8(2), np.array(3))):
        if not (name == "zeros_like" and isinstance(shape, np.ndarray)):  # which is asked for its truth
            assert make(cp, shape).shape == (2, 3)
    for shape in (cp.array(3), cp.array([2, 3]), (cp.array(2), 3), "23", "3", ("2",), (2, "3"), 2.0, (2.0,)):
        with pytest.raises(TypeError):
            make(cp, shape)
    with pytest.raises(OverflowError, match=r"^Python int too large to convert to C ssize_t$"):
        make(cp, 1 << 63)


@pytest.mark.parametrize("shape", [1 << 62, 1 << 60])
def test_zeros_beyond_what_c_counts_are_refused(cp: CuPy, shape: int) -> None:
    with pytest.raises(OverflowError):
        cp.zeros(shape)


def test_an_array_of_the_shape_0_is_like_its_model(cp: CuPy) -> None:
    """As CuPy asks whether there is a shape."""
    assert cp.zeros_like(cp.ones((2, 3)), shape=0).shape == (2, 3)
    assert cp.full_like(cp.ones((2, 3)), 1, shape=np.int64(2)).shape == (2,)


def test_sides_of_a_matrix_are_integers_and_its_diagonal_too_where_it_has_one(cp: CuPy) -> None:
    for make in (cp.tri, cp.eye, cp.identity):
        for side in (2.0, cp.array(2), True):
            with pytest.raises(TypeError):
                make(side)
        assert make(np.int64(2)).shape == (2, 2)
    with pytest.raises(TypeError):
        cp.eye(2, k=1.5)
    assert cp.eye(2, k=2.5).get().tolist() == [[0, 0], [0, 0]]
    assert cp.eye(2, k=np.int64(1)).get().tolist() == [[0, 1], [0, 0]]


REDUCED = ["sum", "prod", "max", "min", "mean", "argmax", "all", "any", "var", "std", "ptp"]


@pytest.mark.parametrize("name", REDUCED)
def test_an_axis_is_an_integer(cp: CuPy, name: str) -> None:
    x = cp.arange(6.0).reshape(2, 3)
    reduce = getattr(x, name)
    for axis in (1.0, np.float64(1), "1", np.True_):
        with pytest.raises(TypeError):
            reduce(axis=axis)
    assert reduce(axis=np.int64(1)).shape == (2,)
    if name in ("var", "std"):
        assert reduce(axis=np.array(1)).shape == (2,)
    else:
        assert reduce(axis=np.array([0, 1])).shape == reduce(axis=[0, 1]).shape == ()
        for axis in (np.array(1), cp.array(1)):
            with pytest.raises(TypeError):
                reduce(axis=axis)
