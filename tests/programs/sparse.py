"""Sparse matrices: made, computed with, solved."""

from __future__ import annotations

import copy
import pickle
import warnings

import cupy as cp
import cupyx.scipy.sparse as sparse
import scipy.sparse
from cupyx.scipy.sparse import csgraph, linalg
from expecting import refused

values, rows, columns = cp.array([1.0, 2.0, 3.0, 4.0]), cp.array([0, 0, 1, 2]), cp.array([0, 2, 2, 1])
coo = sparse.coo_matrix((values, (rows, columns)), shape=(3, 3))
A = coo.tocsr()
assert (A.shape, A.nnz, A.dtype, A.format, A.ndim) == ((3, 3), 4, cp.float64, "csr", 2)
assert isinstance(A, sparse.csr_matrix)
assert isinstance(A.T, sparse.csc_matrix)
assert sparse.issparse(A)
assert isinstance(A.data, cp.ndarray)
assert A.indptr.get().tolist() == [0, 2, 3, 4]
assert A.toarray().get().tolist() == [[1, 0, 2], [0, 0, 3], [0, 4, 0]]
assert cp.get_array_module(A) is cp
host = A.get()
assert isinstance(host, scipy.sparse.csr_matrix)
assert sparse.csr_matrix(host).nnz == 4
assert sparse.coo_matrix(scipy.sparse.eye(3)).nnz == 3
assert sparse.coo_matrix(scipy.sparse.coo_matrix([[0.0, 1.0], [2.0, 0.0]])).has_canonical_format
refused(TypeError, lambda: len(A))
assert (A.data is A.data, A.indices is A.indptr) == (True, False)
kept = A.data
shared = sparse.csr_matrix((A.data, A.indices, A.indptr), A.shape, copy=False)
assert (cp.may_share_memory(shared.data, A.data), cp.shares_memory(shared.data[1:], A.data)) == (True, True)
assert (cp.may_share_memory(A.copy().data, A.data), cp.shares_memory(shared.data[:1], A.data[1:])) == (False, False)
A *= 2
assert A.data is kept
A *= 0.5
assert kept.tolist() == [1, 2, 3, 4]
coordinates = coo.coords
assert (coordinates[0] is coo.row, coordinates[1] is coo.col) == (True, True)
assert cp.allclose(round(A * 1.26, 1).data, [1.3, 2.5, 3.8, 5])
refused(ValueError, lambda: bool(A), "ambiguous")
assert bool(sparse.csr_matrix(cp.ones((1, 1))))
assert sparse.csr_array(A).mT.toarray().tolist() == A.T.toarray().tolist()
refused(AttributeError, lambda: sparse.csr_array(A).A)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert A.H.shape == A.A.shape
assert {one.category for one in told} == {DeprecationWarning}
changed = A.copy()
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    changed[1, 0] = 7
assert [one.category for one in told] == [sparse.SparseEfficiencyWarning] == [scipy.sparse.SparseEfficiencyWarning]
assert changed[1, 0] == 7

# --- arithmetic and parts

v = cp.ones(3)
assert (A @ v).get().tolist() == (A * v).get().tolist() == A.dot(v).get().tolist() == [3, 3, 4]
assert (v @ A).get().tolist() == [1, 4, 5]
assert float((A + A - A * 2 + A / 1).sum()) == 10
assert (A @ A).shape == (3, 3)
assert isinstance(A @ A, sparse.csr_matrix)
assert (A[0].shape, A[0:2].shape, A[:, 1].shape, A[cp.array([0, 2])].shape) == ((1, 3), (2, 3), (3, 1), (2, 3))
assert [row.shape for row in A] == [(1, 3)] * 3
assert float(A[0, 0]) == 1
assert (float(A.max()), float(A.min())) == (4, 0)
assert A.multiply(A).power(2).sqrt().nnz == 4
assert A.diagonal().get().tolist() == [1, 0, 0]
B = A.copy()
B.data *= 2
B += A
assert (float(B.sum()), float(A.sum())) == (30, 10)
assert sparse.hstack([A, A]).shape == (3, 6)
assert sparse.kron(A, A).shape == (9, 9)
for other in (copy.copy(A), copy.deepcopy(A), pickle.loads(pickle.dumps(A))):
    assert isinstance(other, sparse.csr_matrix)
    assert float(other.sum()) == 10

# --- solvers

n = 10
A = sparse.diags([-cp.ones(n - 1), 4 * cp.ones(n), -cp.ones(n - 1)], [-1, 0, 1], format="csr")
b = cp.ones(n)
assert cp.allclose(A @ linalg.spsolve(A, b), b)
assert cp.allclose(A @ linalg.splu(A.tocsc()).solve(b), b)
assert cp.allclose(A @ linalg.factorized(A.tocsc())(b), b)
x, info = linalg.cg(A, b)
assert info == 0
assert cp.allclose(A @ x, b, atol=1e-4)
assert linalg.eigsh(A, k=2, return_eigenvectors=False).shape == (2,)
assert abs(float(linalg.norm(A)) - float(cp.linalg.norm(A.toarray()))) < 1e-9
if b"NVIDIA" not in cp.cuda.runtime.getDeviceProperties(0)["name"]:  # CuPy needs the pylibcugraph package for graphs
    assert int(csgraph.connected_components(A)[0]) == 1
