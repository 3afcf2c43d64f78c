"""Subclasses of remote classes, as far as they need no executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream.surface import self_calls
from gpu_backend.wire.values import ObjectInfo
from kernelproxy.calls import subclassing
from kernelproxy.calls.remote_object import RemoteObject, remote_class
from kernelproxy.calls.stand_ins import object_from_description
from kernelproxy.client import Client
from kernelproxy.namespace import kernels
from kernelproxy.namespace.names import make

CSR = "cupyx.scipy.sparse.csr_matrix"


def result(qualname: str = CSR) -> RemoteObject:
    """Return what an executor gives: of CuPy's class, with handle 0, which nobody drops."""
    return object_from_description(Client(), ObjectInfo(handle=0, type_name=qualname))


def derived(qualname: str = CSR, **body: Any) -> Any:
    return type("Derived", (remote_class(qualname),), body)


@pytest.mark.parametrize(
    ("name", "args", "is_kept"),
    [
        ("copy", (), True),
        ("__getitem__", (0,), True),
        ("__mul__", (2,), True),
        ("__mul__", (np.float32(2),), True),
        ("__mul__", (object(),), False),
        ("__matmul__", (object(),), False),
        ("__add__", (object(),), False),
        ("multiply", (object(),), True),
        ("tocsc", (), True),
        ("maximum", (0,), True),
        ("dot", (object(),), False),
    ],
)
def test_results_are_of_the_subclass_where_cupy_makes_them_by_type_of_self(
    name: str, args: tuple[Any, ...], is_kept: bool
) -> None:
    kind = derived()
    of = kind.__new__(kind)
    made = subclassing.in_class(of, name, args, result())
    assert type(made) is (kind if is_kept else remote_class(CSR))
    assert made._handle == 0


def test_a_result_of_another_class_stays_what_it_is() -> None:
    kind = derived()
    other = result("cupyx.scipy.sparse.csc_matrix")
    assert subclassing.in_class(kind.__new__(kind), "copy", (), other) is other


def test_results_of_cupys_own_class_are_left_alone() -> None:
    made = result()
    assert subclassing.in_class(result(), "copy", (), made) is made


def test_columns_do_not_compare_into_their_subclass() -> None:
    csc = "cupyx.scipy.sparse.csc_matrix"
    kind = derived(csc)
    made = result(csc)
    assert subclassing.in_class(kind.__new__(kind), "__ne__", (1,), made) is made


def test_an_object_that_stands_for_nothing_says_which_call_is_missing() -> None:
    kind = derived(__init__=lambda self: None)
    with pytest.raises(AttributeError, match=r"super\(\).__init__"):
        kind()._wire_value()


def test_an_attribute_of_a_users_class_is_the_notebooks() -> None:
    kind = derived(size_of=property(lambda self: self.kept, lambda self, value: self.__dict__.update(kept=value)))
    one = kind.__new__(kind)
    one.size_of, one.label = 3, "x"
    assert (one.size_of, one.label) == (3, "x")


def test_an_error_of_a_users_property_is_its_own() -> None:
    kind = derived(broken=property(lambda self: self.nowhere_to_be_found_and_private_._x))
    one = kind.__new__(kind)
    with pytest.raises(AttributeError):
        one.broken  # noqa: B018


def test_compiled_classes_take_no_attributes_and_their_subclasses_do() -> None:
    event = result("cupy.cuda.MemoryPool")
    with pytest.raises(AttributeError, match="no attribute 'label'"):
        event.label = 1
    kind = derived("cupy.cuda.MemoryPool")
    one = kind.__new__(kind)
    one.label = 1
    assert one.label == 1


def test_what_cupys_methods_would_call_of_a_users_class_is_noted() -> None:
    kind = derived("cupy.random.RandomState", random_sample=lambda self, size=None: 4)
    assert dict(kind._uncalled) == {
        method: "random_sample"
        for method, called in self_calls.load()["cupy.random.RandomState"].items()
        if "random_sample" in called
    }
    below = type("Below", (kind,), {"uniform": lambda self: 5})
    assert below._uncalled["standard_cauchy"] == "random_sample, uniform"
    assert not derived("cupy.random.RandomState", mine=1)._uncalled
    mixed = type("Mixed", (remote_class("cupy.random.RandomState"), type("Later", (), {"normal": 1})), {})
    assert not mixed._uncalled


def test_a_method_that_would_call_an_override_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = derived("cupy.random.RandomState", random_sample=lambda self, size=None: 4)
    one = kind.__new__(kind)
    for way in ("ask_object", "run_proved", "call"):
        monkeypatch.setattr(f"kernelproxy.calls.dispatch.{way}", lambda *args, **kwargs: "drawn")
    with pytest.warns(RuntimeWarning, match="rand calls random_sample, which Derived overrides"):
        assert one.rand(3) == "drawn"
    assert one.seed(3) == "drawn"  # calls nothing, and does not warn


def test_methods_of_classes_go_by_their_class() -> None:
    spline = remote_class("cupyx.scipy.interpolate.PPoly")
    assert make("cupyx.scipy.interpolate.PPoly.from_spline") is spline.from_spline
    mine = derived("cupyx.scipy.interpolate.PPoly")
    assert mine.from_spline.__self__ is mine
    assert mine.from_spline.__name__ == "from_spline"


def test_kernels_take_what_their_subclass_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made_with: list[Any] = []

    def made(name: str, args: Any, kwargs: Any) -> Any:
        made_with.append((name, args, kwargs))
        return object_from_description(Client(), ObjectInfo(handle=0, type_name=name))

    monkeypatch.setattr("kernelproxy.calls.dispatch.call", made)

    class Mine(kernels.ElementwiseKernel):
        def __init__(self, factor: int) -> None:
            super().__init__("T x", "T y", f"y = x * {factor}", name="mine")
            self.factor = factor

    kernel = Mine(3)
    assert (type(kernel), kernel.factor) == (Mine, 3)
    assert made_with == [("cupy.ElementwiseKernel", ("T x", "T y", "y = x * 3"), {"name": "mine"})]
    remake, (kind, args, kwargs), state = kernel.__reduce__()
    again = remake(kind, args, kwargs)
    again.__dict__.update(state)
    assert (type(again), again.factor) == (Mine, 3)
    assert made_with[1] == made_with[0]
    assert set(state) == {"factor"}
