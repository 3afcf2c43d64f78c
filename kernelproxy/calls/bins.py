"""``bincount``: how many bins there are depends on values, so it is waited for, but only where nobody knows it yet."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_backend.opstream.layout import Layout, contiguous
from kernelproxy.calls import dispatch
from kernelproxy.calls.array_core import ArrayCore, disown
from kernelproxy.mirror import bins, counts

__all__ = ["NAME", "bincount"]

NAME = "cupy.bincount"
#: CuPy counts bins by 32-bit numbers.
_MOST_BINS = (1 << 31) - 1
_COUNTS, _SUMS = np.dtype(np.int64), np.dtype(np.float64)


class _Given(NamedTuple):
    """What surely is counted, unless one of the numbers is negative."""

    numbers: ArrayCore
    made: np.dtype[Any]
    minlength: int


def bincount(args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Call ``cupy.bincount``; see `dispatch.call`."""
    __tracebackhide__ = True
    given = _given(*args, **kwargs) if len(args) <= len(_NAMES) and kwargs.keys() <= set(_NAMES[len(args) :]) else None
    if given is None:
        return dispatch.call(NAME, args, kwargs)
    numbers, pipeline = given.numbers, given.numbers._client.pipeline
    with pipeline.recording:
        number = pipeline.open_batch.end
        length = bins.length(pipeline.mirror, numbers._ref, given.minlength)
    if length is not None and length <= _MOST_BINS:
        counted = dispatch.run_proved(NAME, args, kwargs, contiguous((length,), given.made))
        if pipeline.open_batch.end == number + 1:
            return counted
        disown(counted)  # another thread came between, and may have written them
    with pipeline.recording:
        entry = counts.expect(pipeline.mirror, numbers._ref)
    counted = dispatch.call(NAME, args, kwargs)
    if entry is not None:
        with pipeline.recording:
            bins.note(pipeline.mirror, numbers._ref, entry, counted.size, given.minlength)
    return counted


_NAMES = ("x", "weights", "minlength")


def _given(x: object = None, weights: object = None, minlength: object = None) -> _Given | None:
    layout = _layout(x)
    if layout is None or layout.ndim != 1 or not layout.size or layout.dtype.kind not in "iu":
        return None
    assert isinstance(x, ArrayCore)
    if minlength is not None and (type(minlength) is not int or not 0 <= minlength <= _MOST_BINS):
        return None
    if weights is None:
        return _Given(x, _COUNTS, minlength or 0)
    beside = _layout(weights)
    if beside is None or beside.shape != layout.shape or beside.dtype.kind not in "biuf":
        return None
    assert isinstance(weights, ArrayCore)
    return _Given(x, _SUMS, minlength or 0) if weights._client is x._client else None


def _layout(array: object) -> Layout | None:
    """Return how ``array`` lies, if it is one whose shape is known."""
    layout = array._layout if isinstance(array, ArrayCore) else None
    return layout if type(layout) is Layout else None
