"""Which results of ufuncs the notebook computes, and in which types; the device says the same in other tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream.layout import contiguous
from gpu_backend.wire.values import Ref
from kernelproxy.mirror.casts import Unknown, cast, scalar
from kernelproxy.mirror.elementwise import compute
from kernelproxy.mirror.memory import Memory


def number(value: object, dtype: str) -> np.ndarray[Any, Any]:
    return np.asarray(value, dtype)


@pytest.mark.parametrize(
    ("name", "operands", "result"),
    [
        ("bitwise_and", (number(0x1FF, "i8"), 1), number(1, "i8")),
        ("bitwise_xor", (number(7, "u2"), number(5, "u2")), number(2, "u2")),
        ("right_shift", (number([64, 9], "i4"), 1), number([32, 4], "i4")),
        ("add", (number(250, "u1"), 10), number(4, "u1")),
        ("add", (number(3, "i4"), number(4, "i8")), number(7, "i8")),
        ("add", (number(1.5, "f4"), 2), number(3.5, "f4")),
        ("subtract", (True, number(2.5, "f8")), number(-1.5, "f8")),
        ("divide", (number(1, "i8"), 4), number(0.25, "f8")),
        ("greater", (number(3, "i4"), number(-4, "i4")), number(True, "?")),
        ("greater", (number(3, "u1"), -1), number(True, "?")),
        ("greater", (number([3, 4], "i8"), 3), number([False, True], "?")),
        ("less", (number(np.nan, "f8"), 1.0), number(False, "?")),
        ("logical_and", (number(2, "i8"), number(1, "i8")), number(True, "?")),
        ("logical_not", (number([2, 0], "i2"),), number([False, True], "?")),
        ("minimum", (np.int32(3), number([5, 1], "i4")), number([3, 1], "i4")),
        ("sqrt", (number(9, "i8"),), number(3.0, "f8")),
    ],
)  # fmt: skip
def test_results_and_their_types(name: str, operands: tuple[Any, ...], result: np.ndarray[Any, Any]) -> None:
    made = compute(f"cupy.{name}", operands, True)
    assert (made.dtype, made.shape, made.tobytes()) == (result.dtype, result.shape, result.tobytes())
    assert not any(np.shares_memory(made, one) for one in operands if isinstance(one, np.ndarray))


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("add", (number(1, "u1"), 300)), ("add", (number(1, "u8"), 1 << 63)), ("add", (number(1, "i8"), 1 << 70)),
        ("left_shift", (number(1, "i4"), 32)), ("left_shift", (number(1, "i4"), number([1, -1], "i4"))),
        ("floor_divide", (number(1, "i4"), number(0, "i4"))), ("floor_divide", (number(1.0, "f8"), 2.0)),
        ("add", (number(np.nan, "f8"), 1.0)), ("maximum", (number(0.0, "f8"), number(-0.0, "f8"))),
        ("add", (number(1j, "c16"), 1.0)), ("add", (number(1.0, "f8"), (1 << 53) + 1)), ("sin", (number(1.0, "f8"),)),
        ("add", (number(1, "i8"),)), ("square", (np.longdouble(0.5),)), ("logical_xor", (number(1, "i8"),)),
    ],
)  # fmt: skip
def test_what_machines_differ_in_is_not_known(name: str, operands: tuple[Any, ...]) -> None:
    with pytest.raises(Unknown):
        compute(f"cupy.{name}", operands, True)


def test_who_gives_too_many_operands_has_none_of_them_written() -> None:
    operands = number(1 << 24, "i8"), number(0, "i8")
    with pytest.raises(Unknown):
        compute("cupy.logical_not", operands, False)
    assert [int(one) for one in operands] == [1 << 24, 0]


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("multiply", (number(1e-200, "f8"), 1e-200)), ("subtract", (number(np.inf, "f8"), np.inf)),
        ("divide", (number(0, "i8"), 0)),
    ],
)  # fmt: skip
def test_what_underflows_or_is_no_number_is_not_known(name: str, operands: tuple[Any, ...]) -> None:
    with pytest.raises(FloatingPointError):
        compute(f"cupy.{name}", operands, True)


def test_what_overflows_is_infinite_without_a_warning() -> None:
    assert compute("cupy.multiply", (number(1e300, "f8"), 1e300), False) == np.inf
    assert compute("cupy.divide", (number(1.0, "f8"), 0.0), False) == np.inf


def test_casts_look_at_what_is_lost_without_a_warning() -> None:
    with pytest.raises(FloatingPointError):
        cast(number(1e-310, "f8"), np.dtype("f4"))
    for value, dtype in ((1 << 20, "f2"), (-1, "u4"), (1 << 31, "i4"), ((1 << 24) + 1, "f4")):
        with pytest.raises((Unknown, OverflowError)):
            scalar(value, np.dtype(dtype))
    assert scalar(1 << 40, np.dtype("f8")).tobytes() == number(2.0**40, "f8").tobytes()
    assert scalar(2, np.dtype("?")).tobytes() == b"\1"


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_written_into_memory_is_written_nowhere_else(order: str) -> None:
    layout = contiguous((2, 3), np.dtype("i4"), order)
    held = np.arange(6, dtype="i4").reshape(2, 3)
    for values in (held[:], held.T.copy().T, held.copy()):
        memory = Memory.of(layout, values)
        assert memory.array.tobytes("A") == held.tobytes(order)
        memory.write(Ref(1), np.zeros((2, 3), "i4"), lambda: None)
        assert not memory.array.any()
        assert held.tolist() == [[0, 1, 2], [3, 4, 5]]
    for other in (np.zeros((3, 2), "i4"), np.zeros((2, 3), "i8")):
        with pytest.raises(Unknown):
            Memory.of(layout, other)


def test_equal_numbers_that_are_not_the_same_are_told_apart() -> None:
    """A number that stands in a program is kept as an array, of each type by itself, and zeros by their sign."""
    ones, whole = np.ones(()), np.ones((), "i8")
    for number in (0.0, -0.0, 0.0):
        assert np.signbit(compute("cupy.multiply", (ones, number), False)) == np.signbit(number)
    for number in (1, 1.0, True, 1.0, 1):
        made = compute("cupy.add", (whole, number), False)
        assert (made.dtype, made) == ((whole + number).dtype, 2)
    half = np.zeros((), "f2")
    assert compute("cupy.add", (half, 2049.0), False) == 2048  # a float is rounded as everybody does
    with pytest.raises(Unknown):  # and a whole number as each likes
        compute("cupy.add", (half, 2049), False)


def test_numbers_that_are_kept_are_nobodys_result() -> None:
    for number in (3, 2.5):
        made = Memory.of(contiguous((), np.dtype("f8")), compute("cupy.add", (np.zeros(()), number), False))
        made.write(Ref(1), np.asarray(7.0), lambda: None)
        assert compute("cupy.add", (np.zeros(()), number), False) == number


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (1, 6), (6, 1), (3, 1, 2)])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "f8"])
def test_memory_lies_as_its_layout_says(shape: tuple[int, ...], order: str, dtype: str) -> None:
    layout = contiguous(shape, np.dtype(dtype), order)
    values = np.arange(layout.size, dtype="u1").astype(dtype).reshape(shape)
    for given in (values.copy(), np.array(values, order="F"), values[::-1][::-1] if shape else values):
        memory = Memory.of(layout, given)
        assert (memory.array.shape, memory.array.strides, memory.array.dtype) == (shape, layout.strides, layout.dtype)
        np.testing.assert_array_equal(memory.array, values)
