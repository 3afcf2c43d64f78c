"""A boundary mode for each axis in filters with a window of several: CuPy takes them, SciPy only one for all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.opstream.surface import Function, signature_of

#: The filters whose window SciPy does not take apart by axes.
WINDOWED = ("convolve", "correlate", "median_filter", "percentile_filter", "rank_filter")

_PADDED_AS: dict[str, Literal["symmetric", "reflect", "edge", "wrap", "constant"]] = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip


def with_modes_per_axis(entry: Function, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` so that its ``mode`` may be one for each axis: the image is padded by them beforehand."""
    signature = signature_of(entry)
    assert signature is not None

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given, mode = bound.arguments, bound.arguments["mode"]
        if isinstance(mode, str):
            return function(*args, **kwargs)
        image: Array = given["input"]
        axes = _axes(given.get("axes"), image.ndim)
        modes = list(mode)
        if len(modes) != len(axes):
            raise RuntimeError("mode must have length equal to the number of axes")
        edges = zip(axes, zip(modes, _widths(given, len(axes)), strict=True), strict=True)
        padded, inside = _padded(image, dict(edges), given["cval"])
        wanted = given["output"]
        given.update(input=padded, mode="nearest", output=image.dtype if wanted is None else _dtype_of(wanted))
        found = function(*bound.args, **bound.kwargs)[inside].copy()
        if not isinstance(wanted, np.ndarray):
            return found
        wanted[...] = found
        return wanted

    return call


def _axes(axes: Any, ndim: int) -> list[int]:
    if axes is None:
        return list(range(ndim))
    return [int(axis) % ndim for axis in np.atleast_1d(axes)]


def _widths(given: dict[str, Any], count: int) -> list[int]:
    window = given["weights"] if "weights" in given else given["footprint"]
    if window is not None:
        return list(np.shape(window))
    return [int(size) for size in np.broadcast_to(given["size"], count)]


def _padded(image: Array, edges: dict[int, tuple[str, int]], cval: Any) -> tuple[Array, tuple[slice, ...]]:
    inside = [slice(None)] * image.ndim
    if any(_PADDED_AS.get(mode) == "constant" for mode, _ in edges.values()):
        image = image.astype(np.result_type(image.dtype, np.min_scalar_type(cval)), copy=False)
    for axis, (mode, width) in edges.items():
        if mode not in _PADDED_AS:
            raise RuntimeError(f"boundary mode not supported (actual: {mode})")
        by = [(0, 0)] * image.ndim
        by[axis] = (width, width)
        options: dict[str, Any] = {"constant_values": cval} if _PADDED_AS[mode] == "constant" else {}
        inside[axis] = slice(width, width + image.shape[axis])
        image = np.pad(image, by, _PADDED_AS[mode], **options)
    return image, tuple(inside)


def _dtype_of(output: object) -> Any:
    return output.dtype if isinstance(output, np.ndarray) else output
