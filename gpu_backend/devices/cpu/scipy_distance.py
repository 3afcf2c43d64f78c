"""``cupyx.scipy.spatial.distance``: what CuPy's code answers and refuses, and what cuVS, which it calls, computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.spatial.distance

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.conversion import asarray, converted
from gpu_backend.devices.cpu.dtypes import cast_into
from gpu_backend.devices.cpu.table import define

_DISTANCE = "cupyx.scipy.spatial.distance"
_FLOATS = ("float32", "float64")

#: All that CuPy knows by name. It hands the name on as it is, and cuVS knows only `_COMPUTED`.
_ALIASES = frozenset(
    """
    c canberra cb cblock ch cheb cheby chebychev chebyshev cityblock co correlation cos cosine e eu euclid euclidean h
    ha hamm hamming hellinger jensenshannon js kl_div kl_divergence kld m matching mi minkowski pnorm russellrao sqe
    sqeuclid sqeuclidean
    """.split()
)


@define(f"{_DISTANCE}.check_soft_dependencies")
def check_soft_dependencies() -> None:
    """Return: nothing more is needed on this device."""


def _hellinger(x: Array, others: Array) -> Array:
    made: Array = np.sqrt(np.maximum(1 - np.sqrt(others) @ np.sqrt(x), 0))
    return made


def _kl_divergence(x: Array, others: Array) -> Array:
    """Return half of what CuPy documents, as cuVS does, which also takes the logarithm of nothing for nothing."""
    made: Array = 0.5 * np.sum(x * (_log(x) - _log(others)), axis=-1)
    return made


def _jensenshannon(x: Array, others: Array) -> Array:
    """Return the distances of ``x`` as it is: SciPy takes the sum of a vector for one."""
    middle = _log((x + others) / 2)
    total = np.sum(x * (_log(x) - middle) + others * (_log(others) - middle), axis=-1)
    made: Array = np.sqrt(0.5 * total)
    return made


def _log(x: Array) -> Array:
    made: Array = np.log(np.where(x == 0, 1, x))
    return made


def _russellrao(x: Array, others: Array) -> Array:
    """Return the distances of numbers: SciPy asks of each only whether it is zero."""
    made: Array = (x.size - others @ x) / x.size
    return made


#: What cuVS computes otherwise than SciPy: distances of one point to others.
_OWN: dict[str, Callable[[Array, Array], Array]] = {
    "hellinger": _hellinger,
    "jensenshannon": _jensenshannon,
    "kl_divergence": _kl_divergence,
    "russellrao": _russellrao,
}
_SCIPYS = "canberra chebyshev cityblock correlation cosine euclidean hamming sqeuclidean".split()
_COMPUTED = frozenset([*_OWN, *_SCIPYS, "minkowski"])


def _pairwise(x: Array, y: Array, out: Array, metric: str, p: float = 2.0) -> Array:
    """Return ``out`` with the distances of each row of ``x`` to each of ``y``: stands for cuVS's function."""
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"Inputs must have same number of columns. a={x.shape[1]}, b={y.shape[1]}")
    if metric not in _COMPUTED:
        raise ValueError(f"metric {metric} is not supported")
    if x.dtype != y.dtype:
        raise ValueError("Inputs must have the same dtypes")
    if x.dtype.name not in _FLOATS:
        raise ValueError("Inputs to cuvsPairwiseDistance must all be floating point tensors of 32 or 64 bits")
    if not all(one.flags.forc for one in (x, y, out)):
        raise ValueError("Inputs to cuvsPairwiseDistance must be contiguous (non-strided)")
    if out.dtype != x.dtype:
        raise ValueError("Inputs to cuvsPairwiseDistance must all have the same dtype")
    if out.shape != (len(x), len(y)):
        raise ValueError(f"the distances of {len(x)} and {len(y)} points do not fit into an array of shape {out.shape}")
    cast_into(out, _computed(x.astype(np.float64), y.astype(np.float64), metric, p))
    return out


