"""Which op may compute into an operand that was dropped behind it."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Value, View
from kernelproxy import compiled
from kernelproxy.namespace.names import make
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.dropped import DroppedHandles
from kernelproxy.stream.temporaries import taken_over
from tests.unit.kernelproxy.conftest import played_client

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


def test_both_ways_take_over_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(are_used: bool) -> list[Any]:
        with played_client() as client, compiled.used(are_used):
            monkeypatch.setattr(client.streams, "is_used", False)  # whatever other tests have used
            monkeypatch.setattr(client.pipeline, "flush", lambda: None)  # all stays in the open batch
            x = make("cupy.ones")(30)
            for _ in range(2):  # the second time all is found again
                client.pipeline.next_handle = 1_000
                client.pipeline.dropped.clear()
                client.pipeline.open_batch = type(client.pipeline.open_batch)(1)
                y = x * 2.0
                y = y + 1.0
                y = y[:1] + y  # a window on it would be written while it is read
                y = y + y
                y = (y - x) / (2.0 - y)
                z, y = y.sum() + y, None
                z = -z
                del z
                x + x
            return [(op.name, op.out, op.reuse, op.drop) for op in client.pipeline.open_batch.ops]

    pure = told(False)
    assert sum(bool(reuse) for _, _, reuse, _ in pure) > 3
    assert told(True) == pure
