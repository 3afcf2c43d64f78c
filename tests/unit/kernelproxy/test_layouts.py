"""What a layout says of its dtype."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.opstream.layout import Layout, contiguous


@pytest.mark.parametrize("char", "?bhilqBHILQefdFD")
def test_a_plain_dtype_is_numpys_own_object(char: str) -> None:
    own = np.dtype(char)
    copy = own.newbyteorder("=")
    Layout._interned.clear()
    made = contiguous((3,), copy)
    assert made.dtype is own
    assert contiguous((3,), own) is made


def test_other_dtypes_stay_as_they_are() -> None:
    for dtype in (np.dtype([("a", "i4")]), np.dtype("V3"), np.dtype(">f4")):
        assert contiguous((2,), dtype).dtype is dtype
