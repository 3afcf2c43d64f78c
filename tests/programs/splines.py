"""Splines and piecewise polynomials: made by their classes, of each other, and of knots that were put together."""

from __future__ import annotations

import inspect
import pickle
import types

import cupy as cp
import cupyx.scipy.interpolate as interpolate
import cupyx.scipy.sparse as sparse
import numpy as np
from cupyx import cusparse
from expecting import refused

# --- methods of classes

assert list(inspect.signature(interpolate.BSpline.design_matrix).parameters) == ["x", "t", "k", "extrapolate"]
hat = interpolate.BSpline.basis_element(cp.arange(3.0))
assert isinstance(hat, interpolate.BSpline)
assert cp.allclose(hat(cp.array([0.5, 1.0, 1.5])), [0.5, 1, 0.5])
at = cp.array([1.5, 2.0])
matrix = interpolate.BSpline.design_matrix(at, cp.arange(8.0) - 2, 3)
assert isinstance(matrix, sparse.csr_matrix)
assert cp.allclose(matrix.sum(axis=1), 1)
fast = interpolate.BSpline.construct_fast(hat.t, 2 * hat.c, hat.k)
assert cp.allclose(fast(at), 2 * hat(at))
pieces = interpolate.PPoly.from_spline(hat)
assert type(pieces) is interpolate.PPoly
assert cp.allclose(pieces(at), hat(at))
assert type(interpolate.BPoly.from_power_basis(pieces)) is interpolate.BPoly
assert type(pickle.loads(pickle.dumps(interpolate.PPoly.from_spline))(hat)) is interpolate.PPoly
assert type(interpolate.CubicSpline.from_spline(hat)) is interpolate.CubicSpline
refused(ValueError, lambda: interpolate.BSpline.design_matrix(at, cp.arange(4.0), 3), "not enough")
refused(AttributeError, lambda: interpolate.BSpline.from_nothing)

for count in (3, 200, 20_000):
    assert hat(np.linspace(0.0, 2.0, count)).shape == (count,)  # of the host, however it travels

# --- knots of elements and arrays

x = cp.linspace(0, 1, 7)
knots = cp.r_[(x[0],) * 4, x[2:-2], (x[-1],) * 4]
assert knots.shape == (11,)
refused(TypeError, lambda: cp.r_[[x[0], 2.0], 3], "Implicit conversion")  # neither an array nor of the host
assert cp.r_[[x[0], x[-1]], 2].tolist() == [0, 1, 2]
assert cp.r_[x.astype("f"), 2.0].dtype == np.float32
assert cp.r_[x.astype("f"), np.float64(2)].dtype == cp.c_[cp.arange(1), 2.0].dtype == np.float64
assert cp.r_[(x[0], x[-1])].tolist() == [0, 1]
cubic = interpolate.make_lsq_spline(x, x**3, knots, 3)
assert cp.allclose(cubic(x), x**3)

# --- sparse classes in annotations, and what comes back by keyword

assert isinstance(sparse.csr_array[float], types.GenericAlias)
eye = sparse.csr_matrix(cp.eye(3))
y = cp.zeros(3)
assert cusparse.spmv(eye, cp.ones(3), y=y) is y
assert y.tolist() == [1, 1, 1]
assert cusparse.check_availability("spmv") is True
assert isinstance(cusparse.getVersion(), int)
assert (eye.maximum(sparse.csr_matrix(cp.ones((1, 3)))).toarray() == 1).all()
