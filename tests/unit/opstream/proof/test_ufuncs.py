"""Results of ufuncs, where NumPy promotes and broadcasts as CuPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpu_backend.opstream.layout import Layout, contiguous
from gpu_backend.opstream.proof import Returned, Unproved, infer, infer_inplace, prove, ufunc_rule
from tests.calls import calls_of

DTYPES = [np.dtype(char) for char in "?bBhHiIlLefdFD"]
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3).map(tuple)
SCALARS = st.sampled_from([0, 1, 5, -3, 200, 70_000, 2**40, 1.5, 0.0, 2j, True])
#: Ufuncs with the same loops in both libraries.
SAME = ["add", "multiply", "maximum", "divide", "floor_divide", "power", "less", "equal", "bitwise_and", "logaddexp"]


def layout(shape: tuple[int, ...] = (3,), dtype: Any = float) -> Layout:
    return contiguous(shape, np.dtype(dtype))


@given(st.sampled_from(SAME), SHAPES, SHAPES, st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_two_arrays_are_as_in_numpy(
    name: str, first: tuple[int, ...], second: tuple[int, ...], one: np.dtype[Any], other: np.dtype[Any]
) -> None:
    try:
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(np.ones(first, one), np.ones(second, other))
    except (TypeError, ValueError):
        with pytest.raises((TypeError, ValueError)):  # where both are due, CuPy looks at the shapes first
            ufunc_rule(f"cupy.{name}").result(layout(first, one), layout(second, other))
        return
    made = ufunc_rule(f"cupy.{name}").result(layout(first, one), layout(second, other))
    assert isinstance(made, Layout)
    assert (made.shape, made.dtype, made.c_contiguous) == (expected.shape, expected.dtype, True)


@given(st.sampled_from(["add", "multiply", "divide", "maximum"]), st.sampled_from(DTYPES), SCALARS, st.booleans())
def test_weak_scalars_are_as_in_numpy(name: str, dtype: np.dtype[Any], scalar: Any, first: bool) -> None:
    def call(function: Any, array: Any) -> Any:
        return function(scalar, array) if first else function(array, scalar)

    assume(not (name == "maximum" and isinstance(scalar, complex)))
    try:
        with np.errstate(all="ignore"):
            expected = call(getattr(np, name), np.ones(2, dtype))
    except (OverflowError, TypeError) as error:
        with pytest.raises(type(error)):
            call(ufunc_rule(f"cupy.{name}").result, layout((2,), dtype))
        return
    made = call(ufunc_rule(f"cupy.{name}").result, layout((2,), dtype))
    assert isinstance(made, (Layout, Unproved))
    if isinstance(made, Layout):
        assert made.dtype == expected.dtype
    else:
        assert dtype.char in "ef"  # a value beyond the range of a small float may make NumPy warn


def test_a_proof_for_one_value_is_none_for_another() -> None:
    rule, x = ufunc_rule("cupy.add"), layout((3,), "u1")
    assert rule.result(x, 5).dtype == np.uint8
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for uint8"):
        rule.result(x, 300)
    assert rule.result(x, True).dtype == np.uint8
    assert rule.result(x, 5.0).dtype == np.float64
    assert isinstance(rule.result(layout((3,), "e"), 1e6), Unproved)


def test_numpy_scalars_are_strong() -> None:
    rule = ufunc_rule("cupy.multiply")
    assert rule.result(layout((3,), "f4"), 2.0).dtype == np.float32
    assert rule.result(layout((3,), "f4"), np.float64(2)).dtype == np.float64


@pytest.mark.parametrize("operand", [[1, 2], "a", None, np.arange(3)])
def test_unsupported_operands(operand: Any) -> None:
    with pytest.raises(TypeError, match="Unsupported type <class"):
        ufunc_rule("cupy.add").result(layout(), operand)


def test_refusals_have_cupys_words() -> None:
    flags = layout((2,), bool)
    with pytest.raises(TypeError, match="cupy boolean subtract"):
        ufunc_rule("cupy.subtract").result(flags, flags)
    with pytest.raises(ValueError, match=r"operands could not be broadcast together with shapes \(2,\) \(3,\)"):
        ufunc_rule("cupy.add").result(layout((2,)), layout((3,)))
    with pytest.raises(TypeError, match=r"Wrong type \(\(dtype\('float64'\),\)\) of arguments for cupy_invert"):
        ufunc_rule("cupy.invert").results(layout())


def test_several_outputs() -> None:
    made = prove("cupy.divmod", (layout((3,), int), 2))
    assert made == (layout((3,), int), layout((3,), int))


def test_outputs() -> None:
    x, y = layout((2, 3)), layout((2, 3), "f4")
    assert prove("cupy.add", (x, x), {"out": y}) == Returned("out")
    assert prove("cupy.add", (x, x, y)) == Returned(2)
    assert infer("cupy.add", (x, x), {"out": y}) is y
    assert isinstance(infer("cupy.add", (x, x, y), {}), Unproved)
    with pytest.raises(ValueError, match="Out shape is mismatched"):
        prove("cupy.add", (x, x), {"out": layout((3,))})
    with pytest.raises(TypeError, match="Cannot cast output operand"):
        prove("cupy.add", (x, x), {"out": layout((2, 3), int)})


def test_in_place() -> None:
    x = layout((2, 3), "f4")
    assert infer_inplace("cupy.add", x, x) is None
    assert infer_inplace("cupy.add", x, 2.0) is None
    assert infer_inplace("cupy.add", x, layout((3,), float)) is None
    with pytest.raises(TypeError, match="Cannot cast output operand"):
        infer_inplace("cupy.add", layout((3,), int), 1.5)
    with pytest.raises(ValueError, match="Out shape is mismatched"):
        infer_inplace("cupy.add", layout((3,)), layout((2, 3)))
    counts = layout((3,), "u1")
    assert infer_inplace("cupy.add", counts, 1) is None
    with pytest.raises(OverflowError):
        infer_inplace("cupy.add", counts, 256)


def test_loops_that_cuda_cannot_compile_are_not_claimed() -> None:
    assert isinstance(ufunc_rule("cupy.hypot").result(layout((2,), complex), layout((2,))), Unproved)


def test_the_result_of_a_known_pair_costs_one_look_up() -> None:
    rule, x, y = ufunc_rule("cupy.add"), layout((100, 100)), layout((100, 1))
    rule.result(x, y)
    rule.result(x, 2.0)
    nothing = calls_of(lambda: None)
    assert calls_of(lambda: rule.result(x, y)) - nothing <= 2  # itself and the look-up: 0.15 us where it was measured
    assert calls_of(lambda: rule.result(x, 2.0)) - nothing <= 3


def test_limits_are_told_of_numbers_that_they_hold_for() -> None:
    flags = layout((2,), "?")
    rule = ufunc_rule("cupy.multiply")
    for first, second in ((flags, 1), (1, flags)):
        assert rule.result(first, second) is layout((2,), "i8")
        limits = limits_of_ints = rule.limits(first, second)
        assert limits is not None
        assert limits[0] <= 1 <= limits[1] < 2**63
    large = 2**63 + 7  # enters promotion as another dtype
    for first, second in ((flags, large), (large, flags)):
        assert rule.result(first, second) is layout((2,), "u8")
        assert rule.limits(first, second) is None
    whole = layout((2,), "i8")
    assert rule.inplace(whole, 1) is None
    assert rule.limits_inplace(whole, 1) == (-(2**63), 2**63 - 1)
    assert rule.limits_inplace(whole, large) is None
    assert rule.limits_inplace(whole, True) is None, "nothing was proved of a bool"
    assert rule.inplace(whole, True) is None
    assert rule.limits_inplace(whole, False) == (False, True)
    assert rule.result(flags, True) is layout((2,), "?")
    assert rule.limits(flags, False) == (False, True)
    assert rule.limits(flags, 1) == limits_of_ints
