"""Where the CPU device must not do what NumPy and SciPy do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device


@pytest.fixture(scope="module")
def cp() -> Any:
    device = open_device("cpu")
    return lambda name, *args, **kwargs: device.resolve(name)(*args, **kwargs)


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        ("b", [1000 - 1024, 0, -1]),
        ("B", [1000 - 768, 0, 255]),
        ("h", [1000, 0, -1]),
        ("i", [1000, -(2**31), 2**31 - 1]),
    ],
)
def test_floats_saturate_at_32_bits_and_lose_what_does_not_fit(cp: Any, dtype: str, wanted: list[int]) -> None:
    floats = cp("cupy.array", [1000.5, np.nan, 1e30])
    assert cp("cupy.ndarray.astype", floats, dtype).tolist() == wanted


@pytest.mark.parametrize("numbers", [(2**63, -(2**63)), (-(2**63), 2**63)])
def test_the_loop_for_an_int_beside_bools_is_chosen_anew_each_time(cp: Any, numbers: tuple[int, int]) -> None:
    bools, spare = cp("cupy.array", [True, False]), cp("cupy.zeros", 2, "?")
    for number in numbers:
        assert cp("cupy.less", bools, number).tolist() == [number > 0] * 2
        assert cp("cupy.less", bools, number, spare).tolist() == [number > 0] * 2


def test_complex_exponentials_less_one_are_just_that(cp: Any) -> None:
    x = cp("cupy.array", [complex(np.inf, 0), complex(-np.inf, np.nan), complex(-0.0, 0)])
    found = cp("cupy.expm1", x)
    assert [str(one) for one in found.tolist()] == ["(inf+0j)", "(-1+0j)", "0j"]


def test_nothing_can_be_taken_from_nothing(cp: Any) -> None:
    empty, index = cp("cupy.zeros", (0, 5, 2)), cp("cupy.array", 0)
    assert cp("cupy.ndarray.__getitem__", empty, (index, slice(1, 1))).shape == (0, 2)
    with pytest.raises(IndexError, match="non-empty take"):
        cp("cupy.ndarray.__getitem__", empty, (index, slice(1, 2)))


def test_the_neighbours_of_points_are_arrays(cp: Any) -> None:
    tree = cp("cupyx.scipy.spatial.KDTree", cp("cupy.array", [[0.0], [1.0], [5.0]]))
    near = tree.query_ball_point(cp("cupy.array", [[0.5], [9.0]]), 1.0)
    assert [(one.dtype, one.tolist()) for one in near] == [(np.int64, [0, 1]), (np.int64, [])]
    assert tree.query_ball_point(cp("cupy.array", [[0.5], [9.0]]), 1.0, return_length=True).tolist() == [2, 0]
    assert [one.tolist() for one in tree.query_ball_tree(tree, 1.0)] == [[0, 1], [0, 1], [2]]


def test_a_positive_definite_system_is_solved_in_double_precision(cp: Any) -> None:
    matrix = cp("cupy.array", [[4.0, 1.0], [1.0, 3.0]], "f")
    found = cp("cupyx.linalg.sparse.lschol", matrix, cp("cupy.array", [5.0, 4.0], "f"))
    assert found.dtype == np.float64
    assert np.allclose(found, [1, 1])
