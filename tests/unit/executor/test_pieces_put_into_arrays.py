"""Pieces that have come, put into arrays: whole ones, where they belong, or none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.copying import Copying
from gpu_backend.transport.shared_frames import BLOCK_BYTES
from gpu_backend.wire.channels import RECEIVE
from gpu_backend.wire.errors import NotCopied


def put(array: np.ndarray[Any, Any], offset: int, piece: bytes) -> None:
    """Receive a piece into an array of a device whose memory is the host's."""

    def write(into: np.ndarray[Any, Any], offset: int, data: memoryview) -> None:
        into.reshape(-1).view("u1")[offset : offset + data.nbytes] = data

    device: Any = SimpleNamespace(write=write)
    objects: Any = SimpleNamespace(array=lambda value: value)
    channels: Any = SimpleNamespace(failure=None, taken=lambda name, number: piece)
    Copying(device, objects, channels).table[RECEIVE](array, offset, "a channel", 1)


def test_what_is_larger_than_a_piece_comes_in_several() -> None:
    array = np.zeros(BLOCK_BYTES + 5, "u1")
    put(array, 0, b"x" * BLOCK_BYTES)
    put(array, BLOCK_BYTES, b"y" * 5)
    assert bytes(array[-7:]) == b"xxyyyyy"


@pytest.mark.parametrize("length", [0, 1, 7, 9, 80])
def test_a_piece_of_another_length_is_refused_and_nothing_put(length: int) -> None:
    array = np.zeros(3, "d")
    with pytest.raises(NotCopied, match=f"has {length} bytes, and the array that it was for takes 8 there"):
        put(array, 16, b"x" * length)
    assert not array.any()
