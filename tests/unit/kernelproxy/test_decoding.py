"""Numbers that came within a message."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.wire.dtypes import dtype_to_text
from gpu_backend.wire.errors import ProtocolError
from kernelproxy.calls.decoding import inline_scalar


@pytest.mark.parametrize("text", ["?", "i1", "<u8", ">i4", "<f2", "<f8", "<c16", "<M8[s]", "<i4, <f8", "(2,)<f8"])
def test_a_number_is_of_its_type_and_its_bytes(text: str) -> None:
    dtype = np.dtype(text)
    data = bytes(range(1, dtype.itemsize + 1)) if text != "?" else b"\1"
    (expected,) = np.frombuffer(data, dtype)
    found = inline_scalar(dtype_to_text(dtype), data)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("data", [b"", bytes(7), bytes(9), bytes(16)])
def test_what_is_no_number_of_its_type_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="no <f8 number"):
        inline_scalar("<f8", data)
