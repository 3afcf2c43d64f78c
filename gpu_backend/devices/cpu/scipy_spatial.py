"""``cupyx.scipy.spatial`` and its distances on SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.spatial
import scipy.spatial.distance
import scipy.special
from numpy.typing import ArrayLike

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.call import guarded, settle
from gpu_backend.devices.cpu.dtypes import cast_into
from gpu_backend.devices.cpu.scipy_functions import define_scipy
from gpu_backend.devices.cpu.scipy_objects import define_class
from gpu_backend.devices.cpu.table import define

_DISTANCE = "cupyx.scipy.spatial.distance"


@define(f"{_DISTANCE}.check_soft_dependencies")
def check_soft_dependencies() -> None:
    """Return: nothing more is needed on this device."""


@define(f"{_DISTANCE}.hellinger")
def hellinger(u: Array, v: Array) -> Array:
    made: Array = np.sqrt(1 - np.sum(np.sqrt(np.asarray(u) * np.asarray(v))))
    return made


@define(f"{_DISTANCE}.kl_divergence")
def kl_divergence(u: Array, v: Array) -> Array:
    made: Array = np.sum(scipy.special.rel_entr(u, v))
    return made


def _pairwise(metric: Any) -> Any:
    return {"hellinger": hellinger, "kl_divergence": kl_divergence}.get(metric, metric)


@define(f"{_DISTANCE}.cdist")
def cdist(XA: Array, XB: Array, metric: object = "euclidean", out: Array | None = None, **kwargs: object) -> Array:
    result = scipy.spatial.distance.cdist(XA, XB, _pairwise(metric), **kwargs)
    if out is None:
        made: Array = result
        return made
    cast_into(out, result)
    return out


@define(f"{_DISTANCE}.pdist")
def pdist(X: Array, metric: object = "euclidean", *, out: Array | None = None, **kwargs: object) -> Array:
    """Return the distances above the diagonal, row by row; ``out`` takes the whole matrix."""
    matrix = cdist(X, X, metric, out, **kwargs)
    return matrix[np.triu_indices_from(matrix, 1)]


@define("cupyx.scipy.spatial.distance_matrix", f"{_DISTANCE}.distance_matrix")
def distance_matrix(x: Array, y: Array, p: float = 2.0) -> Array:
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ValueError(f"x contains {x.shape[-1]}-dimensional vectors but y contains {y.shape[-1]}-dimensional ones")
    made: Array = scipy.spatial.distance_matrix(x, y, p)
    return made


define_scipy(_DISTANCE, scipy.spatial.distance, without=("cdist", "pdist"))


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
