"""Numbers that no array of the dtype could hold: what CuPy casts, what it refuses, and what it says of it.

CuPy puts some numbers into a dtype by NumPy's assignment and casts others in a kernel. The classes of errors and
warnings are those of CuPy's own code, asked without a device (``python -m tests.cupy_oracle``).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.conformance.in_process import InProcess
from tests.cupy_names import CuPy

MOST = 2147483647


@pytest.fixture
def scope(executor: InProcess) -> dict[str, Any]:
    cp = CuPy()
    names = {"i": "i", "f": "f", "b": "?", "c": "F", "u": "B"}
    made = {name: cp.zeros((3, 4), dtype) for name, dtype in names.items()}
    return {"__name__": "__main__", "cp": cp, "np": np, "nan": np.nan, "inf": np.inf, **made}


def run(statement: str, scope: dict[str, Any]) -> set[str]:
    """Run a statement, and wait for what it makes; return the classes of what it warns of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        exec(compile(statement, "<statement>", "exec"), scope)
        if hasattr(scope.get("r"), "get"):
            scope["r"].get()
    return {one.category.__name__ for one in told}


@pytest.mark.parametrize(
    ("statement", "name", "first", "told"),
    [
        ("cp.copyto(i, 1e30, casting='unsafe')", "i", MOST, {"RuntimeWarning"}),
        ("cp.copyto(i, -1e30, casting='unsafe')", "i", -MOST - 1, {"RuntimeWarning"}),
        ("cp.copyto(i, nan, casting='unsafe')", "i", -MOST - 1, {"RuntimeWarning"}),
        ("cp.copyto(i, np.float32(nan), casting='unsafe')", "i", 0, set()),
        ("cp.copyto(i, 1e30, casting='unsafe', where=~b)", "i", MOST, {"RuntimeWarning"}),
        ("cp.copyto(i, np.float64(1e30), casting='unsafe')", "i", MOST, set()),
        ("cp.copyto(f, 1e300, casting='unsafe')", "f", np.inf, {"RuntimeWarning"}),
        ("cp.copyto(f, c + 2, casting='unsafe')", "f", 2, {"ComplexWarning"}),
        ("cp.copyto(f, 2 - 1j, casting='unsafe')", "f", 2, {"ComplexWarning"}),
        ("cp.copyto(b, 1j, casting='unsafe')", "b", True, set()),
        ("cp.copyto(f[:0], 2**70)", "f", 0, set()),
        ("r = cp.full((2,), 3 - 1j, 'Q')", "r", 3, {"ComplexWarning"}),
        ("r = cp.full_like(f, 3 - 1j, dtype='b')", "r", 3, {"ComplexWarning"}),
        ("r = cp.full_like(f, np.float64(1e30), dtype='i')", "r", MOST, set()),
        ("i.real = 2**32 + 5", "i", 5, set()),
        ("f.real = 2 - 1j", "f", 2, {"ComplexWarning"}),
        ("c.imag = 3 - 1j", "c", 3j, {"ComplexWarning"}),
        ("c.real = 2**63", "c", 2.0**63, set()),
        ("c.imag = 2", "c", 2j, set()),
        ("r = cp.multiply(f + 2, np.complex64(3 - 1j), dtype='f', casting='unsafe')", "r", 6, {"ComplexWarning"}),
        ("r = cp.add(f, 1e300, dtype='f')", "r", np.inf, {"RuntimeWarning"}),
        ("r = cp.linspace(2**63, 3, 4)", "r", 2.0**63, set()),
        ("r = cp.linspace(-1, 2**70, 4)[::-1]", "r", 2.0**70, set()),
        ("r = +(~b)", "r", True, {"DeprecationWarning"}),
    ],
)
def test_what_is_cast(scope: dict[str, Any], statement: str, name: str, first: object, told: set[str]) -> None:
    assert run(statement, scope) == told
    assert scope[name].get().flat[0] == first


@pytest.mark.parametrize("source", "efdFD")
@pytest.mark.parametrize("target", "?bBhHiIqQ")
def test_nan_becomes_the_highest_bit_where_either_has_64_bits(scope: dict[str, Any], source: str, target: str) -> None:
    """As of a GPU's instructions; fewer than 32 bits are the lower ones of 32."""
    wide, dtype = np.dtype(source.lower()).char == "d", np.dtype(target)
    is_highest = dtype.itemsize == 8 or (wide and dtype.itemsize == 4)
    expected = 0 if not is_highest else np.iinfo(dtype).min if dtype.kind == "i" else 1 << 8 * dtype.itemsize - 1
    run(f"r = cp.asarray(np.array([nan, 3, nan], '{source}')).astype('{target}')", scope)
    assert scope["r"].get().tolist() == ([True] * 3 if target == "?" else [expected, 3, expected])


