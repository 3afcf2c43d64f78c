"""``cupyx.scipy.spatial``: triangulations, on SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.spatial

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.call import guarded, settle
from gpu_backend.devices.cpu.scipy_objects import define_class


class _Neighbours(tuple[Array, ...]):
    """The neighbours of vertices: SciPy unpacks what CuPy calls."""

    def __call__(self) -> tuple[Array, Array]:
        """Return where the neighbours of each vertex begin, and their indices, in CuPy's types."""
        ends, indices = self
        return settle((ends.astype(np.int64), indices))  # type: ignore[no-any-return]


def _neighbours(self: object) -> _Neighbours:
    return _Neighbours(scipy.spatial.Delaunay.vertex_neighbor_vertices.__get__(self))


def _triangulate(self: Any, points: Array, furthest_site: bool = False, incremental: bool = False) -> None:
    _require_plane(points)
    if furthest_site:
        raise ValueError("furthest_site argument is not supported by CuPy.")
    if incremental:
        raise ValueError("incremental argument is not supported by CuPy.")
    try:
        scipy.spatial.Delaunay.__init__(self, points)
    except scipy.spatial.QhullError:
        message = "The input is degenerate, the extreme points are close to coplanar"
        raise ValueError(message) from None
    settle((self.points, self.simplices, self.neighbors))


def find_simplex(self: object, xi: Array, bruteforce: bool = False, tol: float | None = None) -> Array:
    """Return the triangle that each of the points ``xi`` lies in, -1 for none.

    Raises
    ------
    NotImplementedError
        For a point that is no row: CuPy reads beyond it.
    """
    _require_plane(xi)
    if xi.ndim < 2:
        raise NotImplementedError("find_simplex of a point that is no row needs a CUDA device")
    rows = xi.reshape(-1, 2)[: len(xi)]  # CuPy looks at as many points as there are rows
    found: Array = scipy.spatial.Delaunay.find_simplex(self, rows, tol=None if tol is None else float(tol))
    return found.astype(np.int32)


def _require_plane(points: Array) -> None:
    if points.shape[-1] != 2:
        raise ValueError("Delaunay only supports 2D inputs at the moment.")


define_class(
    scipy.spatial.Delaunay,
    "cupyx.scipy.spatial.Delaunay",
    module="cupyx.scipy.spatial._delaunay",
    members={
        "__init__": guarded(_triangulate),
        "find_simplex": guarded(find_simplex),
        "vertex_neighbor_vertices": property(_neighbours),
    },
)
