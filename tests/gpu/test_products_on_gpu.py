"""Matrix products past CuPy's handling of arguments give CuPy's own bits, however the operands lie."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.batched_products import MOST_AXES, stacks
from gpu_backend.devices.products import gemm
from gpu_backend.executor.config import PASSES
from gpu_backend.opstream.layout import contiguous_strides, strided
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, View
from tests.unit.executor.program.played import PlayedNotebook

SIDE = 160
FIRST, SECOND, MADE = 1, 2, 100
DRAWN = 60


def _window(drawn: random.Random, root: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> View:
    """Return a window of ``shape`` on a table of SIDE by SIDE: part of rows, of columns, turned, whole or with gaps."""
    rows = [extent * dtype.itemsize for extent in (SIDE, 1)]
    if len(shape) == 1:
        step = drawn.choice([1, 1, SIDE])
        layout = strided(shape, (step * dtype.itemsize,), dtype)
    elif drawn.random() < 0.3:  # packed
        strides = (shape[1], 1) if drawn.random() < 0.5 else (1, shape[0])
        layout = strided(shape, (strides[0] * dtype.itemsize, strides[1] * dtype.itemsize), dtype)
    else:
        layout = strided(shape, tuple(rows if drawn.random() < 0.5 else rows[::-1]), dtype)
    first = drawn.choice([0, 1, 8, SIDE + 3]) * dtype.itemsize
    return View(root, first, layout.shape, layout.strides, dtype.str, "C")


def _shapes(drawn: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rows, summed, columns = (drawn.choice([1, 2, 3, 7, 16, 33, 64, 100, 150]) for _ in range(3))
    drawn_kind = drawn.random()
    if drawn_kind < 0.25:
        return (summed,), (summed, columns)
    return (rows, summed), (summed,) if drawn_kind < 0.5 else (summed, columns)


def _require_same(on: PlayedNotebook, plain: PlayedNotebook, op: Op) -> None:
    """Have an op give the same bits in both, and drop what it made."""
    for one in (on, plain):
        assert not one.run(op), op.args
    assert on.contents(Ref(MADE)).tobytes() == plain.contents(Ref(MADE)).tobytes(), op.args
    for one in (on, plain):
        one.run(Op(".nothing", 0, (), (MADE,)))


def _done(on: PlayedNotebook) -> int:
    """Return how many products went past CuPy's handling of arguments."""
    assert on.stream._direct is not None
    assert on.stream._direct.products is not None
    return on.stream._direct.products.done


@pytest.mark.gpu
@pytest.mark.parametrize("code", ["<f4", "<f8", "<c8", "<c16"])
def test_products_give_cupys_bits(code: str) -> None:
    from gpu_backend.devices.cuda import CudaDevice

    device, dtype = CudaDevice(), np.dtype(code)
    drawn, numbers = random.Random(code), np.random.default_rng(3)
    tables = [numbers.normal(size=(SIDE, SIDE)).astype(dtype) for _ in range(2)]
    if dtype.kind == "c":
        tables = [(one + 1j * one[::-1]).astype(dtype) for one in tables]

    def played(passes: tuple[str, ...]) -> PlayedNotebook:
        on = PlayedNotebook(passes, device)
        for handle, table in zip((FIRST, SECOND), tables, strict=True):
            on.stream.heap.put(handle, device.upload(table))
            on.stream.heap.ownership.own(handle)
        return on

    on, plain, without_copies = played(PASSES), played(()), 0
    for _ in range(DRAWN):
        first, second = _shapes(drawn)
        args = _window(drawn, FIRST, dtype, first), _window(drawn, SECOND, dtype, second)
        call = gemm(*(strided(one.shape, one.strides, dtype) for one in args))
        without_copies += call is not None and call.first_copy is None and call.second_copy is None
        op = Op(drawn.choice(["cupy.matmul", "cupy.dot", "cupy.ndarray.dot"]), MADE, args)
        _require_same(on, plain, op)
    assert _done(on) >= without_copies > 0


