"""A handle tells on which device it is, and the first device's handles are plain numbers."""

from __future__ import annotations

import msgspec
import pytest

from gpu_backend.opstream.devices import MOST_DEVICES, OF_DEVICE, default_stream, device_of
from gpu_backend.wire.messages import Op


def test_the_first_device_has_the_plain_numbers() -> None:
    assert default_stream(0) == 0
    assert {device_of(number) for number in (0, 1, 1 << 20, (1 << 56) - 1)} == {0}
    assert {number & OF_DEVICE for number in (0, 1, 1 << 20, (1 << 56) - 1)} == {0}


@pytest.mark.parametrize("device", range(MOST_DEVICES))
def test_a_handle_tells_its_device_and_travels(device: int) -> None:
    stream = default_stream(device)
    last = (1 << 56) - 1 | stream & OF_DEVICE
    assert device_of(stream) == device_of(last) == device
    assert last & OF_DEVICE == stream
    op = Op("cupy.add", last, (), stream=stream)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(op), type=Op) == op


def test_an_op_of_a_session_with_one_device_is_as_long_as_ever() -> None:
    assert len(msgspec.msgpack.encode(Op("a", 7, (), stream=default_stream(0)))) == len(
        msgspec.msgpack.encode(Op("a", 7, ()))
    )
