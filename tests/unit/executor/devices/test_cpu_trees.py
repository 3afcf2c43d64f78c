"""Trees and triangulations on the CPU device: what CuPy's classes answer, where SciPy's answer something else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gpu_backend.devices import open_device
from gpu_backend.devices.cpu.memory import LEDGER

LINE = np.array([[0.0], [1.0], [3.0], [7.0]])


@pytest.fixture(scope="module")
def cp() -> Any:
    device = open_device("cpu")
    return lambda name, *args, **kwargs: device.resolve(f"cupyx.scipy.spatial.{name}")(*args, **kwargs)


def test_pairs_come_as_rows(cp: Any) -> None:
    tree = cp("KDTree", LINE[::-1].copy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pairs = tree.query_pairs(4)
    assert (pairs.dtype, pairs.tolist()) == (np.int64, [[0, 1], [1, 2], [1, 3], [2, 3]])
    with pytest.warns(UserWarning, match="'set' is not supported by the GPU"):
        assert_array_equal(tree.query_pairs(4, output_type="set"), pairs)
    assert tree.query_pairs(0.5).shape == (0, 2)


def test_distances_of_two_trees_are_a_coo_matrix(cp: Any) -> None:
    tree, other = cp("KDTree", LINE.astype("f")), cp("KDTree", np.array([[0.0], [5.0]], "f"))
    near = [[0, 0], [1, 0], [3, 2], [0, 2]]
    sparse = tree.sparse_distance_matrix(other, 3)
    assert (type(sparse).__name__, sparse.dtype, sparse.nnz) == ("coo_matrix", np.float32, 4)
    assert sparse.toarray().tolist() == near
    dense = tree.sparse_distance_matrix(other, 3, output_type="ndarray")
    assert (type(dense), dense.dtype, dense.tolist()) == (np.ndarray, np.float32, near)
    assert tree.sparse_distance_matrix(other, 3, 1.0).nnz == 4
    with pytest.raises(ValueError, match="only supports 'coo_matrix' and 'ndarray' outputs"):
        tree.sparse_distance_matrix(other, 3, output_type="dok_matrix")


@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (7, 2), (8, 2), (13, 3), (100, 3)])
def test_a_tree_is_an_array_of_its_points(cp: Any, shape: tuple[int, int]) -> None:
    points = np.random.default_rng(1).random(shape, "f")
    tree = cp("KDTree", points)
    assert (tree.tree.dtype, tree.index.dtype, tree.n, tree.m) == (np.float32, np.int64, *shape)
    assert_array_equal(points[tree.index], tree.tree)
    assert sorted(tree.index) == [*range(len(points))]
    assert_array_equal([tree.mins, tree.maxes], [points.min(0), points.max(0)])
    for node in range(1, len(points)):  # left of each of its ancestors, or right of it
        below = node
        while below:
            above = (below - 1) // 2
            axis = ((above + 1).bit_length() - 1) % shape[1]
            found, split = tree.tree[node, axis], tree.tree[above, axis]
            assert found <= split if below % 2 else found >= split
            below = above


def test_what_a_tree_holds_is_booked(cp: Any) -> None:
    points, before = np.zeros((1000, 3)), LEDGER.used_bytes
    tree = cp("KDTree", points)
    assert LEDGER.used_bytes - before >= tree.tree.nbytes + tree.index.nbytes


def test_a_box_that_repeats_itself(cp: Any) -> None:
    tree = cp("KDTree", LINE, boxsize=8)
    assert (tree.boxsize.tolist(), tree.copy_query_points) == ([8], True)
    assert_array_equal(tree.tree[:, 0], [3, 1, 7, 0])
    assert tree.bounds.tolist() == [[[0, 7]], [[0, 0]], [[7, 7]], [[0, 0]]]
    distances, nodes = tree.query(np.array([[7.75], [-6.0]]))
    assert (distances.tolist(), nodes.tolist()) == ([0.25, 1], [0, 1])
    assert tree.query_pairs(1).tolist() == [[0, 1], [0, 3]]
    plain = cp("KDTree", LINE)
    assert (plain.boxsize.tolist(), plain.bounds.shape, plain.copy_query_points) == ([np.inf], (0,), False)
    refused: dict[str, Any] = {
        "periodic KDTree is only available on float64": lambda: cp("KDTree", LINE.astype("f"), boxsize=8),
        "periodic KDTree is only avail": lambda: tree.query(LINE.astype("f")),
        "Some input data are greater than the size": lambda: cp("KDTree", LINE, boxsize=7),
        "Negative input data are outside": lambda: cp("KDTree", -LINE, boxsize=7),
    }
    for said, ask in refused.items():
        with pytest.raises(ValueError, match=said):
            ask()


@pytest.mark.parametrize(
    ("shape", "k", "wanted"),
    [((1,), 1, (1,)), ((1,), 2, (2,)), ((1,), [1], (1,)), ((5, 1), 1, (5,)), ((5, 1), [1], (5, 1)), ((5, 1), 3, (5, 3)),
     ((2, 3, 1), 1, (2, 3)), ((2, 3, 1), [4, 2], (2, 3, 2))],
)  # fmt: skip
def test_neighbours_have_the_shape_of_what_is_asked(cp: Any, shape: Any, k: Any, wanted: Any) -> None:
    distances, nodes = cp("KDTree", LINE).query(np.full(shape, 2.25, "f"), k)
    assert (distances.shape, nodes.shape) == (wanted, wanted)
    assert (distances.dtype, nodes.dtype) == (np.float64, np.int64)
    ordered = [2, 1, 0, 3]
    assert np.unique(nodes).tolist() == sorted(
        ordered[one - 1] for one in (k if isinstance(k, list) else range(1, k + 1))
    )


def test_neighbours_lie_in_a_row_wherever_they_were_named(cp: Any) -> None:
    points = np.random.default_rng(2).random((20, 2))
    for found in cp("KDTree", points).query(points, k=[3, 1]):
        assert found.flags.c_contiguous


def test_neighbours_at_the_bound_count(cp: Any) -> None:
    distances, nodes = cp("KDTree", LINE).query(np.array([[5.0]]), [1, 2, 3], distance_upper_bound=2)
    assert (distances.tolist(), sorted(nodes.tolist()[0])) == ([[2, 2, np.inf]], [2, 3, 4])


def test_a_radius_is_one_number_and_is_kept_to(cp: Any) -> None:
    points = np.random.default_rng(1).random((500, 2))
    tree = cp("KDTree", points)
    exact = np.linalg.norm(points[:3, None] - points, axis=2) <= 0.25
    for eps in (0, 0.5):
        found = tree.query_ball_point(points[:3], 0.25, 2.0, eps)
        assert [one.tolist() for one in found] == [np.flatnonzero(row).tolist() for row in exact]
    with pytest.raises(TypeError):
        tree.query_ball_point(points[:3], np.array([0.1, 0.2, 0.3]))


def test_what_cupys_trees_do_not_do(cp: Any) -> None:
    tree = cp("KDTree", LINE)
    with pytest.raises(NotImplementedError, match="count_neighbors is not available on CuPy"):
        tree.count_neighbors(tree, 1.0)
    with pytest.raises(ValueError, match="k must be an integer or list of integers"):
        tree.query(LINE, (1, 2))
    with pytest.raises(ValueError, match="Expected 1, got: 2"):
        tree.query(np.zeros((3, 2)))
    with pytest.warns(UserWarning, match="balanced_tree=False is not supported"):
        cp("KDTree", LINE, balanced_tree=False, leafsize=0)


def test_points_that_are_written_over_move_in_no_tree(cp: Any) -> None:
    points = LINE.copy()
    tree, kept = cp("KDTree", points), cp("KDTree", points, copy_data=True)
    points[...] = 100
    assert tree.query(LINE)[1].tolist() == [0, 1, 2, 3]
    assert (tree.data is points, kept.data.tolist()) == (True, LINE.tolist())


def test_triangulations_are_of_the_plane(cp: Any) -> None:
    plane = np.array([[0.0, 0], [4, 0], [0, 4], [4, 5]])
    made = cp("Delaunay", plane.astype("f"))
    inside = made.find_simplex(np.array([[1.0, 1], [9, 9]]))
    assert (made.simplices.dtype, inside.dtype, inside.tolist()[1]) == (np.int32, np.int32, -1)
    assert sorted(made.simplices[inside[0]]) == [0, 1, 2]
    assert_allclose(made.find_simplex(np.array([[-1.0, 1]]), tol=1), inside[:1])
    refused: dict[str, Any] = {
        "only supports 2D inputs": lambda: cp("Delaunay", np.eye(4, 3)),
        "only supports 2D": lambda: made.find_simplex(np.eye(3)),
        "furthest_site argument is not supported": lambda: cp("Delaunay", plane, True),
        "incremental argument is not supported": lambda: cp("Delaunay", plane, incremental=True),
        "The input is degenerate": lambda: cp("Delaunay", np.repeat(LINE, 2, axis=1)),
    }
    for said, ask in refused.items():
        with pytest.raises(ValueError, match=said):
            ask()
    with pytest.raises(NotImplementedError, match="CUDA device"):
        made.find_simplex(plane[0])
