"""Captured transforms go by plans that CuPy keeps: they hold as long as these do, and no longer."""

from __future__ import annotations

import numpy as np

from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref
from tests.unit.executor.program import test_replay
from tests.unit.executor.program.played import window
from tests.unit.executor.program.test_replay import notebook, replayer, summed

wanted_at_once = test_replay.wanted_at_once


def test_a_replay_whose_plan_is_gone_goes_cupys_way_and_is_captured_anew() -> None:
    on = notebook()
    captures = on.device.captures  # type: ignore[attr-defined]
    captures.held = True
    on.run(*(summed(20 + one, Ref(3)) for one in range(4)))
    assert (replayer(on).replayed, captures.captured) == (3, 1)
    captures.held = False
    on.run(summed(30, Ref(3)))
    assert (replayer(on).replayed, captures.captured) == (3, 1)
    captures.held = True
    on.run(*(summed(31 + one, Ref(3)) for one in range(2)))
    assert (replayer(on).replayed, captures.captured) == (5, 2)
    assert {float(on.contents(Ref(handle))) for handle in (20, 23, 30, 31, 32)} == {33.0}


def test_transforms_are_captured_until_the_notebook_asks_for_their_plans() -> None:
    def transformed(into: int) -> Op:
        return Op("cupy.fft.fft", into, (Ref(3),))

    on = notebook()
    on.run(*(transformed(20 + one) for one in range(4)))
    assert replayer(on).replayed == 3
    on.stream._resolve("cupy.fft.config")
    on.run(*(transformed(30 + one) for one in range(4)))
    assert replayer(on).replayed == 3
    for handle in (20, 23, 30, 33):
        np.testing.assert_array_equal(on.contents(Ref(handle)), np.fft.fft(np.arange(3.0, 9.0)))


def test_an_op_that_wants_memory_is_run_again_when_plans_were_let_go() -> None:
    on = notebook()
    captures = on.device.captures  # type: ignore[attr-defined]
    captures.held = True
    direct_way = on.stream._direct
    assert direct_way is not None
    direct_way._places.give_back()
    wanted = Op("cupy.zeros", 9, (3,))
    assert direct_way.relent(wanted, MemoryError())
    assert not direct_way.relent(wanted, MemoryError())
    assert captures.held is False


def test_operands_that_are_not_aligned_go_cupys_way() -> None:
    on = notebook()
    on.device.captures.alignment = 64  # type: ignore[attr-defined]
    on.run(Op("cupy.arange", 50, (0.0, 40.0)), Op(".nothing", 0, (Ref(50),)))
    for _ in range(3):
        on.run(*(summed(60 + one, window(50, one, 1)) for one in range(8)))
    before = replayer(on).replayed
    on.run(*(summed(70 + one, window(50, one, 1)) for one in range(8)))
    assert replayer(on).replayed == before + 1
    assert [float(on.contents(Ref(70 + one))) for one in range(8)] == list(range(8))
