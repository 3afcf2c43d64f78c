"""Several arrays at once come in a list where CuPy's do, and in a tuple where CuPy's do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpu_backend.devices import open_device
from tests.conformance.in_process import notebook_on
from tests.cupy_names import CuPy


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def cp(request: pytest.FixtureRequest) -> Iterator[CuPy]:
    with notebook_on(open_device(request.param)):
        yield CuPy()


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (lambda cp: cp.ogrid[0:3, 0:4], [(3, 1), (1, 4)]),
        (lambda cp: cp.ogrid[0:3,], [(3,)]),
        (lambda cp: cp.atleast_1d(cp.arange(3), 2), [(3,), (1,)]),
        (lambda cp: cp.atleast_2d([1, 2], cp.arange(3)), [(1, 2), (1, 3)]),
        (lambda cp: cp.atleast_3d(cp.arange(3), [[1, 2]]), [(1, 3, 1), (1, 2, 1)]),
        (lambda cp: cp.atleast_2d(cp.arange(3), cp.arange(2)), [(1, 3), (1, 2)]),
        (lambda cp: cp.ix_([1], [2, 3]), ((1, 1), (1, 2))),
        (lambda cp: cp.meshgrid(cp.arange(2), cp.arange(3)), ((3, 2), (3, 2))),
    ],
)
def test_it_comes_in_what_cupys_does(cp: CuPy, make: Callable[[CuPy], Any], shapes: Any) -> None:
    made = make(cp)
    assert type(made) is type(shapes)
    assert type(made)(one.shape for one in made) == shapes


def test_one_alone_is_an_array(cp: CuPy) -> None:
    assert (cp.ogrid[0:3].shape, cp.mgrid[0:3, 0:4].shape, cp.atleast_2d([1]).shape) == ((3,), (2, 3, 4), (1, 1))
