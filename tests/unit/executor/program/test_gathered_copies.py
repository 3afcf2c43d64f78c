"""What was captured and copies alone is gathered with the small ops around it, and nobody can tell."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.devices.replays import Copied, Replay
from gpu_backend.executor.config import PASSES
from gpu_backend.executor.program import direct
from gpu_backend.opstream.layout import contiguous
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Value
from tests.unit.executor.program.numpy_replays import GatheringCpu
from tests.unit.executor.program.played import PlayedNotebook, added
from tests.unit.executor.program.test_passes import BEGIN


@pytest.fixture(autouse=True)
def wanted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Capture what comes for the second time."""
    monkeypatch.setattr(direct, "_WANTED", 2)


def replayed(on: PlayedNotebook) -> int:
    assert on.stream._direct is not None
    assert on.stream._direct.replayer is not None
    return on.stream._direct.replayer.replayed


def rolled(into: int, value: Value, shift: int) -> Op:
    return Op("cupy.roll", into, (value, shift, 0))


@pytest.mark.parametrize("most_ops", [1, 2, 4, 100])
def test_an_op_that_copies_alone_is_gathered_with_others(most_ops: int) -> None:
    device = GatheringCpu(most_ops)
    on = PlayedNotebook(PASSES, device)
    on.run(*BEGIN)
    row, ops = on.contents(Ref(3)), []
    for turn in range(4):
        ops += [added(20 + 3 * turn, Ref(3), float(turn)), rolled(21 + 3 * turn, Ref(20 + 3 * turn), 2)]
        dropped = (18 + 3 * turn,) if turn else None
        ops.append(added(22 + 3 * turn, Ref(21 + 3 * turn), Ref(20 + 3 * turn), drop=dropped))
    on.run(*ops)
    for turn in range(4):
        assert on.contents(Ref(22 + 3 * turn)).tolist() == (np.roll(row + turn, 2) + row + turn).tolist()
    assert replayed(on) == 0, "an op that was captured was launched by itself"
    # The first way CuPy's, for it was new; of the others two copies, what they clear, and two sums at a time.
    assert sum(device.runs.launched) == 8 + 3 * 3
    assert max(device.runs.launched) == min(most_ops, 16)


def test_what_cannot_be_gathered_is_launched() -> None:
    device = GatheringCpu()
    on = PlayedNotebook(PASSES, device)
    on.run(*BEGIN)
    row = on.contents(Ref(3))
    on.run(rolled(20, Ref(3), 2), rolled(21, Ref(3), 2))
    device.runs.is_compiled = False
    device.runs.ready.clear()
    on.run(rolled(22, Ref(3), 2), added(23, Ref(22), 1.0))
    assert replayed(on) == 1
    assert on.contents(Ref(23)).tolist() == (np.roll(row, 2) + 1).tolist()


def test_memory_that_there_is_not_leaves_nothing_gathered() -> None:
    device = GatheringCpu()
    on = PlayedNotebook(PASSES, device)
    on.run(*BEGIN)
    row = on.contents(Ref(3))
    on.run(rolled(20, Ref(3), 2), rolled(21, Ref(3), 2))
    device.memory_by_address.left = 0
    assert not any(one.error for one in on.run(rolled(22, Ref(3), 2)))  # CuPy's way, which finds some
    assert on.contents(Ref(22)).tolist() == np.roll(row, 2).tolist()


def test_what_writes_where_it_read_before_is_not_gathered() -> None:
    """An exchange, say: if it were gathered by half and then launched, it would read what it wrote."""
    segment = PlayedNotebook(PASSES, GatheringCpu()).stream._direct.segment  # type: ignore[union-attr]
    row = contiguous((6,), np.dtype("f8"))
    there, back = (Copied(one, 0, row, other, 0, row) for one, other in ((0, 1), (1, 0)))
    assert segment is not None

    def steps(*copies: Copied) -> int:
        return len(segment.copies(Replay(lambda: None, bytearray(), (), (), None, (), copies=copies)) or ())

    assert (steps(there), steps(there, there), steps(there, back), steps(there._replace(target=0))) == (1, 2, 0, 0)
