"""``cupyx.scipy.spatial.KDTree``: CuPy's class, that asks SciPy's of the same points who is near."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.spatial

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.call import guarded_methods, settle
from gpu_backend.devices.cpu.dtypes import cast_into
from gpu_backend.devices.cpu.naming import public_class
from gpu_backend.devices.cpu.scipy_distance import distance_matrix
from gpu_backend.devices.cpu.scipy_sparse import like


@public_class("cupyx.scipy.spatial.KDTree", module="cupyx.scipy.spatial._kdtree")
@guarded_methods
class KDTree:
    """Points, to be asked for the neighbours of others.

    Parameters
    ----------
    data
        An array of a point a row.
    leafsize, compact_nodes
        Of no meaning to CuPy's trees, each node of which is a point.
    copy_data
        Whether ``data`` of the tree is to be a copy.
    balanced_tree
        False makes a warning, and a balanced tree.
    boxsize
        How long the sides are of a box that repeats itself; the points lie in it.
    """

    def __init__(
        self,
        data: Array,
        leafsize: int = 10,
        compact_nodes: bool = True,
        copy_data: bool = False,
        balanced_tree: bool = True,
        boxsize: Any = None,
    ) -> None:
        self.data = data.copy() if copy_data else data
        if not balanced_tree:
            message = "balanced_tree=False is not supported by the GPU implementation of KDTree, skipping."
            warnings.warn(message, stacklevel=2)
        self.n, self.m = self.data.shape
        self.copy_query_points = boxsize is not None
        self.boxsize: Array = settle(np.full(self.m, np.inf))
        if boxsize is not None:
            self.boxsize[...] = boxsize
            _require_inside(self.data, self.boxsize)
        self.tree, self.index = settle(_assembled(self.data))
        self.bounds: Array = settle(np.empty(0))
        if boxsize is not None:
            self._require_doubles(self.data)
            self.bounds = settle(_bounds(self.tree))
        self.mins, self.maxes = settle((self.tree.min(axis=0), self.tree.max(axis=0)))
        box = None if boxsize is None else np.maximum(self.boxsize, 0)
        # Copied: what is written into ``data`` later on moves no point of CuPy's tree.
        self._points = scipy.spatial.KDTree(self.data.astype(np.float64), boxsize=box)

    def _require_doubles(self, x: Array) -> None:
        if self.copy_query_points and x.dtype != np.float64:
            raise ValueError("periodic KDTree is only available on float64")

    def _rows(self, x: Array) -> Array:
        """Return ``x`` as rows of points."""
        self._require_doubles(x)
        rows = x.reshape(-1, x.shape[-1]) if x.ndim > 2 else x
        _, n_dims = (1, rows.shape[0]) if rows.ndim == 1 else rows.shape
        if n_dims != self.m:
            raise ValueError(
                "The number of dimensions of the query points must match with the tree ones. "
                f"Expected {self.m}, got: {n_dims}"
            )
        return rows.reshape(-1, self.m)

    def query(
        self, x: Array, k: Any = 1, eps: float = 0.0, p: float = 2.0, distance_upper_bound: float = np.inf
    ) -> tuple[Array, Array]:
        """Return the distances of the ``k`` nearest points to each of ``x``, or of those ``k`` names, and who they are.

        Raises
        ------
        ValueError
            If ``k`` is neither a list nor a number, or ``x`` is of other dimensions than the tree.
        """
        rows = self._rows(x)
        if not isinstance(k, list):
            try:
                k = int(k)
            except TypeError:
                raise ValueError("k must be an integer or list of integers") from None
        # SciPy leaves out who is just as far away as the bound, CuPy does not.
        bound = np.nextafter(float(distance_upper_bound), np.inf)
        nearest = [*range(1, int(np.max(k)) + 1)]
        found = self._points.query(rows, nearest, float(eps), float(p), bound)
        wanted = [one - 1 for one in (k if isinstance(k, list) else nearest)]
        distances, nodes = np.take(found[0], wanted, 1), np.take(found[1], wanted, 1).astype(np.int64)
        shape = x.shape[:-1] if k == 1 and x.ndim > 1 else (*x.shape[:-1], distances.shape[1])
        return distances.reshape(shape), nodes.reshape(shape)

    def query_ball_point(
        self,
        x: Array,
        r: Any,
        p: float = 2.0,
        eps: float = 0,
        return_sorted: Any = None,
        return_length: bool = False,
    ) -> Any:
        """Return the indices of the points within ``r`` of each of ``x``, an array for each, or how many they are.

        CuPy looks at more of the tree for the sake of ``eps``, and gives neither more nor fewer points.
        """
        rows, is_sorted = self._rows(x), True if return_sorted is None else bool(return_sorted)
        found = self._points.query_ball_point(
            rows, float(r), float(p), return_sorted=is_sorted, return_length=return_length
        )
        return found.astype(np.int64) if return_length else [np.asarray(one, np.int64) for one in found]

    def query_ball_tree(self, other: KDTree, r: Any, p: float = 2.0, eps: float = 0.0) -> Any:
        """Return the indices of the points of ``other`` near each of this tree's, an array for each."""
        return other.query_ball_point(self.data, r, p, eps, True)

    def query_pairs(self, r: Any, p: float = 2.0, eps: float = 0, output_type: str = "ndarray") -> Array:
        """Return the pairs of points that are within ``r`` of each other, a row for each, in order."""
        if output_type == "set":
            message = (
                "output_type='set' is not supported by the GPU implementation of KDTree, resorting back to 'ndarray'."
            )
            warnings.warn(message, stacklevel=2)
        pairs: Array = self._points.query_pairs(float(r), float(p), output_type="ndarray").astype(np.int64)
        return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]

    def count_neighbors(
        self, other: KDTree, r: object, p: float = 2.0, weights: object = None, cumulative: bool = True
    ) -> Any:
        """Refuse, as CuPy's does."""
        raise NotImplementedError("count_neighbors is not available on CuPy")

    def sparse_distance_matrix(
        self, other: KDTree, max_distance: float, p: float = 2.0, output_type: str = "coo_matrix"
    ) -> Any:
        """Return the distances of these points to those of ``other``, zero where they are beyond ``max_distance``.

        Raises
        ------
        ValueError
            If ``output_type`` is neither "coo_matrix" nor "ndarray".
        """
        if output_type not in {"coo_matrix", "ndarray"}:
            raise ValueError("sparse_distance_matrix only supports 'coo_matrix' and 'ndarray' outputs")
        distances = distance_matrix(self.data, other.data, p)
        distances[distances > max_distance] = 0
        return like("coo", distances) if output_type == "coo_matrix" else distances


