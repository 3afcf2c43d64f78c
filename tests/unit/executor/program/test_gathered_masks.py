"""What a mask chooses is gathered with the ops around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Scalar, Value
from tests.unit.executor.program.played import window
from tests.unit.executor.program.test_segments import notebook


@pytest.mark.parametrize("value", [Ref(3), window(3, 0, 1), 2.5, Scalar("<f8", np.float64(-0.0).tobytes())], ids=str)
def test_what_a_mask_chooses_is_gathered(value: Value) -> None:
    on, launched = notebook()
    mask, before = np.array([True, False, True, True, False, False]), on.contents(Ref(1))
    on.stream.heap.put(52, mask)
    on.run(Op(".store_where", 0, (window(1, 1), Ref(52), value)))
    assert launched == [1]
    expected = before.copy()
    np.copyto(expected[1:7], on.contents(value) if not isinstance(value, float | Scalar) else number(value), where=mask)
    assert on.contents(Ref(1)).tobytes() == expected.tobytes()


def number(value: float | Scalar) -> Any:
    return np.frombuffer(value.data, value.dtype)[0] if isinstance(value, Scalar) else value


def test_a_mask_that_is_a_number_goes_the_old_way() -> None:
    on, launched = notebook()
    on.run(Op(".store_where", 0, (Ref(3), True, 7.0)), Op(".store_where", 0, (Ref(3), False, 8.0)))
    assert not launched
    assert on.contents(Ref(3)).tolist() == [7.0] * 6


def test_what_a_mask_chooses_may_not_lie_across_what_is_written() -> None:
    on, launched = notebook()
    on.stream.heap.put(52, np.array([False, True, True, False]))
    on.run(Op(".store_where", 0, (window(52, 0, 3), window(52, 1, 3), True)))
    assert not launched
