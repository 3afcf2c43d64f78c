"""What the CPU device calls an array, and NumPy as its modules see it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy

#: A plain ``numpy.ndarray``.
Array: TypeAlias = Any

#: A ``numpy.dtype``.
DType: TypeAlias = Any

#: NumPy without its annotations: they describe array-likes at large, and refuse most of what code does that is
#: generic over shapes and dtypes.
np: Any = numpy


def in_c_order(array: Array) -> Array:
    """Return ``array`` itself or a copy in C order; 0-d stays 0-d, which it does not in NumPy's own function."""
    return np.asarray(array, order="C")
