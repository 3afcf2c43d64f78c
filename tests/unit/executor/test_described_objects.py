"""Whose members count for an object, and what is an object at all; the ways around it are in ``tests/attack``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.signal
import scipy.sparse

from gpu_backend.devices import open_device
from gpu_backend.executor.described_objects import DescribedObjects
from gpu_backend.wire.errors import ProtocolError

DEVICE = open_device("cpu")


@pytest.fixture
def objects() -> DescribedObjects:
    return DescribedObjects(DEVICE)


def made(name: str, *args: Any) -> Any:
    return DEVICE.resolve(name)(*args)


def name_of(objects: DescribedObjects, value: object) -> str | None:
    described = objects.describe(value)
    return described.name if described is not None else None


def test_objects_go_by_the_nearest_public_class(objects: DescribedObjects) -> None:
    assert name_of(objects, np.zeros(2)) == "cupy.ndarray"
    assert name_of(objects, made("cupyx.scipy.sparse.csr_matrix", np.eye(2))) == "cupyx.scipy.sparse.csr_matrix"
    assert name_of(objects, scipy.sparse.csr_matrix(np.eye(2))) == "cupyx.scipy.sparse.csr_matrix"
    operator = made("cupyx.scipy.sparse.linalg.aslinearoperator", np.eye(2))
    assert name_of(objects, operator + operator) == "cupyx.scipy.sparse.linalg.LinearOperator"
    assert name_of(objects, made("cupy.cuda.profile")) == "contextlib._GeneratorContextManager"


def test_an_object_has_the_members_of_all_its_public_ancestors(objects: DescribedObjects) -> None:
    system = made("cupyx.scipy.signal.TransferFunction", [1.0], [1.0, 2.0])
    assert type(system).__mro__[1] is scipy.signal.TransferFunction
    assert callable(objects.method(system, "to_ss"))
    assert callable(objects.method(system, "impulse"))


def test_a_class_is_not_taken_at_its_word(objects: DescribedObjects) -> None:
    forged = type("csr_matrix", (), {"__module__": "cupyx.scipy.sparse._csr", "toarray": lambda self: 1})
    assert objects.describe(forged()) is None
    with pytest.raises(TypeError, match=r"cupyx\.scipy\.sparse\._csr\.csr_matrix cannot stay"):
        objects.require_storable(forged())


@pytest.mark.parametrize("value", [None, True, 1, 1.5, 1j, "text", b"bytes", np.float32(1), np.dtype("f4")])
def test_plain_values_may_stay_and_have_no_members(objects: DescribedObjects, value: object) -> None:
    objects.require_storable(value)
    with pytest.raises(ProtocolError, match="no attributes here"):
        objects.attribute(value, "real")


@contextlib.contextmanager
def block() -> Iterator[None]:
    yield


@pytest.mark.parametrize(
    "value", [print, len, block, contextlib, Exception("x"), object(), iter(()), int, {}, [], set()]
)
def test_nothing_else_may_stay(objects: DescribedObjects, value: object) -> None:
    with pytest.raises(TypeError, match="cannot stay in the executor or leave it"):
        objects.require_storable(value)


def test_methods_of_described_objects_are_called_and_handed_on(objects: DescribedObjects) -> None:
    solver = made("cupyx.scipy.sparse.linalg.factorized", made("cupyx.scipy.sparse.csc_matrix", np.eye(2)))
    assert objects.function(solver) is solver
    assert objects.method(solver, "__call__")(np.ones(2)).tolist() == [1, 1]
    matrix = made("cupyx.scipy.sparse.csr_matrix", np.eye(2))
    for other in ("".join, [].append, matrix._swap, objects.describe, object().__reduce__):
        assert objects.describe(other) is None
        with pytest.raises(ProtocolError, match="no attributes here"):
            objects.method(other, "__call__")


def test_methods_that_are_remembered_are_those_of_their_own_class_and_name(objects: DescribedObjects) -> None:
    matrix = made("cupyx.scipy.sparse.csr_matrix", np.eye(2))
    for _ in range(2):
        assert objects.method(matrix, "toarray")().tolist() == [[1, 0], [0, 1]]
        with pytest.raises(AttributeError, match="no public method"):
            objects.method(matrix, "_swap")
        with pytest.raises(ProtocolError, match="no attributes here"):
            objects.method({}, "toarray")


def test_what_is_settable_is_set_and_nothing_else(objects: DescribedObjects) -> None:
    matrix = made("cupyx.scipy.sparse.csr_matrix", np.eye(2))
    objects.set_attribute(matrix, "data", np.ones(2) * 3)
    assert matrix.data.tolist() == [3, 3]
    spline = made("cupyx.scipy.interpolate.BSpline", np.arange(8.0), np.ones(4), 3)
    objects.set_attribute(spline, "c", np.zeros(4))
    assert spline(3.5) == 0
    with pytest.raises(AttributeError, match="that a notebook may set"):
        objects.set_attribute(matrix, "toarray", print)
