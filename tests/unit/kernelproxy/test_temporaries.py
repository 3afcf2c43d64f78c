"""Which op may compute into an operand that was dropped behind it."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Value, View
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.dropped import DroppedHandles
from kernelproxy.stream.temporaries import taken_over

LAYOUT, OTHER = (Layout((3,), (8,), np.dtype("f8")), Layout((3,), (4,), np.dtype("f4")))
WINDOW = View(7, 0, (3,), (8,), "<f8", "")


def batch(*args: Value, made: Layout | None = LAYOUT, reuse: int = 0) -> OpenBatch:
    found = OpenBatch(1)
    found.ops.append(Op("cupy.add", 9, args, reuse=reuse))
    found.made = made
    return found


def dropped(*handles: int, layout: Layout | None = LAYOUT) -> DroppedHandles:
    return deque((handle, layout) for handle in handles)


def test_the_last_op_computes_into_its_dropped_operand() -> None:
    found = batch(Ref(7), 2.0)
    assert taken_over(found, dropped(7), 1, LAYOUT) == (None, 0)
    assert found.ops == [Op("cupy.add", 9, (Ref(7), 2.0), reuse=7)]


@pytest.mark.parametrize(
    ("found", "gone"),
    [
        (OpenBatch(1), dropped(7)),
        (batch(Ref(8), 2.0), dropped(7)),  # no operand of it
        (batch(Ref(7), WINDOW), dropped(7)),  # a window on it is one too
        (batch(Ref(7), 2.0), dropped(7, layout=OTHER)),
        (batch(Ref(7), 2.0), dropped(7, layout=None)),
        (batch(Ref(7), 2.0, made=None), dropped(7)),  # what it makes lies elsewhere, or nobody knows how
        (batch(Ref(7), 2.0, reuse=5), dropped(7)),
        (batch(Ref(7), 2.0), dropped(7, 6)),
    ],
)
def test_else_the_handle_is_dropped(found: OpenBatch, gone: DroppedHandles) -> None:
    before = list(found.ops)
    assert taken_over(found, gone, len(gone), None) == (tuple(handle for handle, _ in gone), 0)
    assert found.ops == before
