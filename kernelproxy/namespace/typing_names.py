"""What ``cupy.typing`` has of its own; the rest of it is NumPy's."""

from __future__ import annotations

from types import GenericAlias
from typing import Any, TypeVar

import numpy as np

from kernelproxy.array.remote_array import ndarray

_ScalarType_co = TypeVar("_ScalarType_co", bound=np.generic, covariant=True)
#: An array of any shape, to be subscribed with the type of its elements: ``NDArray[cupy.float32]``.
NDArray = GenericAlias(ndarray, (Any, GenericAlias(np.dtype, (_ScalarType_co,))))
