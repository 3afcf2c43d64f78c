"""``cupyx.scipy.spatial``: trees and triangulations, on SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.spatial
from numpy.typing import ArrayLike

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.call import guarded, settle
from gpu_backend.devices.cpu.scipy_objects import define_class


def query_ball_point(
    self: object,
    x: ArrayLike,
    r: object,
    p: float = 2.0,
    eps: float = 0,
    return_sorted: object = None,
    return_length: bool = False,
) -> Any:
    """Return the indices of the points near each of ``x``, an array for each."""
    found = scipy.spatial.KDTree.query_ball_point(
        self, x, r, p, eps, return_sorted=True if return_sorted is None else return_sorted, return_length=return_length
    )
    if return_length:
        return np.atleast_1d(np.asarray(found, np.int64)).ravel()
    lists = [found] if np.ndim(x) == 1 else found.ravel()
    return [np.asarray(one, np.int64) for one in lists]


def query_ball_tree(self: Any, other: Any, r: float, p: float = 2.0, eps: float = 0.0) -> list[Array]:
    """Return the indices of the points of ``other`` near each of this tree's, an array for each."""
    return query_ball_point(other, self.data, r, p, eps)  # type: ignore[no-any-return]


define_class(
    scipy.spatial.KDTree,
    "cupyx.scipy.spatial.KDTree",
    module="cupyx.scipy.spatial._kdtree",
    members={"query_ball_point": guarded(query_ball_point), "query_ball_tree": guarded(query_ball_tree)},
)


class _Neighbours(tuple[Array, ...]):
    """The neighbours of vertices: SciPy unpacks what CuPy calls."""

    def __call__(self) -> tuple[Array, Array]:
        """Return where the neighbours of each vertex begin, and their indices, in CuPy's types."""
        ends, indices = self
        return settle((ends.astype(np.int64), indices))  # type: ignore[no-any-return]


def _neighbours(self: object) -> _Neighbours:
    return _Neighbours(scipy.spatial.Delaunay.vertex_neighbor_vertices.__get__(self))


define_class(
    scipy.spatial.Delaunay,
    "cupyx.scipy.spatial.Delaunay",
    module="cupyx.scipy.spatial._delaunay",
    members={"vertex_neighbor_vertices": property(_neighbours)},
)
