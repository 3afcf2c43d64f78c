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
