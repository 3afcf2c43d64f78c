"""``cupyx.scipy.special`` on SciPy's, and the three names that SciPy has dropped."""

from __future__ import annotations

from typing import Any

import scipy.special

from gpu_backend.executor.devices.cpu.arrays import Array, np
from gpu_backend.executor.devices.cpu.scipy_functions import define_scipy, special_ufunc
from gpu_backend.executor.devices.cpu.table import define_value
from gpu_backend.surface import Ufunc, load


def _sph_harm(m: Array, n: Array, theta: Array, phi: Array) -> Any:
    return scipy.special.sph_harm_y(n.astype(int), m.astype(int), phi, theta)


def _rsqrt(x: Array) -> Any:
    return 1 / np.sqrt(x)


#: Names that SciPy has no more, or never had.
_OWN = {
    "cupyx.scipy.special.btdtr": scipy.special.betainc,
    "cupyx.scipy.special.btdtri": scipy.special.betaincinv,
    "cupyx.scipy.special.sph_harm": _sph_harm,
    "cupyx.rsqrt": _rsqrt,
}

define_scipy("cupyx.scipy.special", scipy.special)
for _qualname, _compute in _OWN.items():
    _entry = load().resolved(_qualname)
    assert isinstance(_entry, Ufunc)
    define_value(special_ufunc(_entry, _compute), _qualname)
