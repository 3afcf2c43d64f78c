"""What fills an array by a kernel, and what CuPy alone fills it with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.program.operands import fills_otherwise
from gpu_backend.wire.values import Scalar


def _scalar(value: Any, dtype: str) -> Scalar:
    return Scalar(np.dtype(dtype).str, np.dtype(dtype).type(value).tobytes())


@pytest.mark.parametrize(
    ("value", "own", "into", "is_so"),
    [
        (0.1, "f8", "f4", False),
        (1e300, "f8", "f4", False),
        (0.5, "f2", "f8", False),
        (-0.0, "f8", "f4", True),  # it has no sign in most arrays that CuPy fills
        (-1e-60, "f8", "f4", True),  # nor has what becomes one
        (float("nan"), "f8", "f4", True),
        (0.1, "f8", "f2", True),  # a kernel goes by way of float32
        (-5.0, "f8", "u4", True),
        (300, "i8", "i1", True),
        (2.0, "f8", "c16", True),
        (0.1, "f8", "f8", False),
        (-0.0, "f8", "f8", True),
    ],
)
def test_a_number_of_another_type_is_read_by_a_kernel_where_that_is_the_same(
    value: float, own: str, into: str, is_so: bool
) -> None:
    assert fills_otherwise(_scalar(value, own), np.dtype(into)) is is_so
