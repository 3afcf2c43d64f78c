"""What is kept of ops that come again is gone when nobody needs it, and stays while an op is carried out by it."""

from __future__ import annotations

import gc
import weakref
from math import inf
from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.heap import Kind
from gpu_backend.opstream.layout import contiguous
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref
from tests.unit.executor.program.played import added
from tests.unit.executor.program.test_recurring import notebook, recurring, wanted_at_once

__all__ = ["wanted_at_once"]


def test_it_holds_nothing_when_it_is_gone() -> None:
    """Nor if a kernel of the user's recurs, which may lead back to all that there is."""
    on = notebook()
    on.run(*(added(20 + one, Ref(3), 1.0) for one in range(6)))
    device: Any = on.device
    on.stream.heap.put(10, device.resolve("cupy.ElementwiseKernel")("T x", "T y", "y = -x", "minus"), Kind.KERNEL)
    assert recurring(on).done
    before = recurring(on).launched
    on.run(*(Op(".call", 40 + one, (Ref(10), Ref(3))) for one in range(6)))
    assert recurring(on).launched > before
    kept = weakref.ref(on.stream.heap.places.known[3].array), weakref.ref(device)
    del on, device
    gc.collect()
    assert all(one() is None for one in kept)


def test_what_is_forgotten_while_an_op_is_carried_out_stays_until_it_is() -> None:
    on = notebook()
    lies = (contiguous((6,), np.dtype(float)), 0, 48, 0, 48, 8)
    done: list[str] = []

    def holds() -> bool:
        recurring(on).forget()
        recurring(on).learn(op, None, recipe)
        with pytest.raises(RuntimeError, match="being carried out"):
            recurring(on).run((op,), 0, 1, inf)
        return True

    op = Op(".store", 0, (Ref(3), Ref(4)))
    launched = (lambda: done.append("launched"), holds, bytearray(8), (), (), 1, ())
    recipe = ((lies, lies), (), -1, (), launched, False, True, 0, False, True, False)
    on.run(op)
    recurring(on).forget()
    recurring(on).learn(op, None, recipe)
    assert recurring(on).count == 1
    on.run(op)
    assert (done, recurring(on).count) == (["launched"], 0)


def test_a_way_that_is_learnt_as_others_are_forgotten_is_counted() -> None:
    on = notebook()
    ops = [Op(".store", 0, (Ref(3), Ref(4))), Op("cupy.exp", 90, (Ref(3),))]
    on.run(*ops)

    class Known:
        """What an op is known by; as it goes, the other op is learnt."""

        def __init__(self, other: Op) -> None:
            self.other = other

        def __del__(self) -> None:
            recurring(on).learn(self.other, None, None)

    left = []
    for op, other in (ops, ops[::-1]):
        recurring(on).forget()
        recurring(on).learn(op, Known(other), None)
        assert recurring(on).count == 1
        recurring(on).forget()
        left.append(not recurring(on).lacks(other, None, True))  # it was, if its place had been passed by then
        assert recurring(on).count == left[-1]
    assert any(left)
