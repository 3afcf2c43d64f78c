"""Objects that make arrays by being indexed: ``r_``, ``c_``, ``mgrid``, ``ogrid``, ``s_``."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.call import guarded
from gpu_backend.devices.cpu.table import define_value


class Grid:
    """Indexed by slices, gives their grid: ``mgrid`` (dense) or ``ogrid`` (``sparse``)."""

    def __init__(self, sparse: bool) -> None:
        self._make = guarded(_open_grid if sparse else _dense_grid)

    def __getitem__(self, key: object) -> Any:
        return self._make(key)


def _dense_grid(key: Any) -> Array:
    return np.mgrid[key]


def _open_grid(key: Any) -> Any:
    grid: Any = np.ogrid[key]  # an array for one slice, a tuple for several
    return list(grid) if isinstance(grid, tuple) else grid


class Concatenator:
    """Indexed by slices, scalars and arrays, joins them along an axis: ``r_`` and ``c_``."""

    def __init__(self, name: str) -> None:
        self._joiner = getattr(np, name)
        self._join = guarded(lambda key: np.asarray(self._joiner[key]))

    def __getitem__(self, key: object) -> Array:
        if isinstance(key, str) or (isinstance(key, tuple) and any(isinstance(item, str) for item in key)):
            raise NotImplementedError("r_ and c_ do not take strings")
        items = key if isinstance(key, tuple) else (key,)
        if any(isinstance(item, slice) and isinstance(item.step, complex) for item in items):
            raise NotImplementedError("r_ and c_ do not take complex steps")
        made: Array = self._join(key)
        return made

    def __len__(self) -> int:
        return 0


for _name, _sparse in (("mgrid", False), ("ogrid", True)):
    define_value(Grid(_sparse), f"cupy.{_name}")
for _name in ("r_", "c_"):
    define_value(Concatenator(_name), f"cupy.{_name}")
define_value(np.s_, "cupy.s_")
define_value(np.index_exp, "cupy.index_exp")
