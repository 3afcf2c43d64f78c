"""What CuPy refuses to find beyond the edge of an image: values that pixels cannot hold, and nan in an order."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.opstream.surface import Function, signature_of

#: Filters that put the pixels of a window in order.
_ORDERING = frozenset(
    {
        "black_tophat", "grey_closing", "grey_dilation", "grey_erosion", "grey_opening", "maximum_filter",
        "median_filter", "minimum_filter", "morphological_gradient", "morphological_laplace", "percentile_filter",
        "rank_filter", "white_tophat",
    }
)  # fmt: skip
#: They take any value: the first two call a function of the user's, the others have no such check in CuPy.
_UNCHECKED = frozenset({"generic_filter", "generic_filter1d", "maximum_filter1d", "minimum_filter1d"})


def has_edge(name: str, entry: object) -> bool:
    """Tell whether CuPy looks at the ``cval`` of the function ``name`` before it computes."""
    return isinstance(entry, Function) and "cval=" in entry.signature and name not in _UNCHECKED


def with_checked_edge(name: str, entry: Function, function: Callable[..., object]) -> Callable[..., Any]:
    """Return ``function`` so that it refuses the ``cval`` that CuPy's refuses."""
    signature = signature_of(entry)
    assert signature is not None
    check = _refuse_nan if name in _ORDERING else _refuse_what_integers_cannot_hold

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        bound = signature.bind(*args, **kwargs)
        if "cval" in bound.arguments:
            check(bound)
        return function(*args, **kwargs)

    return call


def _refuse_nan(bound: inspect.BoundArguments) -> None:
    if bound.arguments["cval"] is np.nan:  # CuPy asks so too
        raise NotImplementedError("NaN cval is unsupported")


def _refuse_what_integers_cannot_hold(bound: inspect.BoundArguments) -> None:
    bound.apply_defaults()
    given = bound.arguments
    modes = [given["mode"]] if isinstance(given["mode"], str) else list(given["mode"])
    if "constant" not in modes or np.isfinite(given["cval"]):
        return
    output: Any = given["input"] if given["output"] is None else given["output"]
    dtype = output.dtype if isinstance(output, np.ndarray) else np.dtype(output)
    if dtype.kind in "iu":
        raise NotImplementedError("Non-finite cval is not supported for outputs with integer dtype.")
