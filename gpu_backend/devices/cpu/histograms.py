"""Counting values: histograms and ``bincount``."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.table import define


def _check_weights(a: Array, weights: object) -> None:
    if not isinstance(a, np.ndarray):
        raise ValueError("a must be a cupy.ndarray")
    if weights is None:
        return
    if not isinstance(weights, np.ndarray):
        raise ValueError("weights must be a cupy.ndarray")
    if weights.shape != a.shape:
        raise ValueError("weights should have the same shape as a.")


@define("cupy.histogram")
def histogram(x: Array, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None) -> Any:
    if x.dtype.kind == "c":
        raise NotImplementedError("complex number is not supported")
    _check_weights(x, weights)
    counts, edges = np.histogram(x.astype(np.uint8) if x.dtype.kind == "b" else x, bins, range, density, weights)
    return counts, edges


def _check_bins(bins: Any) -> None:
    for place, part in enumerate(bins):
        if np.ndim(part) == 1 and not isinstance(part, np.ndarray):
            raise ValueError("array-like bins not supported")
        if np.ndim(part) > 1:
            raise ValueError(f"`bins[{place}]` must be a scalar or 1d array")


@define("cupy.histogramdd")
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> tuple[Array, list[Array]]:
    if isinstance(bins, (list, tuple)):
        _check_bins(bins)
    counts, edges = np.histogramdd(sample, bins, range, density, weights)
    return counts, list(edges)


@define("cupy.histogram2d")
def histogram2d(
    x: Array, y: Array, bins: Any = 10, range: Any = None, weights: Any = None, density: Any = None
) -> tuple[Array, Array, Array]:
    if isinstance(bins, (list, tuple)):
        _check_bins([np.asarray(part) if np.ndim(part) else part for part in bins])
    counts, first, second = np.histogram2d(x, y, bins, range, density, weights)
    return counts, first, second


@define("cupy.bincount")
def bincount(x: Array, weights: Any = None, minlength: Any = None) -> Array:
    if x.ndim > 1:
        raise ValueError("object too deep for desired array")
    if x.ndim < 1:
        raise ValueError("object of too small depth for desired array")
    if x.dtype.kind == "f":
        raise TypeError("x must be int array")
    if (x < 0).any():
        raise ValueError("The first argument of bincount must be non-negative")
    if weights is not None and x.shape != weights.shape:
        raise ValueError("The weights and list don't have the same length.")
    if minlength is not None and int(minlength) < 0:
        raise ValueError("minlength must be non-negative")
    return np.bincount(x, weights, 0 if minlength is None else int(minlength))
