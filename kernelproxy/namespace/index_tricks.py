"""``r_``, ``c_``, ``mgrid``, ``ogrid``, ``s_``, ``index_exp``: indexed instead of called; and ``diag_indices``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import ArrayLike
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.namespace.creation import asarray, is_remote

#: What stands between the brackets: a slice may hold arrays of the device.
GridKey: TypeAlias = "slice | ArrayLike | Sequence[GridKey]"


class _Indexed(Protocol):
    """An object of NumPy that is indexed instead of called."""

    def __getitem__(self, key: Any) -> Any: ...


s_ = np.s_
index_exp = np.index_exp


def diag_indices(n: int, ndim: int = 2) -> Any:
    """Return the indices of the main diagonal: one array, as often as there are axes."""
    return (dispatch.call("cupy.arange", (n,), {}),) * ndim


class Grid:
    """``mgrid`` and ``ogrid``: NumPy makes the grid, the device holds it."""

    def __init__(self, numpy_grid: _Indexed) -> None:
        self._numpy_grid = numpy_grid

    def __getitem__(self, key: GridKey) -> Any:
        made = self._numpy_grid[_on_host(key)]
        return list(map(dispatch.upload, made)) if isinstance(made, (tuple, list)) else dispatch.upload(made)

    def __len__(self) -> int:
        return 0


def _on_host(key: GridKey) -> Any:
    if isinstance(key, tuple):
        return tuple(_on_host(part) for part in key)
    if isinstance(key, slice):
        parts = (key.start, key.stop, key.step)
        return slice(*(part.get() if isinstance(part, ArrayCore) else part for part in parts))
    return key


class Concatenator:
    """``r_`` and ``c_``."""

    def __init__(self, numpy_concatenator: _Indexed, axis: int, ndmin: int, trans1d: int) -> None:
        self._numpy_concatenator = numpy_concatenator
        self._axis, self._ndmin, self._trans1d = axis, ndmin, trans1d

    def __getitem__(self, key: GridKey) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, (slice, str)) for part in parts):
            raise NotImplementedError("CuPy joins arrays and numbers only: no slices, and no directives")
        if not any(map(is_remote, parts)):
            return dispatch.upload(np.asarray(self._numpy_concatenator[key]))
        axis, ndmin, trans1d = self._axis, self._ndmin, self._trans1d
        arrays = [self._as_array(part, ndmin, trans1d) for part in parts]
        scalars = {place: part for place, part in enumerate(parts) if type(part) in np.ScalarType}
        others = [one.dtype for place, one in enumerate(arrays) if place not in scalars]
        dtype = np.result_type(*others, *scalars.values())  # a Python number takes the precision of the arrays
        arrays = [one.astype(dtype) if place in scalars else one for place, one in enumerate(arrays)]
        return dispatch.call("cupy.concatenate", (arrays,), {"axis": axis})

    def _as_array(self, part: ArrayLike, ndmin: int, trans1d: int) -> Any:
        made = asarray(part) if is_remote(part) else dispatch.upload(np.asarray(np.r_[part]))
        missing = ndmin - made.ndim
        if missing <= 0:
            return made
        # As in NumPy: the old axes start at place ``trans1d`` of the new ones; -1 puts them last.
        first = missing + trans1d + 1 if trans1d < 0 else trans1d
        return made.reshape((1,) * first + made.shape + (1,) * (missing - first))

    def __len__(self) -> int:
        return 0


mgrid = Grid(np.mgrid)
ogrid = Grid(np.ogrid)
r_ = Concatenator(np.r_, 0, 1, -1)
c_ = Concatenator(np.c_, -1, 2, 0)
