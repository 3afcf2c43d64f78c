from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.exceptions import AxisError

from gpu_backend.opstream.layout import Layout, contiguous
from gpu_backend.opstream.proof import Returned, Unproved, kernels

F32, F64, I32 = np.dtype("f"), np.dtype("d"), np.dtype("i")
SUM = (("T x", "T y", "x", "a + b", "y = a", "0", "total"), {})


def elementwise(definition: tuple[Any, ...], *args: Any, **kwargs: Any) -> Any:
    return kernels.result("cupy.ElementwiseKernel", ((*definition, "source"), {}), args, kwargs)


def reduction(*args: Any, **kwargs: Any) -> Any:
    return kernels.result("cupy.ReductionKernel", SUM, args, kwargs)


def array(*shape: int, dtype: np.dtype[Any] = F32, order: str = "C") -> Layout:
    return contiguous(shape, dtype, order)


def test_letters_take_the_dtypes_of_arrays_and_shapes_broadcast() -> None:
    assert elementwise(("T x, S y", "S z"), array(3, 1, order="F"), array(4, dtype=I32)) == array(3, 4, dtype=I32)


def test_named_dtypes_are_as_they_are_named() -> None:
    assert elementwise(("T x", "float64 z, T w"), array(2)) == (array(2, dtype=F64), array(2))


def test_scalars_do_not_decide() -> None:
    assert elementwise(("T x, T y", "T z"), array(3), 2.5) == array(3)
    assert elementwise(("T x, T y", "T z"), array(3), np.float64(2.5)) == array(3)
    with pytest.raises(ValueError, match="Loop size is undecided"):
        elementwise(("T x", "T z"), 2.5)


def test_raw_arrays_are_outside_the_loop() -> None:
    assert elementwise(("T x, raw S table", "S z"), array(3), array(100, dtype=F64)) == array(3, dtype=F64)
    assert elementwise(("raw T x", "T z"), array(9), size=4) == array(4)
    with pytest.raises(ValueError, match="can be used only if all of the ndarray are 'raw'"):
        elementwise(("T x", "T z"), array(3), size=3)
    with pytest.raises(ValueError, match="Output array size is Undecided"):
        elementwise(("T x", "raw T z"), array(3))


def test_given_outputs_come_back() -> None:
    """The kernel itself is argument 0."""
    assert elementwise(("T x", "T y, T z"), array(3), array(3), array(3, order="F")) == (Returned(2), Returned(3))
    with pytest.raises(ValueError, match="Out shape is mismatched"):
        elementwise(("T x", "T z"), array(3), array(1))


def test_what_a_kernel_was_made_with() -> None:
    definition = ("T x", "T z", "z = x")
    made = kernels.result("cupy.ElementwiseKernel", (definition, {"no_return": True}), (array(3),), {})
    assert made is None
    made = kernels.result("cupy.ElementwiseKernel", (definition, {"return_tuple": True}), (array(3),), {})
    assert made == (array(3),)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            (array(2),),
            r"Wrong number of arguments for 'kernel'\. It must be either 2 or 3 \(with outputs\), but given 1",
        ),
        ((array(2), array(2, dtype=F64)), r"Type is mismatched\. y float64 float32 T"),
    ],
)
def test_wrong_arguments(args: tuple[Any, ...], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        elementwise(("T x, T y", "T z"), *args)


def test_a_letter_that_nothing_decides() -> None:
    with pytest.raises(KeyError, match="S"):
        elementwise(("T x", "S z"), array(3))


def test_a_reduction_of_all_or_some_axes() -> None:
    assert reduction(array(2, 3)) == array()
    assert reduction(array(2, 3, order="F"), axis=0) == array(3)
    assert reduction(array(2, 3, 4), axis=(0, -1), keepdims=True) == array(1, 3, 1)
    assert reduction(array(2, 3), axis=1, out=array(2)) == Returned("out")
    with pytest.raises(AxisError):
        reduction(array(2, 3), axis=2)


@pytest.mark.parametrize("argument", ["text", None, object(), np.zeros(3)])
def test_what_is_not_known_is_not_claimed(argument: Any) -> None:
    assert isinstance(elementwise(("T x, T y", "T z"), array(3), argument), Unproved)


def test_a_scalar_that_its_parameter_cannot_hold() -> None:
    with pytest.raises(OverflowError, match="300 out of bounds for int8"):
        elementwise(("T x, T y", "T z"), array(3, dtype=np.dtype("b")), 300)
    assert isinstance(elementwise(("T x, T y", "T z"), array(3, dtype=I32), 1.5), Unproved)
