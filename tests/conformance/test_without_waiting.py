"""Calls that the notebook proves cost no round trip, and give what they give when the executor is asked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from gpu_backend.devices import open_device
from gpu_backend.opstream.proof.outcome import Later, Unproved
from gpu_backend.wire.messages import Want
from kernelproxy.calls import array_core, dispatch, remote_members
from kernelproxy.client import current
from kernelproxy.namespace.names import make
from tests.conformance.in_process import InProcess, notebook_on

_RECORDS = np.dtype([("a", "f4"), ("b", "i8")], align=True)
_LARGE = np.arange(10_000) % 8

#: What is called, and with what; names in the scope are those of `_scope`.
CALLS = [
    "cp.array([x[0], x[1]])", "cp.array([[x, y], [y, x]], dtype='f')", "x[large]", "x[hm]",
    "put(x, hm, ones(hm.sum()))", "put(x, [], 1.0)", "put(x, hm, 2.0)", "put(A, i, 500)", "put(wide, large, large)",
    "put(x, m, y[m])", "put(S, many, (2 * S)[many])", "put(A, m[:4], B[m[:4]])",
    "cp.random.normal(loc=0.0, scale=1.0, size=3).shape", "cp.random.choice(8, 3, replace=False).shape",
    "cp.isclose(x, 0)", "cp.allclose(x, 0.5)", "cp.put_along_axis(A, A.argsort(axis=1), 7.0, 1)", "A",
    "cupyx.scatter_add(x, i, 1.0)", "x.scatter_max(i, y[:4])", "cp.maximum.at(x, i, 1.0)", "x",
    "cp.linalg.qr(A[:, :2])[1]", "cp.linalg.qr(A[:, :2])[0].T[::-1]", "cp.linalg.solve(S, S)",
    "cp.linalg.eigh(S)[1]", "cp.linalg.svd(S[:, :2])[0]", "cp.linalg.svd(S)[2].transpose(2, 0, 1)",
    "splinalg.lu_solve(factors, A[0], check_finite=False)", "splinalg.lu_solve(factors, B, 1, check_finite=False)",
    "cp.linalg.pinv(S)", "cp.linalg.norm(S, 2, axis=(1, 2))", "cp.linalg.norm(A, 1)",
    "cp.einsum('...ij,jk->...ik', S, A)", "cp.einsum('ij,jk,kl->li', A, B, A)",
    "cp.einsum(A, [0, 1], B, [1, 2], [2, 0])",
    "cp.percentile(x, [50])", "signal.lfilter(x[:2], y[:2], A)", "signal.sosfilt(sos, A, axis=0)",
    "signal.fftconvolve(A, B, axes=0)", "zeros(3, records)['a']", "put(zeros(3, records), 'b', 3)",
    "sparse.csr_matrix(A).toarray()", "sparse.csr_matrix(host_matrix) @ x",
    "sparse.csc_matrix(host_matrix) @ ones((8, 2))",
    "matrix @ x", "matrix.dot(ones((8, 2)))[::-1].T", "matrix * x", "(matrix.shape, matrix.dtype, matrix.format)",
    "matrix.toarray()", "matrix.T.toarray()", "matrix.T.T @ x", "matrix.transpose() @ ones(matrix.shape[0])",
    "(matrix.T.shape, matrix.T.dtype, matrix.T.format)", "sparse.coo_matrix(A).T.toarray()",
    "sparse.csr_array(A).T @ ones(A.shape[0])", "sparse.coo_matrix((3, 4)).shape",
    "sparse.issparse(matrix)", "sparse.isspmatrix_csc(matrix)",
    "cp.random.RandomState(3).rand(3)", "cp.random.default_rng(3).random(3)", "module.get_function('f') is None",
    "cp.random.Generator(cp.random.XORWOW(3)).random(3)", "cp.get_default_memory_pool() is None",
    "cp.ElementwiseKernel('T x', 'T y', 'y = x') is None",
    "cp.ReductionKernel('T x', 'T y', 'x', 'a+b', 'y=a', '0') is None",
]  # fmt: skip


class _Package:
    """A module of CuPy, as the notebook has it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        below = f"{self._name}.{name}"
        return _Package(below) if below in ("cupy.linalg", "cupy.random") else make(below)


def _scope() -> dict[str, Any]:
    cp, sparse = _Package("cupy"), _Package("cupyx.scipy.sparse")
    rng = np.random.default_rng(1)
    square = rng.random((4, 4))
    square = square @ square.T + np.eye(4)
    host_matrix, splinalg = scipy.sparse.random(8, 8, 0.4, "csr", rng=rng), _Package("cupyx.scipy.linalg")
    scope: dict[str, Any] = {
        "cp": cp, "cupyx": _Package("cupyx"), "sparse": sparse, "signal": _Package("cupyx.scipy.signal"),
        "x": cp.asarray(rng.random(8)), "y": cp.asarray(rng.random(8)), "A": cp.asarray(square),
        "B": cp.asarray(rng.random((4, 4))), "S": cp.asarray(np.stack([square, 2 * square, square])),
        "sos": cp.asarray(np.array([[1.0, 2, 1, 1, 0.5, 0.2]])), "i": cp.asarray(np.arange(4)),
        "hm": rng.random(8) > 0.5, "m": cp.asarray(rng.random(8) > 0.5),
        "many": cp.asarray(rng.random((3, 4, 4)) > 0.5),
        "large": _LARGE, "wide": cp.zeros(10), "ones": cp.ones, "zeros": cp.zeros, "records": _RECORDS,
        "splinalg": splinalg, "factors": splinalg.lu_factor(cp.asarray(square)), "host_matrix": host_matrix,
        "matrix": sparse.csr_matrix(host_matrix),
        "module": cp.RawModule(code='extern "C" __global__ void f(float* x) { x[0] = 1; }'), "put": _put,
    }  # fmt: skip
    return scope


