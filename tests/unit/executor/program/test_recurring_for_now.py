"""Ops that wait for their routine to be compiled recur by their launch, and are gathered once it is."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpu_backend.devices.replays import Replay
from gpu_backend.executor.program import recurring as module
from gpu_backend.executor.program.course import Course
from gpu_backend.executor.program.operands import Number
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref
from tests.unit.executor.program.numpy_replays import GatheringCpu
from tests.unit.executor.program.played import window
from tests.unit.executor.program.test_passes import programs
from tests.unit.executor.program.test_recurring import notebook, recurring, state, wanted_at_once

__all__ = ["wanted_at_once"]

OFTEN = 20
ADD = Op("cupy.add", 0, (window(1, 1), 0.5, window(1, 1)))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what lets time pass until what recurs for now is learnt anew."""
    now = [1.0]
    monkeypatch.setattr(module, "perf_counter", lambda: now[0])

    def later(times: float = 2) -> None:
        now[0] += times * module._REVIEW_SECONDS

    return later


def uncompiled() -> tuple[Any, GatheringCpu, Any]:
    on = notebook(most_ops=100)
    device: Any = on.device
    device.runs.is_compiled = False
    device.runs.ready.clear()
    return on, device, on.stream._direct


def test_what_waits_is_launched_past_python_and_gathered_once_it_can_be(later: Any) -> None:
    on, device, way = uncompiled()
    want = on.contents(window(1, 1)).copy()
    for _ in range(OFTEN):
        assert not on.run(ADD)
    assert recurring(on).launched >= OFTEN - module._WAITED - 4
    device.runs.is_compiled = True
    was = way.segment.table.gathered
    for _ in range(OFTEN):
        assert not on.run(ADD)
    assert way.segment.table.gathered == was, "nobody has looked yet"
    later()
    launched = recurring(on).launched
    for _ in range(OFTEN):
        assert not on.run(ADD)
    assert way.segment.table.gathered >= was + OFTEN - 2
    assert recurring(on).launched <= launched + 1
    assert on.contents(window(1, 1)).tolist() == (want + 3 * OFTEN * 0.5).tolist()


def test_what_is_not_compiled_when_it_is_looked_at_again_goes_on_as_it_did(later: Any) -> None:
    on, _, _ = uncompiled()
    for _ in range(4):
        launched = recurring(on).launched
        for _ in range(OFTEN):
            assert not on.run(ADD)
        later()
    assert recurring(on).launched >= launched + OFTEN - 2


def test_each_is_looked_at_again_in_time_though_others_are_learnt(later: Any) -> None:
    on, device, way = uncompiled()
    other = Op("cupy.multiply", 0, (window(1, 1), 1.0, window(1, 1)))
    for _ in range(OFTEN):
        assert not on.run(ADD)
    later(0.9)
    for _ in range(OFTEN):
        assert not on.run(other)
    device.runs.is_compiled = True
    later(0.2)
    for _ in range(OFTEN):
        assert not on.run(ADD)
    assert way.segment.table.gathered >= OFTEN - 2


def test_a_copy_that_waits_recurs_by_its_launch(later: Any) -> None:
    on, device, way = uncompiled()
    row = on.contents(Ref(3))
    for _ in range(OFTEN):
        assert not on.run(Op("cupy.roll", 70, (Ref(3), 2, 0)))
        assert on.contents(Ref(70)).tolist() == np.roll(row, 2).tolist()
        on.run(Op(".nothing", 0, (), (70,)))
    assert recurring(on).launched >= OFTEN - module._WAITED - 4
    device.runs.is_compiled = True
    later(2)
    gathered = way.segment.table.gathered
    for turn in range(OFTEN):
        assert not on.run(Op("cupy.roll", 80 + turn, (Ref(3), 2, 0)))
    assert way.segment.table.gathered > gathered


@pytest.mark.parametrize("is_ordered", [False, True])
def test_what_cannot_be_gathered_for_another_reason_takes_no_way_from_what_can(is_ordered: bool) -> None:
    on = notebook(most_ops=100)
    way: Any = on.stream._direct
    scaled = Op("cupy.multiply", 0, (window(1, 1), 1.5, window(1, 1)))
    other = replace(scaled, orders=("C",)) if is_ordered else replace(scaled, args=(window(1, 1), nan, window(1, 1)))
    on.run(*[scaled] * OFTEN)
    on.run(*[other] * OFTEN)
    gathered = way.segment.table.gathered
    on.run(*[scaled] * OFTEN, other, *[scaled] * OFTEN)
    assert way.segment.table.gathered - gathered >= 2 * OFTEN - 2


def test_a_number_that_would_lose_its_sign_is_looked_for_in_what_is_launched_too() -> None:
    on = notebook()
    way: Any = on.stream._direct
    course = Course(None, None, 0, True)
    course.replay = Replay(print, bytearray(), (), (), (), ())
    places = [way._operands.find(3), Number(0.0, float)]
    for for_now in (False, True):
        recipe = module._recipe(on.stream.heap, Op(".store", 0, (Ref(3), 0.0)), course, places, for_now)
        assert recipe is not None
        assert recipe[-2:] == (True, for_now)


def test_what_has_waited_seldom_is_not_learnt_so() -> None:
    on, device, way = uncompiled()
    for _ in range(module._WAITED // 2):
        assert not on.run(ADD)
    assert recurring(on).done == 0
    device.runs.is_compiled = True
    for _ in range(OFTEN):
        assert not on.run(ADD)
    assert way.segment.table.gathered >= OFTEN - 1


@pytest.mark.parametrize("most_ops", [1, 100])
@settings(deadline=None, max_examples=40)
@given(programs(), st.integers(1, 6))
def test_programs_give_the_same_bits_whenever_they_are_compiled(most_ops: int, ops: tuple[Op, ...], since: int) -> None:
    now = [0.0]

    def outcome(way: str) -> list[object]:
        on, found = notebook(way, most_ops), []
        device: Any = on.device
        device.runs.is_compiled = False
        device.runs.ready.clear()
        for turn in range(9):
            device.runs.is_compiled = turn >= since
            answers = on.run(*ops)
            found.append([(one.error.kind, one.error.caused_by) for one in answers if one.error is not None])
            found.append(state(on))
            on.run(Op(".nothing", 0, (), tuple({op.out for op in ops} - {0})))
            now[0] += module._REVIEW_SECONDS / 2.5  # it is learnt anew in each third turn
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WAITED", 1)
        patch.setattr(module, "perf_counter", lambda: now[0] + 1.0)
        assert outcome("recurring") == outcome("python") == outcome("cupy")
