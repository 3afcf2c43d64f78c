"""What the CPU device calls an array."""

from __future__ import annotations

from typing import Any, TypeAlias

#: A plain ``numpy.ndarray``. NumPy's annotations give ``Any`` for most of what is done with arrays, so we say it here
#: once instead of casting at every return.
Array: TypeAlias = Any