def _put(target: Any, key: Any, value: Any) -> Any:
    target[key] = value
    return target


@pytest.fixture(scope="module")
def notebook() -> Iterator[InProcess]:
    with notebook_on(open_device("cpu")) as executor:
        yield executor


def _settle() -> int:
    """Wait for all that was recorded; return how many answers were waited for so far."""
    pipeline = current().pipeline
    pipeline.call(".nothing", (), Want.DESCRIPTION)
    return pipeline.counters.round_trips


def _values(made: Any) -> Any:
    if isinstance(made, tuple):
        return tuple(map(_values, made))
    return made.get() if hasattr(made, "get") else made


@pytest.mark.parametrize("call", CALLS)
def test_nobody_waits(notebook: InProcess, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for is_asked in (False, True):
            scope = _scope()
            scope["module"].get_function("f")
            if is_asked:
                for module in (dispatch, remote_members):
                    monkeypatch.setattr(module, "prove", lambda *call: Unproved("to compare"))
                current().pipeline.forms.clear()  # what was proved before would be found again
            before = _settle()
            made = eval(call, scope)
            if not is_asked:
                assert current().pipeline.counters.round_trips == before
            results.append((_values(made), scope["x"].get(), scope["A"].get(), scope["wide"].get()))
    for proved, asked in zip(*results, strict=True):
        np.testing.assert_equal(proved, asked)


#: Calls that surely succeed, and give arrays of a shape that only their values tell.
LATER = [
    "x[m]", "S[many]", "A[m[:4]]", "A[:, m[:4]]", "cp.nonzero(many)", "cp.where(m)", "cp.argwhere(many)",
    "cp.flatnonzero(m)",
    "many.nonzero()", "cp.extract(m, x)", "cp.compress(m[:4], A, axis=1)", "A.compress(m[:4], 0)", "cp.unique(i % 2)",
    "cp.unique(i % 2, return_index=True, return_counts=True)", "cp.unique_values(i % 3)", "cp.union1d(i, i % 2)",
    "cp.intersect1d(i, i % 3)", "cp.setdiff1d(i, i % 3)", "cp.setxor1d(i, i + 2)",
]  # fmt: skip


@pytest.mark.parametrize("call", LATER)
def test_what_has_a_shape_by_its_values_is_asked_for_it_once(notebook: InProcess, call: str) -> None:
    scope = _scope()
    before = _settle()
    made = eval(call, scope)
    assert current().pipeline.counters.round_trips == before
    arrays = made if isinstance(made, tuple) else (made,)
    shapes = [(one.shape, one.dtype, one.strides, one.base) for one in arrays]
    assert current().pipeline.counters.round_trips == before + len(arrays)
    for (shape, dtype, _, base), one in zip(shapes, arrays, strict=True):
        host = one.get()
        assert (host.shape, host.dtype, base) == (shape, dtype, None)
        np.testing.assert_equal((one + one).get(), host + host)
    np.testing.assert_equal(_values(eval(call, scope)), _values(made))


def test_contents_of_an_unknown_shape_cost_one_round_trip(notebook: InProcess) -> None:
    scope = _scope()
    before = _settle()
    assert eval("x[m]", scope).get().shape == (int(scope["m"].sum()),)
    assert current().pipeline.counters.round_trips == before + 2  # one is the test's own


def test_an_array_that_nobody_looked_at_is_dropped(notebook: InProcess) -> None:
    scope = _scope()
    _settle()
    held = len(notebook.stream.heap.objects)
    for _ in range(3):
        eval("(x[m], cp.nonzero(m))", scope)
    _settle()
    _settle()
    assert len(notebook.stream.heap.objects) == held


def test_a_mask_that_was_changed_is_no_measure(notebook: InProcess) -> None:
    scope = _scope()
    chosen = eval("y[m]", scope)
    scope["m"][:] = True
    with pytest.raises(ValueError, match="broadcast"):
        scope["x"][scope["m"]] = chosen


def test_the_failure_of_an_array_names_the_line_that_recorded_it(notebook: InProcess) -> None:
    """What the notebook takes for proved fails all the same: its use says where it came from."""
    scope = _scope()
    made = dispatch.run_proved("cupy.reshape", (scope["x"], (3, 3)), {}, Later(None, 64))
    with pytest.raises(ValueError, match="reshape") as raised:
        _ = made.shape
    assert "test_without_waiting.py" in raised.value.__notes__[0]


def test_an_array_of_a_users_class_may_be_asked_later_too(notebook: InProcess) -> None:
    scope = _scope()
    host = eval("x[m]", scope).get()
    made = array_core.as_subclass(eval("x[m]", scope), type("Mine", (array_core.array_class,), {}))
    assert made.shape == host.shape
    np.testing.assert_equal((made + 1).get(), host + 1)


def test_a_number_out_of_an_unknown_shape_costs_one_round_trip(notebook: InProcess) -> None:
    scope = _scope()
    mask = scope["m"] & False
    mask[0] = True
    before = _settle()
    with suppress(TypeError, DeprecationWarning):  # as the installed NumPy judges of an array with an axis
        float(scope["x"][mask])
    assert current().pipeline.counters.round_trips == before + 1
