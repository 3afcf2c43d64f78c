"""Matrix products go to the device's library with the arguments that CuPy would give it, or CuPy's way."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.devices.batched_products import stacks
from gpu_backend.devices.products import gemm
from gpu_backend.executor.config import PASSES
from gpu_backend.opstream.layout import contiguous, strided
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Tuple, View
from tests.unit.executor.program.numpy_products import MultiplyingCpu, offsets
from tests.unit.executor.program.played import PlayedNotebook

TABLE, VECTOR = 50, 51
ITEM, F8 = 8, np.dtype("f8")


def notebook(passes: tuple[str, ...] = PASSES) -> tuple[PlayedNotebook, MultiplyingCpu]:
    """Return a notebook with a table of 7 by 7 and a vector of 7."""
    device = MultiplyingCpu()
    on = PlayedNotebook(passes, device)
    made = Op("cupy.arange", 40, (0.0, 49.0)), Op("cupy.reshape", TABLE, (Ref(40), Tuple((7, 7))))
    on.run(*made, Op("cupy.arange", VECTOR, (1.0, 8.0)), Op("cupy.sin", 60, (Ref(TABLE),)))
    return on, device


def window(shape: tuple[int, ...], strides: tuple[int, ...], first: int = 0, root: int = 60) -> View:
    layout = strided(shape, tuple(step * ITEM for step in strides), np.dtype(float))
    return View(root, first * ITEM, layout.shape, layout.strides, "<f8", "C")


def require_one_call(name: str, first: View | Ref, second: View | Ref, copies: int) -> None:
    """Have the product be one call of the library, after so many copies of operands, and what it is without."""
    on, device = notebook()
    plain, _ = notebook(())
    for one in (on, plain):
        one.run(Op(name, 70, (first, second)))
    assert len(device.multiplied.calls) == 1
    assert sum(device.runs.launched[1:]) == copies
    np.testing.assert_allclose(on.contents(Ref(70)), plain.contents(Ref(70)), rtol=1e-12)
    assert 70 not in on.stream.heap.objects


WHOLE, TURNED, CORNER = window((7, 7), (7, 1)), window((7, 7), (1, 7)), window((3, 3), (7, 1), 8)
ROW, COLUMN, PART = window((7,), (1,), 14), window((7,), (7,), 2), window((3,), (1,), 1)
FLAT, STANDING = window((1, 7), (7, 1), 7), window((7, 1), (7, 1), 3)


@pytest.mark.parametrize("name", ["cupy.matmul", "cupy.dot", "cupy.ndarray.dot"])
@pytest.mark.parametrize(
    ("first", "second", "copies"),
    [
        (WHOLE, WHOLE, 0), (WHOLE, TURNED, 0), (TURNED, WHOLE, 0), (TURNED, TURNED, 0), (CORNER, CORNER, 2),
        (WHOLE, ROW, 0), (ROW, WHOLE, 0), (WHOLE, COLUMN, 1), (COLUMN, TURNED, 1), (CORNER, PART, 1), (PART, CORNER, 1),
        (FLAT, WHOLE, 0), (WHOLE, STANDING, 1), (STANDING, FLAT, 1), (Ref(60), Ref(TABLE), 0),
        (Ref(60), Ref(VECTOR), 0),
    ],
)  # fmt: skip
def test_each_way_to_lie(name: str, first: View | Ref, second: View | Ref, copies: int) -> None:
    require_one_call(name, first, second, copies)


@pytest.mark.parametrize(
    ("first", "second"),
    [(ROW, ROW), (FLAT, STANDING), (WHOLE, PART), (window((2, 3, 7), (21, 7, 1)), PART), (Ref(61), Ref(60))],
)
def test_what_cupy_computes_otherwise_or_refuses_goes_its_way(first: View | Ref, second: View | Ref) -> None:
    on, device = notebook()
    on.run(Op("cupy.ndarray.astype", 61, (Ref(TABLE), "<i8")), Op("cupy.matmul", 70, (first, second)))
    assert not device.multiplied.calls


def test_an_operand_that_is_gathered_is_computed_first_and_its_memory_is_used_again() -> None:
    on, device = notebook()
    steps = [Op("cupy.add", 70, (CORNER, CORNER)), Op("cupy.matmul", 71, (Ref(70), CORNER))]
    on.run(*steps, Op("cupy.add", 72, (Ref(71), 1.0), drop=(70,)))
    table = np.sin(np.arange(49.0)).reshape(7, 7)[1:4, 1:4]
    np.testing.assert_allclose(on.contents(Ref(72)), (table + table) @ table + 1.0, rtol=1e-12)
    assert device.runs.launched[1:] == [2, 1]  # the sum and the copy together
    left = device.memory_by_address.left
    on.run(*(Op("cupy.matmul", 80 + one, (CORNER, CORNER), (79 + one,) if one else None) for one in range(10)))
    assert left - device.memory_by_address.left <= 3


def test_without_memory_it_goes_cupys_way() -> None:
    on, device = notebook()
    on.stream.heap.places.give_back()
    device.memory_by_address.left = 1  # for the result, but for no copy
    on.run(Op("cupy.matmul", 70, (CORNER, CORNER)))
    assert not device.multiplied.calls
    table = np.sin(np.arange(49.0)).reshape(7, 7)[1:4, 1:4]
    np.testing.assert_allclose(on.contents(Ref(70)), table @ table, rtol=1e-12)


PAIR, TURNED_PAIR = window((2, 3, 7), (21, 7, 1)), window((2, 7, 3), (21, 1, 7))
HIGH = window((2, 2, 3, 4), (24, 12, 4, 1))


@pytest.mark.parametrize(
    ("first", "second", "copies"),
    [
        (PAIR, WHOLE, 0), (PAIR, window((2, 7, 3), (21, 3, 1)), 0), (PAIR, TURNED_PAIR, 1), (WHOLE, TURNED_PAIR, 1),
        (PAIR, ROW, 0), (ROW, window((2, 7, 2), (14, 2, 1)), 0), (window((1, 7, 7), (49, 7, 1)), WHOLE, 0),
        (PAIR, window((1, 7, 3), (21, 3, 1)), 0), (window((1, 3, 7), (21, 7, 1)), window((2, 7, 3), (21, 3, 1)), 0),
        (HIGH, window((4, 5), (5, 1)), 0), (HIGH, window((2, 1, 4, 5), (20, 20, 5, 1)), 0),
        (HIGH, window((1, 2, 4, 3), (24, 12, 1, 4)), 1), (CORNER, window((2, 3, 2), (6, 2, 1)), 1),
    ],
)  # fmt: skip
def test_stacks_of_matrices(first: View, second: View, copies: int) -> None:
    require_one_call("cupy.matmul", first, second, copies)


@given(st.lists(st.sampled_from([(2, 2, 2), (3, 3, 3), (1, 3, 3), (3, 1, 3), (1, 1, 1)]), min_size=1, max_size=3))
def test_where_each_matrix_of_a_stack_begins_is_as_numpy_says(extents: list[tuple[int, int, int]]) -> None:
    first, second, outer = (tuple(one[number] for one in extents) for number in range(3))
    call = stacks(contiguous((*first, 2, 4), F8), contiguous((*second, 4, 3), F8))
    assert call is not None
    if call.begins is None:
        assert first == second == outer
        return
    for found, heap, matrix in zip(offsets(call.begins), (second, first, outer), (12, 8, 6), strict=True):
        places = np.arange(prod(heap)).reshape(heap) * matrix * F8.itemsize
        assert found == np.broadcast_to(places, outer).ravel().tolist()


def test_a_sum_over_stacks_is_no_product_of_them() -> None:
    on, device = notebook()
    on.run(Op("cupy.dot", 70, (PAIR, WHOLE)))
    assert not device.multiplied.calls


def test_stacks_whose_call_takes_much_memory_go_cupys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_backend.executor.program.products._MOST_BYTES", 100)
    assert MultiplyingCpu().multiplied.stacks(contiguous((9, 1, 1), F8), contiguous((1, 1), F8)) is not None
    on, device = notebook()
    on.run(Op("cupy.matmul", 70, (window((9, 1, 1), (1, 1, 1)), window((1, 1), (1, 1)))))
    assert not device.multiplied.calls
    np.testing.assert_allclose(on.contents(Ref(70)).ravel(), 0.0 * np.arange(9.0), atol=1e-12)


def test_stacks_without_memory_for_the_call_go_cupys_way() -> None:
    on, device = notebook()
    on.stream.heap.places.give_back()
    device.memory_by_address.left = 1  # for the result, but for no table
    on.run(Op("cupy.matmul", 70, (PAIR, WHOLE)))
    assert not device.multiplied.calls
    flat = np.sin(np.arange(49.0))
    np.testing.assert_allclose(on.contents(Ref(70)), flat[:42].reshape(2, 3, 7) @ flat.reshape(7, 7), rtol=1e-12)


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.booleans(), st.booleans())
def test_leading_extents_hold_a_column(rows: int, summed: int, columns: int, is_first: bool, is_second: bool) -> None:
    dtype = np.dtype(float)
    first = contiguous((rows, summed), dtype, "F" if is_first else "C")
    second = contiguous((summed, columns), dtype, "F" if is_second else "C")
    call = gemm(first, second)
    assert (call is None) == (rows == columns == 1)
    if call is not None:
        assert call.first_leading >= (rows if call.is_first_transposed else summed)
        assert call.second_leading >= (summed if call.is_second_transposed else columns)
        assert (call.m, call.n, call.k, call.made.shape) == (columns, rows, summed, (rows, columns))
