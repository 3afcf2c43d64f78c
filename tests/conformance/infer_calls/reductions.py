"""Calls of reductions and scans."""

from __future__ import annotations

from typing import Any

from tests.conformance.infer_calls.draw import Draw, template


def reduction_arguments(draw: Draw, names: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return an array and the keywords of a reduction, of those in ``names``."""
    a = draw.array()
    kwargs: dict[str, Any] = {}
    if draw.chance(0.8):
        kwargs["axis"] = draw.axes(a)
    if "dtype" in names and draw.chance(0.25):
        kwargs["dtype"] = draw.dtype()
    if "keepdims" in names and draw.chance(0.3):
        kwargs["keepdims"] = True
    if "ddof" in names and draw.chance(0.2):
        kwargs["ddof"] = 1
    return (a,), kwargs


@template("cupy.sum", "cupy.ndarray.sum", "cupy.prod", "cupy.ndarray.mean", "cupy.mean", "cupy.nansum", "cupy.nanprod",
          "cupy.nanmean", "cupy.argmax", "cupy.ndarray.argmin", "cupy.nanargmax")  # fmt: skip
def _sums(draw: Draw) -> Any:
    return reduction_arguments(draw, "dtype keepdims")


@template("cupy.max", "cupy.ndarray.min", "cupy.amin", "cupy.ptp", "cupy.all", "cupy.ndarray.any", "cupy.ndarray.ptp")
def _extremes(draw: Draw) -> Any:
    return reduction_arguments(draw, "keepdims")


@template("cupy.nanmax", "cupy.nanmin")
def _without_nan(draw: Draw) -> Any:
    a = draw.array(dtypes="?bBhHiIlLd")
    return (a,), {"axis": draw.axes(a)} if draw.chance(0.6) else {}


@template("cupy.var", "cupy.ndarray.std", "cupy.std", "cupy.nanvar", "cupy.nanstd")
def _spreads(draw: Draw) -> Any:
    return reduction_arguments(draw, "dtype keepdims ddof")


@template("cupy.cumsum", "cupy.ndarray.cumprod", "cupy.nancumsum", "cupy.cumulative_sum")
def _scans(draw: Draw) -> Any:
    a = draw.array()
    kwargs: dict[str, Any] = {} if draw.chance(0.3) else {"axis": draw.axis(a)}
    if draw.chance(0.3):
        kwargs["dtype"] = draw.dtype()
    return (a,), kwargs


@template("cupy.count_nonzero", "cupy.median", "cupy.nanmedian", "cupy.average")
def _counts(draw: Draw) -> Any:
    return reduction_arguments(draw, "")
