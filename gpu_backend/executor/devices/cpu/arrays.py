"""What the CPU device calls an array, and NumPy as its modules see it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy

#: A plain ``numpy.ndarray``.
Array: TypeAlias = Any

#: NumPy without its annotations: they describe array-likes at large, and refuse most of what code does that is
#: generic over shapes and dtypes.
np: Any = numpy
