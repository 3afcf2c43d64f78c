"""Numbers that came within a message."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.wire.dtypes import dtype_to_text
from gpu_backend.wire.errors import ProtocolError
from kernelproxy.calls.decoding import inline_number, inline_scalar


@pytest.mark.parametrize("text", ["?", "i1", "<u8", ">i4", "<f2", "<f8", "<c16", "<M8[s]", "<i4, <f8", "(2,)<f8"])
def test_a_number_is_of_its_type_and_its_bytes(text: str) -> None:
    dtype = np.dtype(text)
    data = bytes(range(1, dtype.itemsize + 1)) if text != "?" else b"\1"
    (expected,) = np.frombuffer(data, dtype)
    found = inline_scalar(dtype_to_text(dtype), data)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", ">i4", ">f8"]


@given(st.sampled_from(NUMBERS), st.binary(min_size=16, max_size=16))
def test_a_python_number_is_what_numpy_makes_of_it(text: str, data: bytes) -> None:
    dtype = np.dtype(text)
    data = data[: dtype.itemsize]
    expected = np.frombuffer(data, dtype)[0].item()
    found = inline_number(dtype_to_text(dtype), data)
    assert type(found) is type(expected)
    parts = [(one.real, one.imag) if isinstance(one, complex) else (one,) for one in (found, expected)]
    for mine, theirs in zip(*parts, strict=True):
        is_same = struct.pack("d", mine) == struct.pack("d", theirs) if isinstance(mine, float) else mine == theirs
        assert is_same or (mine != mine and theirs != theirs)


@pytest.mark.parametrize("read", [inline_scalar, inline_number])
@pytest.mark.parametrize("data", [b"", bytes(7), bytes(9), bytes(16)])
def test_what_is_no_number_of_its_type_is_refused(read: Callable[[str, bytes], object], data: bytes) -> None:
    with pytest.raises(ProtocolError, match="no <f8 number"):
        read("<f8", data)
