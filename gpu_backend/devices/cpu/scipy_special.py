"""``cupyx.scipy.special`` on SciPy's, and the three names that SciPy has dropped."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.scipy_functions import define_scipy, special_ufunc
from gpu_backend.devices.cpu.table import define, define_value
from gpu_backend.opstream.surface import Ufunc, load


def _sph_harm(m: Array, n: Array, theta: Array, phi: Array) -> Any:
    return scipy.special.sph_harm_y(n.astype(int), m.astype(int), phi, theta)


def _rsqrt(x: Array) -> Any:
    return 1 / np.sqrt(x)


def _deprecated(compute: Callable[..., object], instead: str) -> Callable[..., Any]:
    """Return a function that SciPy has dropped, with CuPy's warning."""

    def call(*args: object, out: Array | None = None) -> Any:
        warnings.warn(f"Use cupyx.scipy.special.{instead} instead.", DeprecationWarning, stacklevel=2)
        result = np.asarray(compute(*args))
        if out is None:
            return result
        out[...] = result
        return out

    return call


define_scipy("cupyx.scipy.special", scipy.special)
define("cupyx.scipy.special.btdtr")(_deprecated(scipy.special.betainc, "betainc"))
define("cupyx.scipy.special.btdtri")(_deprecated(scipy.special.betaincinv, "betaincinv"))
define("cupyx.scipy.special.sph_harm")(_deprecated(_sph_harm, "sph_harm_y"))
_entry = load().resolved("cupyx.rsqrt")
assert isinstance(_entry, Ufunc)
define_value(special_ufunc(_entry, _rsqrt), "cupyx.rsqrt")