def _computed(x: Array, y: Array, metric: str, p: float) -> Array:
    made: Array
    if metric in _OWN:
        made = np.empty((len(x), len(y)))
        for row, one in zip(made, x, strict=True):
            row[...] = _OWN[metric](one, y)
        return made
    options = {"p": float(np.float32(p))} if metric == "minkowski" else {}  # cuVS takes it in single precision
    made = scipy.spatial.distance.cdist(x, y, metric, **options)
    return made


def _order(array: Array) -> Literal["C", "F"]:
    return "F" if array.flags.fnc else "C"


def _between(u: Array, v: Array, metric: str, p: float = 2.0) -> Array:
    """Return the distance of two vectors, as matrices of one row: CuPy documents plain ones, and cuVS asks columns."""
    u_order, v_order = _order(u), _order(v)
    if u_order != v_order:
        raise ValueError(f"u and v must have the same layout (u.order={u_order}, v.order={v_order}")
    distance: Array = _pairwise(u, v, np.empty((1, 1), u.dtype), metric, p)[0, 0]
    return distance


def _define_metric(metric: str) -> None:
    def distance(u: Array, v: Array) -> Array:
        return _between(u, v, metric)

    distance.__name__ = distance.__qualname__ = metric
    define(f"{_DISTANCE}.{metric}")(distance)


for _metric in sorted(_COMPUTED - {"minkowski", "kl_divergence"}):
    _define_metric(_metric)


@define(f"{_DISTANCE}.minkowski")
def minkowski(u: Array, v: Array, p: float) -> Array:
    return _between(u, v, "minkowski", p)


@define(f"{_DISTANCE}.kl_divergence")
def kl_divergence(u: object, v: object) -> Array:
    return _between(asarray(u), asarray(v), "kl_divergence")


def _in_floats(array: Array) -> Array:
    return array if array.dtype.name in _FLOATS else converted(array, np.float32)


@define(f"{_DISTANCE}.cdist")
def cdist(XA: Array, XB: Array, metric: object = "euclidean", out: Array | None = None, **kwargs: Any) -> Array:
    XA, XB = _in_floats(XA), _in_floats(XB)
    order, other = _order(XA), _order(XB)
    if order != other:
        raise ValueError(f"XA and XB must have the same layout (XA.order={order}, XB.order={other}")
    if XA.ndim != 2:
        raise ValueError("XA must be a 2-dimensional array.")
    if XB.ndim != 2:
        raise ValueError("XB must be a 2-dimensional array.")
    if XA.shape[1] != XB.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    if out is not None and out.dtype.name not in _FLOATS:
        if _order(out) != order:
            raise ValueError(f"out must have same layout as input (out.order={_order(out)})")
        out = converted(out, np.float32)  # a new array, which is what CuPy fills and returns
    if not isinstance(metric, str):
        raise TypeError("2nd argument metric must be a string identifier")
    if metric.lower() not in _ALIASES:
        raise ValueError(f"Unknown Distance Metric: {metric.lower()}")
    if out is None:
        out = np.empty((len(XA), len(XB)), XA.dtype, order)
    elif not (out.flags.f_contiguous if order == "F" else out.flags.c_contiguous):
        raise ValueError("Inputs to cuvsPairwiseDistance must all have the same memory layout")
    return _pairwise(XA, XB, out, metric, kwargs.get("p", 2.0))


@define(f"{_DISTANCE}.pdist")
def pdist(X: Array, metric: object = "euclidean", *, out: Array | None = None, **kwargs: Any) -> Array:
    """Return the distances above the diagonal, row by row; ``out`` takes the whole matrix."""
    matrix = cdist(X, X, metric, out, **kwargs)
    return matrix[np.triu_indices_from(matrix, 1)]


@define("cupyx.scipy.spatial.distance_matrix", f"{_DISTANCE}.distance_matrix")
def distance_matrix(x: object, y: object, p: float = 2.0) -> Array:
    one, other = asarray(x), asarray(y)
    _, k = one.shape
    _, kk = other.shape
    if k != kk:
        raise ValueError(f"x contains {k}-dimensional vectors but y contains {kk}-dimensional vectors")
    return cdist(one, other, "minkowski", p=p)
