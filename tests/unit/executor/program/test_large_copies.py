"""What is too large for a message's own bytes goes between arrays and the memory that is shared, past CuPy."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.transport.copying import Bytes
from gpu_backend.wire.messages import CHUNK_BYTES, Op, Want
from gpu_backend.wire.values import SMALL_BYTES, Buffer, DType, Ref, Tuple, Value, View
from tests.unit.executor.program.numpy_segments import NumpyBlocks
from tests.unit.executor.program.played import PlayedNotebook
from tests.unit.executor.program.test_segments import notebook

#: Doubles of an array that is read in one piece.
COUNT = CHUNK_BYTES // 8
LARGE = SMALL_BYTES + 8


def with_array(passes: tuple[str, ...] | None = None) -> PlayedNotebook:
    """Return a notebook with an array of `COUNT` doubles at 50, and one of twice as many at 51."""
    on, _ = notebook() if passes is None else notebook(passes)
    on.run(*[Op("cupy.arange", 50 + n, ((n + 1) * COUNT,), kwargs={"dtype": DType("<f8")}) for n in range(2)])
    return on


def landing_in(on: PlayedNotebook) -> list[Bytes]:
    """Have the device land what it reads in memory of the test's, and return where that will stand."""
    lent: list[Bytes] = []

    def lend(size: int) -> Bytes:
        lent.append(np.zeros(size, np.uint8))
        return lent[-1]

    on.device.landing = lend
    return lent


def read(on: PlayedNotebook, value: Value) -> Buffer | None:
    (answer,) = on.run(Op(".same", 0, (value,), None, Want.CONTENTS))
    assert answer.error is None
    assert answer.value is None or isinstance(answer.value, Buffer)
    return answer.value


def part(first: int, size: int) -> View:
    return View(51, first, (size,), (1,), "|u1", "C")


@pytest.mark.parametrize(
    "value", [Ref(50), part(0, CHUNK_BYTES), part(8 * 77, LARGE), View(51, 800, (COUNT,), (8,), "<f8", "")]
)
def test_an_array_is_read_into_the_memory_that_is_shared(value: Value, monkeypatch: pytest.MonkeyPatch) -> None:
    on = with_array()
    want, lent = on.contents(value).copy(), landing_in(on)
    monkeypatch.setattr(on.device, "download", None)  # CuPy's way
    found = read(on, value)
    assert found is not None
    (memory,) = lent
    assert (found.frame, found.data) == (0, b"")
    np.testing.assert_array_equal(memory.view(found.dtype).reshape(found.shape), want)


@pytest.mark.parametrize("value", [Ref(51), View(51, 0, (COUNT,), (16,), "<f8", "")])
def test_what_is_more_than_a_piece_or_has_gaps_goes_cupys_way(value: Value) -> None:
    on, plain = with_array(), with_array(())
    landing_in(on)
    np.testing.assert_array_equal(on.contents(value), plain.contents(value))


def test_what_finds_no_memory_that_is_shared_goes_cupys_way() -> None:
    on = with_array()
    on.device.landing = lambda size: None
    np.testing.assert_array_equal(on.contents(Ref(50)), np.arange(COUNT, dtype=float))


def written(target: Value, offset: Value, size: int, frame: int = 0) -> Op:
    return Op(".write", 0, (target, offset, Buffer(frame, "|u1", (size,))))


def test_a_frame_is_written_past_cupy_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    on = with_array()
    monkeypatch.setattr(on.device, "write", None)  # CuPy's way
    frame = np.full(LARGE // 8, 7.0).tobytes()
    on.send(
        Op("cupy.add", 60, (Ref(50), 1.0)), written(Ref(60), 16, LARGE), Op("cupy.multiply", 61, (Ref(60), 2)),
        written(Ref(60), 0, LARGE), frames=[frame],
    )  # fmt: skip
    on.work()
    want = np.arange(COUNT) + 1.0
    want[2 : 2 + LARGE // 8] = 7
    np.testing.assert_array_equal(on.contents(Ref(61)), 2 * want)
    want[: LARGE // 8] = 7
    np.testing.assert_array_equal(on.contents(Ref(60)), want)
    assert isinstance(on.device.blocks, NumpyBlocks)
    assert not on.device.blocks.is_writing


@pytest.mark.parametrize(
    "op",
    [
        written(Ref(50), CHUNK_BYTES - 8, LARGE), written(Ref(50), -1, LARGE), written(Ref(99), 0, LARGE),
        written(Ref(50), 0, LARGE, 1), written(Ref(50), 0, LARGE + 1), written(Ref(50), 0, 0), written(Ref(50), 0, -1),
        written(part(0, LARGE), 0, LARGE), Op(".write", 0, (Ref(50), 0, Buffer(0, "<f8", (LARGE // 8,)))),
        Op(".write", 0, (Ref(50), 0, Buffer(0, "|u1", (LARGE // 4, 4)))),
    ],
)  # fmt: skip
def test_what_is_no_frame_for_an_array_is_written_or_refused_the_old_way(op: Op) -> None:
    found = []
    for on in (with_array(), with_array(())):
        on.send(op, Op("cupy.sum", 70, (Ref(50),)), frames=[bytes(LARGE)])
        on.work()
        errors = [(one.error.kind, one.error.message) for one in on.answers.values() if one.error]
        found.append((errors, on.contents(Ref(70)).tolist(), on.contents(Ref(51)).tobytes()))
    assert found[0] == found[1]


def test_arrays_of_two_axes_are_written_in_their_memory_order() -> None:
    on, plain = with_array(), with_array(())
    for one in (on, plain):
        one.run(Op("cupy.empty", 80, (Tuple((2, LARGE)),), kwargs={"dtype": DType("|u1"), "order": "F"}))
        one.send(written(Ref(80), 0, 2 * LARGE), frames=[np.arange(2 * LARGE).astype(np.uint8).tobytes()])
        one.work()
    np.testing.assert_array_equal(on.contents(Ref(80)), plain.contents(Ref(80)))