def _stack(
    drawn: random.Random, root: int, dtype: np.dtype[Any], heap: tuple[int, ...], shape: tuple[int, ...]
) -> View:
    """Return a window of stacked matrices of ``shape``: packed, or with the last two axes turned."""
    is_turned = len(shape) == 2 and drawn.random() < 0.3
    strides = list(contiguous_strides((*heap, *(shape[::-1] if is_turned else shape)), dtype.itemsize))
    if is_turned:
        strides[-2:] = strides[:-3:-1]
    first = drawn.choice([0, 1, 8]) * dtype.itemsize
    return View(root, first, (*heap, *shape), tuple(strides), dtype.str, "C")


@pytest.mark.gpu
@pytest.mark.parametrize("code", ["<f4", "<f8", "<c8", "<c16"])
def test_products_of_stacks_give_cupys_bits(code: str) -> None:
    from gpu_backend.devices.cuda import CudaDevice

    device, dtype = CudaDevice(), np.dtype(code)
    drawn, numbers = random.Random(code), np.random.default_rng(3)
    flat = [numbers.normal(size=1 << 18).astype(dtype) for _ in range(2)]
    on, plain = PlayedNotebook(PASSES, device), PlayedNotebook((), device)
    for one in (on, plain):
        for handle, values in zip((FIRST, SECOND), flat, strict=True):
            one.stream.heap.put(handle, device.upload(values))
            one.stream.heap.ownership.own(handle)
    without_copies = 0
    for _ in range(DRAWN):
        rows, summed, columns = (drawn.choice([1, 2, 7, 16, 33, 64]) for _ in range(3))
        outer = tuple(drawn.choice([1, 2, 3, 5]) for _ in range(drawn.choice([1, 1, 2])))
        heaps = [tuple(drawn.choice([one, one, one, 1]) for one in outer), outer]
        if drawn.random() < 0.3:
            heaps[0] = ()
        drawn.shuffle(heaps)
        is_vector = not heaps[1] and drawn.random() < 0.5
        args = (
            _stack(drawn, FIRST, dtype, heaps[0], (rows, summed)),
            _stack(drawn, SECOND, dtype, heaps[1], (summed,) if is_vector else (summed, columns)),
        )
        call = stacks(*(strided(one.shape, one.strides, dtype) for one in args))
        without_copies += call is not None and call.first_copy is None and call.second_copy is None
        op = Op("cupy.matmul", MADE, args)
        _require_same(on, plain, op)
    assert _done(on) >= without_copies > 0


@pytest.mark.gpu
@pytest.mark.parametrize(
    "heaps",
    [
        ((3600,), ()), ((), (3600,)), ((60, 1), (1, 60)), ((1,), (4000,)), ((7, 1, 5), (11, 1)),
        ((3, 1, 5, 1), (7, 1, 9)), ((2, 3, 4, 5), (3, 1, 5)), ((1, 3, 1, 5), (2, 1, 4, 1)),
        ((2, 1, 2, 2, 2), (3, 1, 1, 1)),
    ],
)  # fmt: skip
def test_products_of_many_small_matrices_give_cupys_bits(heaps: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    from gpu_backend.devices.cuda import CudaDevice

    device, dtype = CudaDevice(), np.dtype("<f8")
    numbers = np.random.default_rng(3).normal(size=1 << 18)
    on, plain = PlayedNotebook(PASSES, device), PlayedNotebook((), device)
    for one in (on, plain):
        for handle in (FIRST, SECOND):
            one.stream.heap.put(handle, device.upload(numbers))
            one.stream.heap.ownership.own(handle)
    shapes = (*heaps[0], 3, 4), (*heaps[1], 4, 5)
    args = tuple(
        View(root, 0, shape, contiguous_strides(shape, dtype.itemsize), dtype.str, "C")
        for root, shape in zip((FIRST, SECOND), shapes, strict=True)
    )
    _require_same(on, plain, Op("cupy.matmul", MADE, args))
    assert _done(on) == (max(map(len, heaps)) <= MOST_AXES)
