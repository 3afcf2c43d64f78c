"""What CuPy takes for an elementwise op on operands of certain kinds: which ufunc, and which of its routines."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupy._core._scalar import CScalar

from gpu_backend.devices.segments import Kind
from gpu_backend.opstream.layout import DType

#: Numbers of Python's by type, for CuPy to tell in which type an op computes with one.
_SAMPLES = {bool: True, int: 1, float: 1.0, complex: 1j}


class CudaUfuncs:
    """CuPy's ufuncs by their public names, and ``where``."""

    def __init__(self) -> None:
        self._samples: dict[DType, Any] = {}

    def chosen(self, name: str, kinds: tuple[Kind, ...]) -> tuple[Any, Any] | None:
        """Return the ufunc and the routine for operands of these ``kinds``; None if there is none of one result."""
        ufunc = self._function(name, kinds)
        if ufunc is None or ufunc.nin != len(kinds) or ufunc.nout != 1:
            return None
        operands = [CScalar(_SAMPLES[kind]) if isinstance(kind, type) else self._sample(kind) for kind in kinds]
        try:
            routine = ufunc._ops.guess_routine(ufunc.name, {}, operands, None, ufunc._out_ops)
        except TypeError:  # CuPy says why
            return None
        is_plain = all(isinstance(one, np.dtype) for one in routine.in_types + routine.out_types)
        return (ufunc, routine) if is_plain else None

    def _function(self, name: str, kinds: tuple[Kind, ...]) -> Any:
        if name == "cupy.where":
            chosen = kinds[0]
            return cupy._sorting.search._where_ufunc if not isinstance(chosen, type) and chosen.kind == "b" else None
        found = getattr(cupy, name.removeprefix("cupy."), None)
        return found if isinstance(found, cupy.ufunc) else None

    def _sample(self, dtype: DType) -> cupy.ndarray:
        sample = self._samples.get(dtype)
        if sample is None:
            sample = self._samples[dtype] = cupy.ndarray((0,), dtype)
        return sample
