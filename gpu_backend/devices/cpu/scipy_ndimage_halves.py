"""``cupyx.scipy.ndimage`` of half floats, which SciPy refuses: computed in single precision, given back as halves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.opstream.surface import Function, signature_of

_HALF = np.dtype(np.float16)


def with_halves(name: str, entry: Function, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, which ``entry`` describes, for half floats too."""
    signature = signature_of(entry)
    assert signature is not None
    # Filters of spectra give doubles for whatever is neither single nor complex.
    wide = np.float64 if name.startswith("fourier_") else np.float32

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        output: Any = given.get("output")
        if not (any(map(_is_half, given.values())) or _is_half_dtype(output)):
            return function(*args, **kwargs)
        if _is_half(output) or _is_half_dtype(output):
            del given["output"]
        result = function(**{key: value.astype(wide) if _is_half(value) else value for key, value in given.items()})
        if _is_half(output):
            output[...] = result
            return output
        is_as_input = output is None and _is_half(given["input"]) and getattr(result, "dtype", None) == np.float32
        return result.astype(_HALF) if is_as_input or _is_half_dtype(output) else result

    return call


def _is_half(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == _HALF


def _is_half_dtype(value: Any) -> bool:
    if value is None or isinstance(value, np.ndarray):
        return False
    try:
        return bool(np.dtype(value) == _HALF)
    except TypeError:
        return False
