"""``cupyx.scipy.stats`` on SciPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special
import scipy.stats

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.scipy_functions import define_scipy
from gpu_backend.devices.cpu.table import define

define_scipy("cupyx.scipy.stats", scipy.stats, without=("entropy",))


@define("cupyx.scipy.stats.entropy")
def entropy(pk: Array, qk: Array | None = None, base: Any = None, axis: int = 0) -> Array:
    if pk.dtype.kind == "c" or (qk is not None and qk.dtype.kind == "c"):
        raise TypeError("complex dtype not supported")
    chosen = np.result_type(pk, np.float32) if pk.dtype.kind == "f" else np.dtype(float)
    first = _normalized(pk.astype(chosen), axis)
    if qk is None:
        parts = scipy.special.entr(first)
    elif qk.shape != pk.shape:
        raise ValueError("qk and pk must have same shape.")
    else:
        parts = scipy.special.rel_entr(first, _normalized(qk.astype(chosen), axis))
    total = np.asarray(np.sum(parts, axis=axis))
    return total if base is None else total / total.dtype.type(math.log(base))


def _normalized(weights: Array, axis: int) -> Array:
    made: Array = weights / weights.sum(axis=axis, keepdims=True)
    return made
