"""A few bytes of the notebook's are put into arrays past CuPy, in their order among ops that are gathered."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import SMALL_BYTES, Buffer, Ref, Value
from tests.unit.executor.program.numpy_segments import NumpyBlocks
from tests.unit.executor.program.played import window
from tests.unit.executor.program.test_segments import notebook


def written(target: Value, offset: Value, data: bytes, dtype: str = "|u1") -> Op:
    """Return the op that puts ``data`` into an array."""
    return Op(".write", 0, (target, offset, Buffer(-1, dtype, (len(data),), data)))


def test_a_few_bytes_are_written_between_ops_that_are_gathered() -> None:
    (on, launched), (plain, _) = notebook(), notebook(())
    for one in (on, plain):
        assert not one.run(
            Op("cupy.add", 20, (Ref(3), Ref(3))), written(Ref(20), 8, np.float64(7).tobytes()),
            Op("cupy.multiply", 21, (Ref(20), 2)), written(Ref(20), 0, np.ones(6).tobytes()),
        )  # fmt: skip
    assert launched == [1, 1]
    assert dict(on.stream.heap.objects).keys().isdisjoint({20, 21}), "no array was made for it"
    for handle in (20, 21):
        assert on.contents(Ref(handle)).tolist() == plain.contents(Ref(handle)).tolist()
    assert on.contents(Ref(20)).tolist() == [1.0] * 6


@pytest.mark.parametrize(
    "op",
    [
        written(Ref(3), 44, b"12345"), written(Ref(3), -1, b"1"), written(Ref(3), (1 << 63) - 1, b"1"),
        written(Ref(99), 0, b"1"),
        written(Ref(3), 0, b""), written(window(1, 1), 0, b"12345678"), written(Ref(3), 0, b"12345678", "<f8"),
        written(Ref(3), 0, bytes(SMALL_BYTES + 1)), written(Ref(3), 0.5, b"1"), written(Ref(3), True, b"1"),
        Op(".write", 0, (Ref(3), 0)),
        Op(".write", 0, (Ref(3), 0, Buffer(-1, "|u1", (3,), b"1"))),
    ],
)  # fmt: skip
def test_what_is_no_few_bytes_for_an_array_is_written_or_refused_the_old_way(op: Op) -> None:
    (on, _), (plain, _) = notebook(), notebook(())
    outcomes = [[(one.error.kind, one.error.message) for one in at.run(op) if one.error] for at in (on, plain)]
    assert outcomes[0] == outcomes[1]
    assert on.holds() == plain.holds()


def test_another_streams_work_finds_what_was_written() -> None:
    """It need not come behind the default stream's."""
    on, _ = notebook()
    blocks = on.device.blocks
    assert isinstance(blocks, NumpyBlocks)
    assert not on.run(Op("cupy.cuda.Stream", 60, (), kwargs={"non_blocking": True}), written(Ref(3), 0, bytes(8)))
    assert blocks.is_writing
    assert not on.run(Op("cupy.add", 61, (Ref(3), 1.0), stream=60))
    assert not blocks.is_writing
    assert on.contents(Ref(61))[0] == 1.0
