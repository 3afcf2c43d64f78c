"""How an array lies whose shape the notebook could not know is told from its place, without an array of CuPy's."""

from __future__ import annotations

import pytest

from gpu_backend.executor.answer import Answer
from gpu_backend.executor.config import PASSES
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import DType, Ref, Tuple, Value
from tests.unit.executor.program.numpy_segments import SegmentedCpu
from tests.unit.executor.program.played import PlayedNotebook, added

TABLE = Op("cupy.arange", 1, (12.0,)), Op("cupy.reshape", 2, (Ref(1), Tuple((3, 4)))), Op("cupy.sin", 3, (Ref(2),))


def notebook(passes: tuple[str, ...] = PASSES) -> PlayedNotebook:
    on = PlayedNotebook(passes, SegmentedCpu())
    on.run(*TABLE, added(4, Ref(3), 1.0), Op("cupy.ndarray.__getitem__", 5, (Ref(3), 1)))
    return on


def told(on: PlayedNotebook, value: Value) -> Answer:
    (answer,) = on.run(Op(".layout", 0, (value,), None, Want.DESCRIPTION))
    return answer


def test_of_a_result_that_is_gathered_no_array_is_made() -> None:
    on = notebook()
    assert 4 not in on.stream.heap.objects
    assert told(on, Ref(4)).value == Tuple((Tuple((3, 4)), Tuple((32, 8)), DType("<f8")))
    assert 4 not in on.stream.heap.objects


@pytest.mark.parametrize("handle", [2, 3, 4, 5])
def test_it_is_what_cupys_way_tells(handle: int) -> None:
    assert told(notebook(), Ref(handle)) == told(notebook(()), Ref(handle))


def test_of_what_failed_it_is_told_that_it_did() -> None:
    found = []
    for on in (notebook(), notebook(())):
        on.run(Op("cupy.add", 7, (Ref(3), Ref(1))))
        found.append(told(on, Ref(7)))
    assert found[0].error is not None
    assert found[0] == found[1]


def test_what_is_no_array_has_no_layout() -> None:
    for on in (notebook(), notebook(())):
        assert told(on, 3).error is not None
