"""The door of the engine: what it takes, what it gives, and that it says when it does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream import surface
from gpu_backend.opstream.layout import Layout, contiguous, strided
from gpu_backend.opstream.proof import Returned, Unproved, View, infer, prove, registry
from gpu_backend.opstream.proof.setitem import is_proved, refuse_host_values, setitem


def layout(shape: tuple[int, ...] = (3,), dtype: Any = float, order: str = "C") -> Layout:
    return contiguous(shape, np.dtype(dtype), order)


def test_new_arrays_views_and_arguments() -> None:
    x = layout((2, 3))
    assert prove("cupy.sum", (x,), {"axis": 0}) == layout((3,))
    assert prove("cupy.transpose", (x,)) == View(0, strided((3, 2), (8, 24), x.dtype), 0)
    assert prove("cupy.asarray", (x,)) == Returned(0)
    assert prove("cupy.asarray", (), {"a": x}) == Returned("a")
    assert prove("cupy.split", (x, 2)) == [View(0, layout((1, 3)), 0), View(24, layout((1, 3)), 0)]
    assert prove("cupy.ndarray.__setitem__", (x, 0, 1.0)) is None


def test_infer_speaks_of_new_arrays_only() -> None:
    x = layout((2, 3))
    assert infer("cupy.ndarray.mean", (x,), {}) == layout(())
    assert isinstance(infer("cupy.transpose", (x,), {}), Unproved)
    assert isinstance(infer("cupy.asarray", (x,), {}), Unproved)
    assert infer("cupy.meshgrid", (layout(), layout((2,))), {}) == (layout((2, 3)), layout((2, 3)))


def test_aliases_have_the_rules_of_their_targets() -> None:
    x = layout((2, 3), "f4")
    for alias in ("cupy.max", "cupy.concat", "cupy.permute_dims", "cupy.abs", "cupy.true_divide"):
        assert registry.has_rule(alias), alias
    assert prove("cupy.max", (x,)) == prove("cupy.amax", (x,))


def test_equal_arguments_of_other_types_are_not_confused() -> None:
    assert prove("cupy.full", ((2,), 1)) == layout((2,), int)
    assert prove("cupy.full", ((2,), 1.0)) == layout((2,), float)
    assert prove("cupy.full", ((2,), True)) == layout((2,), bool)
    assert prove("cupy.zeros", ((1, 2),)) == layout((1, 2))
    with pytest.raises(TypeError, match="an integer is required"):
        prove("cupy.zeros", ((True, 2),))
    for shape in (layout(), (2, layout()), "2", (2.0,)):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            prove("cupy.zeros", (shape,))


def test_unknown_names_and_odd_arguments_are_unproved() -> None:
    x = layout()
    for qualname, args in [
        ("cupy.nonsense", (x,)), ("cupy.bincount", (x,)), ("cupy.nonzero", (layout((0,)),)),
        ("cupy.sum", (x, object())), ("cupy.sum", ()), ("cupy.zeros", (object(),)), ("cupy.where", (layout(()),)),
        ("cupy.array", ([1, 2],)),
    ]:  # fmt: skip
        made = prove(qualname, args)
        assert isinstance(made, Unproved), (qualname, made)
        assert made.reason


def test_a_rule_that_trips_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def trips(a: Any) -> Any:
        raise KeyError("unforeseen")

    monkeypatch.setitem(registry._rules, "cupy.sum", trips)
    made = prove("cupy.sum", (contiguous((9, 9, 9), np.dtype("i2")),))
    assert isinstance(made, Unproved)
    assert "unforeseen" in made.reason


def test_none_is_nothing_to_put_in_place_of_nan() -> None:
    x = layout((2,))
    assert infer("cupy.nan_to_num", (x,), {"posinf": None, "neginf": 1.0}) == x
    assert isinstance(infer("cupy.nan_to_num", (x,), {"nan": None}), Unproved)


def test_dtypes_that_are_no_numbers_are_unproved() -> None:
    assert isinstance(prove("cupy.add", (layout((2,), "V8"), layout((2,), "V8"))), Unproved)
    assert isinstance(prove("cupy.concatenate", ([layout((2,), "V8")],)), Unproved)


@pytest.mark.parametrize("name", ["add", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"])
@pytest.mark.parametrize("dtype", [np.longlong, np.ulonglong])
def test_an_integer_is_taken_by_whichever_of_its_two_names(name: str, dtype: type) -> None:
    size = 4_099 + np.dtype(dtype).num  # of one that was met before, a layout has the name that it had then
    target, index = layout((size,), dtype), layout((2,), "i8")
    assert target.dtype.char in "qQ"
    assert not isinstance(prove(f"cupy.{name}.at", (target, index, 3)), Unproved)


def test_the_memory_of_proofs_is_bounded() -> None:
    x = layout((7,))
    for number in range(registry._MOST_REMEMBERED + 10):
        prove("cupy.roll", (x, number))
    assert len(registry._memory) <= registry._MOST_REMEMBERED


def test_assignments() -> None:
    x = layout((4, 3), "f4")
    assert setitem(x, (slice(1, 3), 0), 2.5) is None
    assert setitem(x, ..., layout((3,))) is None
    assert setitem(x, layout((4,), bool), 0) is None
    assert setitem(x, layout((2,), int), layout((3,), int)) is None
    assert isinstance(setitem(x, layout((4,), bool), layout((2, 3))), Unproved)
    assert isinstance(setitem(x, 0, layout((3,), complex)), Unproved)  # CuPy warns
    with pytest.raises(IndexError):
        setitem(x, 4, 0)
    with pytest.raises(ValueError, match="operands could not be broadcast"):
        setitem(x, 0, layout((2,)))
    with pytest.raises(ValueError, match=r"non-scalar numpy.ndarray cannot be used for fill"):
        setitem(x, 0, [1, 2, 3])
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for uint8"):
        setitem(layout((3,), "u1"), 0, 300)


def test_host_values_of_windows() -> None:
    row, rows = layout((3,)), layout((3,), [("a", "f8")])
    assert is_proved(row, np.float32(1))
    assert is_proved(row, np.array(1.0))
    for value in (np.zeros(3), np.zeros((2, 3)), np.zeros(1)):
        with pytest.raises(ValueError, match="cannot be used for fill"):
            is_proved(row, value)
    with pytest.raises(ValueError, match="cannot be used for fill"):
        refuse_host_values(np.zeros(3, rows.dtype), rows)


def test_the_share_of_the_functions_that_always_give_one_array() -> None:
    described = surface.load()
    names = [
        f"cupy.{name}"
        for name in described.below("cupy")
        if isinstance(entry := described.resolved(f"cupy.{name}"), surface.Function)
        and entry.returns is surface.Returns.ARRAY
    ]
    without = sorted(name for name in names if not registry.has_rule(name))
    assert len(names) - len(without) >= 0.6 * len(names), without


def test_an_array_as_a_dtype_is_asked_of_the_executor() -> None:
    assert isinstance(prove("cupy.asarray", (layout(), layout())), Unproved)
