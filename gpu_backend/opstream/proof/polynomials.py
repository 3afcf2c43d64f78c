"""Rules of polynomials."""

from __future__ import annotations

import numpy as np

from gpu_backend.opstream.proof import reductions
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, new, ufunc


@rule("cupy.polyval")
def polyval(p: Array, x: object) -> Array:
    """As CuPy, for an array of coefficients."""
    if p.ndim == 0:
        raise refusal(TypeError, "p must be 1d ndarray or poly1d object")
    if p.ndim > 1:
        raise refusal(ValueError, "p must be 1d array")
    point = new((), np.asarray(x).dtype) if type(x) in (int, float, complex) else array(x)
    made = np.promote_types(p.dtype, point.dtype)
    if made.kind == "b" or p.size == 0:
        raise CannotProve("bools, or no coefficients")
    powers = ufunc("power", point.astype(made, copy=False)[..., None], new(p.shape, made))
    terms = ufunc("multiply", p.astype(made, copy=False)[::-1], powers)
    return reductions.sum_(terms, axis=-1, dtype=made)