@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("nan", "5", [1, np.nan, 5]), ("2", "nan", [2, np.nan, 7]), ("nan", "nan", [1, np.nan, 7]),
        ("None", "5", [1, np.nan, 5]), ("2", "None", [2, np.nan, 7]), ("2", "5", [2, np.nan, 5]), ("6", "2", [2, 2, 2]),
    ],
)  # fmt: skip
def test_a_bound_that_is_nan_bounds_nothing(
    scope: dict[str, Any], dtype: str, low: str, high: str, expected: list[float]
) -> None:
    run(f"x = cp.asarray(np.array([1, nan, 7], '{dtype}')); r = cp.clip(x, {low}, {high})", scope)
    np.testing.assert_array_equal(scope["r"].get(), np.array(expected, dtype))
    if "None" not in (low, high):
        run(f"r = x.clip(cp.full(3, {low}, x.dtype), cp.full(3, {high}, x.dtype))", scope)
        np.testing.assert_array_equal(scope["r"].get(), np.array(expected, dtype))


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("cp.copyto(f, 2**70)", OverflowError),
        ("cp.copyto(i, -2**70, casting='unsafe')", OverflowError),
        ("cp.copyto(u, -1)", OverflowError),
        ("cp.copyto(f, 1e-30, casting='equiv')", TypeError),
        ("cp.copyto(f, [1])", AttributeError),
        ("cp.full((3, 4), 2**70, 'e')", OverflowError),
        ("cp.full_like(f, 2**64, dtype='?')", OverflowError),
        ("c.imag = 2**70", OverflowError),
        ("i.imag = 1", TypeError),
        ("cp.fill_diagonal(u, -200)", OverflowError),
        ("cp.fill_diagonal(f, 1j)", TypeError),
        ("cp.add(i, np.float32(nan), dtype='q')", ValueError),
        ("cp.multiply(b, np.float32(nan), dtype='q', casting='safe')", ValueError),
        ("cp.multiply(b, complex(nan, 1), dtype='b', casting='unsafe')", TypeError),
        ("cp.add(u, np.int64(300), dtype='b')", OverflowError),
        ("cp.linspace(-2**63 - 1, 2**31, 4)", OverflowError),
        ("cp.linspace(2**64, 0, 4)", OverflowError),
        ("cp.linspace(-1, np.uint8(255), 4)", OverflowError),
        ("cp.linspace(2, complex(nan, 1), 4)", TypeError),
        ("cp.angle(f, f)", ValueError),
        ("cp.positive(b)", TypeError),
    ],
)
def test_what_is_refused_is_refused_at_its_own_line(
    scope: dict[str, Any], statement: str, error: type[Exception]
) -> None:
    for _ in range(2):
        with pytest.raises(error):
            run(statement, scope)
    scope["i"].get()  # and nothing is left to fail


def test_a_number_is_looked_at_when_a_kernel_is_launched_only(scope: dict[str, Any]) -> None:
    assert run("r = cp.multiply(f[:0], complex(nan, 1), dtype='b', casting='unsafe')", scope) == set()
    assert (scope["r"].shape, scope["r"].dtype) == ((0, 4), np.dtype("b"))


@pytest.mark.parametrize("key", ["1.5", "np.float64(1)", "-2.9 + 1", "np.float32(-1.5)"])
def test_any_number_is_an_index_by_its_integer_part(scope: dict[str, Any], key: str) -> None:
    run("r = cp.arange(12).reshape(3, 4)", scope)
    host = np.arange(12).reshape(3, 4)
    place = int(eval(key))
    for _ in range(2):
        np.testing.assert_array_equal(eval(f"r[{key}].get()", scope), host[place])
        np.testing.assert_array_equal(eval(f"r[..., {key}].get()", scope), host[..., place])
        np.testing.assert_array_equal(eval(f"r[{key}, 1:].get()", scope), host[place, 1:])
        run(f"r[{key}, {key}] += 100", scope)
        host[place, place] += 100
        np.testing.assert_array_equal(scope["r"].get(), host)


@pytest.mark.parametrize(
    ("key", "error"),
    [("2**65", OverflowError), ("0, -2**65", OverflowError), ("nan", ValueError), ("inf", OverflowError),
     ("9.5", IndexError), ("1j", TypeError)],
)  # fmt: skip
def test_what_is_no_index_is_refused(scope: dict[str, Any], key: str, error: type[Exception]) -> None:
    for statement in (f"i[{key}]", f"i[{key}] = 3", f"i[{key}] += 3", f"i[cp.zeros(2, int), {key}]"):
        if statement.count(",") < 3:
            with pytest.raises(error):
                run(statement, scope)


def test_the_imaginary_part_of_real_numbers_lies_in_c_order(scope: dict[str, Any]) -> None:
    part = scope["f"].T.imag
    assert part.strides == (12, 4)
    assert not part.get().any()


def test_a_program_without_a_name_is_warned_too(scope: dict[str, Any]) -> None:
    del scope["__name__"]
    assert run("cp.copyto(i, 1e30, casting='unsafe')", scope) == {"RuntimeWarning"}
