"""Distances between points on the CPU device: what CuPy gives, where SciPy gives something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device


@pytest.fixture(scope="module")
def cp() -> Any:
    device = open_device("cpu")
    return lambda name, *args, **kwargs: device.resolve(f"cupyx.scipy.spatial.{name}")(*args, **kwargs)


def test_distances_of_pairs_are_a_vector(cp: Any) -> None:
    points = np.array([[0.0, 0], [3, 4], [6, 8], [0, 1]])
    assert cp("distance.pdist", points).tolist() == [5, 10, 1, 5, 18**0.5, 85**0.5]
    assert cp("distance.pdist", points[:1]).shape == (0,)


def test_the_matrix_behind_the_distances_of_pairs_may_be_kept(cp: Any) -> None:
    points, kept = np.array([[0.0], [1], [4]]), np.empty((3, 3))
    assert cp("distance.pdist", points, "cityblock", out=kept).tolist() == [1, 4, 3]
    assert kept.tolist() == [[0, 1, 4], [1, 0, 3], [4, 3, 0]]


#: What there is of every metric: points whose coordinates sum to one.
ONE, OTHER = np.array([[0.25, 0.75, 0.0]]), np.array([[0.5, 0.25, 0.25]])
METRICS = {
    "canberra": 0.25 / 0.75 + 0.5 + 1,
    "chebyshev": 0.5,
    "cityblock": 1.0,
    "correlation": 1 - np.corrcoef(ONE, OTHER)[0, 1],
    "cosine": 1 - (ONE @ OTHER.T)[0, 0] / (np.linalg.norm(ONE) * np.linalg.norm(OTHER)),
    "euclidean": 0.375**0.5,
    "hamming": 1.0,
    "hellinger": (1 - 0.125**0.5 - 0.1875**0.5) ** 0.5,
    "jensenshannon": (0.5 * (0.25 * np.log(0.25 / 0.375) + 0.75 * np.log(1.5) + 0.5 * np.log(0.5 / 0.375)
                             - 0.25 * np.log(2) + 0.25 * np.log(2))) ** 0.5,
    "kl_divergence": 0.5 * (0.25 * np.log(0.5) + 0.75 * np.log(3)),
    "russellrao": (3 - 0.125 - 0.1875) / 3,
    "sqeuclidean": 0.375,
}  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_each_metric_keeps_the_floats_it_is_given(cp: Any, metric: str, dtype: str) -> None:
    one, other = ONE.astype(dtype), OTHER.astype(dtype)
    for found in (cp(f"distance.{metric}", one, other), cp("distance.cdist", one, other, metric)[0, 0]):
        assert found.dtype == dtype
        assert np.allclose(found, METRICS[metric], rtol=1e-6)
    assert cp(f"distance.{metric}", one, other).shape == ()


def test_the_order_of_a_norm_is_asked_by_minkowski_alone(cp: Any) -> None:
    one, other = np.array([[0.0, 0]]), np.array([[3.0, 4]])
    assert cp("distance.minkowski", one, other, 1) == cp("distance.cdist", one, other, "minkowski", p=1) == 7
    assert cp("distance.cdist", one, other, "minkowski") == cp("distance.cdist", one, other, p=1, w=None) == 5
    with pytest.raises(TypeError, match="'p'"):
        cp("distance.minkowski", one, other)


@pytest.mark.parametrize("name", ["distance.cdist", "distance_matrix", "distance.distance_matrix"])
def test_what_is_no_float_is_made_one_of_32_bits(cp: Any, name: str) -> None:
    whole, halves = np.arange(6).reshape(3, 2), np.ones((2, 2), "e")
    assert cp(name, whole, whole).dtype == cp(name, halves, whole).dtype == np.float32
    assert cp(name, halves.astype("f"), whole).dtype == np.float32
    assert cp("distance.pdist", whole).dtype == np.float32
    with pytest.raises(ValueError, match="Inputs must have the same dtypes"):
        cp(name, halves.astype("d"), whole)


def test_distances_lie_as_the_points_do(cp: Any) -> None:
    rows = np.arange(6.0).reshape(3, 2)
    columns = np.asfortranarray(rows)
    assert cp("distance.cdist", rows, rows).flags.c_contiguous
    assert cp("distance.cdist", columns, columns).flags.f_contiguous
    refused = {
        r"XA and XB must have the same layout \(XA.order=C, XB.order=F$": lambda: cp("distance.cdist", rows, columns),
        r"u and v must have the same layout \(u.order=F, v.order=C$": lambda: cp("distance.cosine", columns, rows),
        r"out must have same layout as input \(out.order=F\)": (
            lambda: cp("distance.cdist", rows, rows, out=np.empty((3, 3), "i", "F"))
        ),
        "same memory layout": lambda: cp("distance.cdist", rows, rows, out=np.empty((3, 3), "d", "F")),
        "must be contiguous": lambda: cp("distance.cdist", rows[:, :1], rows[:, :1]),
    }
    for said, ask in refused.items():
        with pytest.raises(ValueError, match=said):
            ask()


def test_distances_are_written_into_an_array_of_their_dtype(cp: Any) -> None:
    points, out, whole = np.array([[0.0], [2.0]]), np.empty((2, 2)), np.zeros((2, 2), "i")
    assert cp("distance.cdist", points, points, out=out) is out
    assert out.tolist() == [[0, 2], [2, 0]]
    made = cp("distance.cdist", points.astype("f"), points.astype("f"), out=whole)
    assert (made.dtype, made.tolist(), whole.any()) == (np.float32, [[0, 2], [2, 0]], False)
    for wrong in (np.empty((2, 2), "f"), np.empty((3, 2))):
        with pytest.raises(ValueError, match=r"same dtype|do not fit"):
            cp("distance.cdist", points, points, out=wrong)


def test_what_is_no_distance_is_refused(cp: Any) -> None:
    points = np.ones((2, 2))
    refused: list[tuple[type[Exception], str, tuple[Any, ...]]] = [
        (ValueError, "Unknown Distance Metric: mahalanobis", (points, points, "Mahalanobis")),
        (ValueError, "metric cb is not supported", (points, points, "cb")),  # CuPy knows it, and hands it on
        (TypeError, "2nd argument metric must be a string", (points, points, lambda u, v: 0)),
        (ValueError, "XA must be a 2-dimensional array", (points[0], points)),
        (ValueError, "XB must be a 2-dimensional array", (points, points[0])),
        (ValueError, "same number of columns", (points, np.ones((2, 3)))),
    ]
    for kind, said, args in refused:
        with pytest.raises(kind, match=said):
            cp("distance.cdist", *args)
    with pytest.raises(ValueError, match="x contains 2-dimensional vectors but y contains 3-dimensional vectors"):
        cp("distance_matrix", points, np.ones((2, 3)))
    with pytest.raises(ValueError, match="floating point"):
        cp("distance.euclidean", points.astype("i"), points.astype("i"))
    with pytest.raises(IndexError):  # cuVS asks how many columns there are
        cp("distance.euclidean", points[0], points[0])
