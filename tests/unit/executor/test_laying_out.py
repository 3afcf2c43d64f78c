"""Results are laid out as the notebook proved, gaps between their elements included."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.executor.laying_out import LayingOut
from gpu_backend.wire.errors import ProtocolError


@pytest.fixture(scope="module")
def laying_out() -> LayingOut:
    device = open_device("cpu")
    return LayingOut(device, device.resolve)


@pytest.mark.parametrize("order", ["C", "F", "0,2,1", "?120,8,24", "?8,160,32"])
def test_an_array_is_copied_into_the_order_that_was_proved(laying_out: LayingOut, order: str) -> None:
    found = np.arange(24.0).reshape(4, 2, 3)
    laid = laying_out.array(found, order)
    assert (laid == found).all()
    if order[0] == "?":
        assert laid.strides == tuple(map(int, order[1:].split(",")))


@pytest.mark.parametrize("order", ["?8,8,8", "?0,8,32", "?-64,32,8", "?120,8", "?a,b,c"])
def test_elements_never_share_a_place(laying_out: LayingOut, order: str) -> None:
    with pytest.raises(ProtocolError, match="cannot be laid out so"):
        laying_out.array(np.zeros((4, 2, 3)), order)
