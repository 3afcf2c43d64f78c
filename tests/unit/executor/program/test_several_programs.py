"""Of several compiled programs a table is written for the one that has most of a loop's ops."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref
from tests.unit.executor.program.numpy_segments import SegmentedCpu
from tests.unit.executor.program.test_segments import notebook


def test_ops_of_two_programs_are_launched_apart() -> None:
    on, launched = notebook()
    device = on.device
    assert isinstance(device, SegmentedCpu)
    device.runs.programs = ("usual", "own")
    ops = [Op(name, 20 + one, (Ref(3), Ref(3))) for one, name in enumerate(["cupy.add"] * 2 + ["cupy.multiply"] * 3)]
    on.run(*ops, Op("cupy.add", 30, (Ref(22), Ref(20))))
    assert (launched, device.runs.launched_programs) == ([2, 3, 1], ["usual", "own", "usual"])
    assert on.contents(Ref(30)).tolist() == [one * one + 2 * one for one in range(3, 9)]
    assert [ops for _, ops in device.runs.switches] == [2, 3], "whoever compiles hears of it"


def test_a_loop_leaves_programs_that_have_some_of_its_ops_each(monkeypatch: pytest.MonkeyPatch) -> None:
    on, launched = notebook()
    device = on.device
    assert isinstance(device, SegmentedCpu)
    runs, pairs = device.runs, {np.add: ("ab", "ca"), np.multiply: ("ab", "bc"), np.subtract: ("bc", "ca")}
    monkeypatch.setattr(runs, "_having", lambda code: (*pairs[runs.routines[code][0]], "all"))
    for turn in range(3):
        ops = enumerate(("cupy.add", "cupy.multiply", "cupy.subtract"), 20 + 3 * turn)
        on.run(*(Op(name, handle, (Ref(3), Ref(3))) for handle, name in ops))
    assert (launched, runs.launched_programs) == ([2, 1, 3, 3], ["ab", "all", "all", "all"])


def test_of_several_programs_a_loop_stays_with_the_one_that_has_all_of_it() -> None:
    on, launched = notebook()
    device = on.device
    assert isinstance(device, SegmentedCpu)
    device.runs.programs, device.runs.whole = ("usual", "own"), "whole"
    for turn in range(6):
        names = enumerate(("cupy.add", "cupy.multiply", "cupy.add"), 20 + 3 * turn)
        on.run(*(Op(name, handle, (Ref(3), Ref(3))) for handle, name in names))
        on.contents(Ref(20 + 3 * turn))
    assert (launched, device.runs.launched_programs) == ([1, 2, *[3] * 5], ["usual", *["whole"] * 6])
    assert len(device.runs.switches) == 1
