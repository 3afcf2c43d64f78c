"""Powers that CuPy's operator leaves to another ufunc are gathered as that; all others go as they went."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Complex, Ref, Scalar, Value
from tests.unit.executor.program.played import window
from tests.unit.executor.program.test_segments import notebook


@pytest.mark.parametrize("array", [Ref(3), window(1, 2)])
@pytest.mark.parametrize("exponent", [2, 2.0, 0.5, -1.0])
def test_some_powers_are_gathered(array: Value, exponent: float) -> None:
    (on, launched), (plain, _) = notebook(), notebook(())
    for one in (on, plain):
        one.run(Op("cupy.ndarray.__pow__", 20, (array, exponent)))
    assert launched == [1]
    found, expected = on.contents(Ref(20)), plain.contents(Ref(20))
    assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())


@pytest.mark.parametrize(
    "exponent", [3, 1, 0, -1, True, 2.5, -0.5, Scalar("<f8", np.float64(2.0).tobytes()), Complex(2, 0)]
)
def test_powers_that_cupy_computes_as_such_are_not_gathered(exponent: Value) -> None:
    on, launched = notebook()
    assert not on.run(Op("cupy.ndarray.__pow__", 20, (Ref(3), exponent)))
    assert not launched


@pytest.mark.parametrize(
    ("dtype", "exponent", "is_gathered"),
    [("i4", 2, True), ("u4", 2, False), ("?", 2, False), ("i4", 2.0, False), ("i8", 0.5, False), ("f4", -1.0, True)],
)
def test_a_power_is_gathered_where_its_ufunc_finds_its_types_itself(
    dtype: str, exponent: float, is_gathered: bool
) -> None:
    (on, launched), (plain, _) = notebook(), notebook(())
    for one in (on, plain):
        one.stream.heap.put(50, np.arange(1, 5).astype(dtype))
        one.run(Op("cupy.ndarray.__pow__", 51, (Ref(50), exponent)))
    assert bool(launched) is is_gathered
    found, expected = on.contents(Ref(51)), plain.contents(Ref(51))
    assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())


def test_one_way_of_a_power_is_told_from_the_other() -> None:
    on, _ = notebook()
    ops = [Op("cupy.ndarray.__pow__", 20 + turn, (Ref(3), (2, 0.5, 2.0, -1.0, 3)[turn % 5])) for turn in range(40)]
    on.run(*ops)
    first = on.contents(Ref(3))
    for turn in range(40):
        expected = (first**2, first**0.5, first**2.0, first**-1.0, first**3)[turn % 5]
        assert on.contents(Ref(20 + turn)).tobytes() == expected.tobytes()
