"""Copies are told apart from whatever else CuPy launches, by names and by the words of their parameters."""

from __future__ import annotations

from struct import pack

import numpy as np
import pytest

from gpu_backend.devices import cuda_copies
from gpu_backend.devices.cuda_copies import copies
from gpu_backend.devices.cuda_graphs import Copy, Fill, Launch, Step
from gpu_backend.devices.replays import ZEROS, Copied, Patch
from gpu_backend.opstream.layout import contiguous, strided

F8 = np.dtype("f8")
#: Block 0 lies at multiples of 512, operand 1 at those of 8, operand 2 anywhere.
UNITS = {0: 512, 1: 8, 2: 1}
SHAPE, STRIDES = (4, 3), (48, 8)


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    told = {7: "cupy_copy__float64_float64", 8: "cupy_copy__int32_float64", 9: "cupy_add__float64_float64_float64"}
    monkeypatch.setattr(cuda_copies, "name_of", lambda function: told.get(function, ""))
    return told


def array(shape: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
    return pack(f"<{2 + 2 * len(shape)}q", 0, int(np.prod(shape)), *shape, *strides)


def launch(function: int, *arrays: bytes, elements: int = 12) -> Launch:
    indexer = pack("<5q", elements, *SHAPE, 0, 0)
    return Launch(function, (1, 1, 1), (128, 1, 1), 0, (*arrays, indexer))


LYING, DENSE = array(SHAPE, STRIDES), array(SHAPE, (24, 8))
COPYING = launch(7, LYING, DENSE)


def told(*steps: Step, patches: tuple[Patch, ...] = (Patch(0, 1, 16), Patch(64, 0, 24))) -> tuple[Copied, ...]:
    return copies(steps, [[0, 64, 128][: len(step.parameters)] for step in steps], patches, UNITS)


def test_a_kernel_that_copies_says_how_both_lie() -> None:
    expected = Copied(1, 16, strided(SHAPE, STRIDES, F8), 0, 24, contiguous(SHAPE, F8))
    assert told(COPYING) == (expected,)
    assert told(COPYING, COPYING) == (expected, expected)


@pytest.mark.parametrize(
    "step",
    [
        launch(8, LYING, DENSE), launch(9, LYING, DENSE), launch(1, LYING, DENSE), launch(7, LYING, DENSE, elements=11),
        launch(7, LYING, array((4, 4), (32, 8))), launch(7, LYING[:-8], DENSE), launch(7, LYING, LYING, DENSE),
        Fill(1, 64, (bytes(8),)),
    ],
)  # fmt: skip
def test_what_is_no_copy_is_none(step: Step) -> None:
    assert told(step) == ()
    assert told(COPYING, step) == (), "and nothing beside it is told"


def test_what_does_not_follow_an_operand_is_no_copy() -> None:
    assert told(COPYING, patches=(Patch(0, 1, 16),)) == ()


@pytest.mark.parametrize(
    ("size", "of", "shift", "dtype"),
    [(64, 1, 16, "i8"), (60, 1, 16, "i4"), (64, 1, 12, "i4"), (6, 1, 2, "i2"), (64, 2, 16, "i1"), (7, 1, 0, "i1")],
)
def test_a_row_is_copied_by_the_widest_words_that_fit(size: int, of: int, shift: int, dtype: str) -> None:
    row = contiguous((size // np.dtype(dtype).itemsize,), np.dtype(dtype))
    found = told(Copy(size, (bytes(8), bytes(8))), patches=(Patch(0, 0, 512), Patch(64, of, shift)))
    assert found == (Copied(of, shift, row, 0, 512, row),)


def test_what_is_cleared_is_copied_from_zeros() -> None:
    row = contiguous((8,), np.dtype("i8"))
    assert told(Fill(0, 64, (bytes(8),)), patches=(Patch(0, 0, 0),)) == (Copied(ZEROS, 0, row, 0, 0, row),)