def _require_inside(data: Array, box: Array) -> None:
    is_periodic = box > 0
    if (data >= box)[:, is_periodic].any():
        raise ValueError("Some input data are greater than the size of the periodic box.")
    if (data < 0)[:, is_periodic].any():
        raise ValueError("Negative input data are outside of the periodic box.")


def _assembled(points: Array) -> tuple[Array, Array]:
    """Return the points as a left-balanced tree whose levels alternate between dimensions, and who they are."""
    tree, (length, dims) = points.copy(), points.shape
    index, tags = np.arange(length), np.zeros(length, np.int64)
    keys = np.empty((2, length), points.dtype)
    for level in range(int(np.log2(length)) + 1):
        keys[0] = tree[:, level % dims]
        cast_into(keys[1], tags)
        order = np.lexsort(keys)
        tree, tags, index = tree[order], tags[order], index[order]
        if 2 << level <= length:  # on the last level each has a tag of its own
            _descend(tags, level)
    return tree, index


def _descend(tags: Array, level: int) -> None:
    """Move what is not in its place above ``level`` yet to the left or right child of the node it is tagged with."""
    n, above = len(tags), (1 << level) - 1
    place, tag = np.arange(above, n), tags[above:]
    pivot = _segment_begin(tag, level, n) + _subtree_size(2 * tag + 1, n)
    tags[above:] = np.where(place < pivot, 2 * tag + 1, np.where(place > pivot, 2 * tag + 2, tag))


def _segment_begin(node: Array, level: int, n: int) -> Array:
    n_levels, settled = n.bit_length(), (1 << level) - 1
    remaining, before = n_levels - level, node - settled
    on_last = before << remaining - 1
    missing = on_last - np.minimum(n - ((1 << n_levels - 1) - 1), on_last)
    begin: Array = settled + before * ((1 << remaining) - 1) - missing
    return begin


def _subtree_size(node: Array, n: int) -> Array:
    level = np.frexp(node + 1.0)[1] - 1
    remaining = np.maximum(n.bit_length() - level, 1).astype(np.int64)
    widest = np.left_shift(1, remaining - 1)
    missing = np.clip((node + 2) * widest - 1 - n, 0, widest)
    return np.where(node < n, 2 * widest - 1 - missing, 0)


def _bounds(tree: Array) -> Array:
    """Return the least and the greatest coordinates among the leaves below each node."""
    n = len(tree)
    bounds = np.repeat(tree[..., None], 2, axis=2)
    for level in reversed(range(int(np.log2(n)) + 1)):
        nodes = np.arange((1 << level) - 1, min((2 << level) - 1, n))
        left = 2 * nodes + 1
        one, both = left == n - 1, left + 1 < n
        bounds[nodes[one]] = bounds[left[one]]
        children = bounds[left[both]], bounds[left[both] + 1]
        bounds[nodes[both], :, 0] = np.minimum(children[0][..., 0], children[1][..., 0])
        bounds[nodes[both], :, 1] = np.maximum(children[0][..., 1], children[1][..., 1])
    return bounds
