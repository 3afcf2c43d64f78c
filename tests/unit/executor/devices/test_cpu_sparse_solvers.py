"""Solvers and eigenvalues of sparse matrices on the CPU device: what CuPy refuses, and gives where SciPy does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device

LINALG = "cupyx.scipy.sparse.linalg"


@pytest.fixture(scope="module")
def cp() -> Any:
    device = open_device("cpu")
    return lambda name, *args, **kwargs: device.resolve(name)(*args, **kwargs)


@pytest.fixture
def symmetric() -> Any:
    random = np.random.default_rng(2).standard_normal((60, 60))
    return random + random.T


@pytest.mark.parametrize("which", ["LM", "LA", "SA"])
def test_eigenvalues_are_the_ends_of_the_spectrum(cp: Any, symmetric: Any, which: str) -> None:
    every = np.linalg.eigvalsh(symmetric)
    expected = {"LM": np.sort(every[np.argsort(abs(every))][-3:]), "LA": every[-3:], "SA": every[:3]}[which]
    w, x = cp(f"{LINALG}.eigsh", symmetric, 3, which=which)
    assert np.allclose(w, expected)
    assert np.allclose(symmetric @ x, x * w)
    assert np.allclose(cp(f"{LINALG}.eigsh", symmetric, 3, which=which, return_eigenvectors=False), expected)


def test_one_sweep_from_an_eigenvector_stays_there(cp: Any, symmetric: Any) -> None:
    """``maxiter=0`` is the vectors of the first sweep and no more, which SciPy refuses."""
    (value,), vector = cp(f"{LINALG}.eigsh", symmetric, 1)
    (near,), close = cp(f"{LINALG}.eigsh", symmetric, 1, v0=vector[:, 0].copy(), ncv=1, maxiter=0)
    (far,), _ = cp(f"{LINALG}.eigsh", symmetric, 1, ncv=1, maxiter=0)
    assert abs(near - value) < 1e-9 < abs(far - value)
    assert abs(abs(close[:, 0] @ vector[:, 0]) - 1) < 1e-9


@pytest.mark.parametrize(
    ("name", "a", "options", "kind"),
    [
        ("eigsh", np.ones((2, 1), "f"), {}, ValueError),
        ("eigsh", np.ones(1, "f"), {}, ValueError),
        ("eigsh", np.eye(2, dtype="i"), {"k": 1}, TypeError),
        ("eigsh", np.eye(8), {"k": 8}, ValueError),
        ("eigsh", np.eye(8), {"k": 2, "which": "SM"}, ValueError),
        ("svds", np.ones(1, "f"), {}, ValueError),
        ("svds", np.eye(2, dtype="i"), {}, TypeError),
        ("svds", np.eye(8), {"k": 0}, ValueError),
        ("svds", np.eye(8), {"k": 2, "which": "SM"}, ValueError),
        ("gmres", np.eye(2, dtype="i"), {"b": np.ones(2)}, TypeError),
        ("cg", np.ones((2, 3)), {"b": np.ones(2)}, ValueError),
        ("lsqr", np.ones((2, 3)), {"b": np.ones(2)}, np.linalg.LinAlgError),
        ("lsqr", np.eye(2), {"b": np.ones(3)}, ValueError),
    ],
)
def test_what_cupy_refuses(cp: Any, name: str, a: Any, options: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        cp(f"{LINALG}.{name}", a, **options)


def test_least_squares_take_dense_matrices_and_give_doubles(cp: Any) -> None:
    a, b = np.array([[2, 1], [1, 3]], "f"), np.array([3, 5], "f")
    for given in (a, cp("cupyx.scipy.sparse.csr_matrix", a)):
        x, *others = cp(f"{LINALG}.lsqr", given, b)
        assert x.dtype == np.float64
        assert np.allclose(a @ x, b)
        assert others == [None] * 9
    x = cp("cupyx.cusolver.csrlsvqr", cp("cupyx.scipy.sparse.csr_matrix", a), b, tol=1e-5, reorder=0)
    assert x.dtype == np.float32
    assert np.allclose(a @ x, b)
