"""Functions of the program that CuPy calls."""

from __future__ import annotations

from unittest.mock import MagicMock

import cupy as cp
import cupyx.scipy.sparse as sparse
from cupyx.scipy.sparse import linalg
from expecting import refused

a = cp.arange(12.0).reshape(3, 4)
assert cp.apply_along_axis(lambda row: row.sum() * 2, 1, a).get().tolist() == [12, 44, 76]
assert cp.apply_along_axis(lambda column, k: column[::-1] * k, 0, a, 3)[0].get().tolist() == [24, 27, 30, 33]
assert cp.apply_along_axis(cp.sort, 1, -a)[0].get().tolist() == [-3, -2, -1, 0]
assert cp.apply_over_axes(cp.sum, cp.ones((2, 3, 4)), [0, 2]).get().tolist() == [[[8], [8], [8]]]
assert cp.apply_over_axes(lambda x, axis: x.max(axis=axis), cp.ones((2, 3)), (0,)).shape == (1, 3)
assert cp.fromfunction(lambda i, j: i + j, (3, 3), dtype=int).sum() == 18
refused(NotImplementedError, lambda: cp.piecewise(a, [a < 0, a >= 0], [lambda x: -x, lambda x: x]))

sampler = MagicMock(side_effect=cp.ones)
assert sparse.random(3, 4, density=0.5, data_rvs=sampler).data.tolist() == [1] * 6
assert sampler.call_args.args == (6,)


def failing(row: cp.ndarray) -> cp.ndarray:
    raise KeyError("what the function itself raised")


refused(KeyError, lambda: cp.apply_along_axis(failing, 1, a), "what the function itself raised")
assert float(a.sum()) == 66  # and the session goes on

# --- operators -------------------------------------------------------------------------------------------------------

matrix = cp.diag(cp.arange(1.0, 6.0))
ones = cp.ones(5)
calls = 0


def matvec(v: cp.ndarray) -> cp.ndarray:
    global calls
    calls += 1
    return matrix @ v


operator = linalg.LinearOperator((5, 5), matvec=matvec, dtype="d")
assert isinstance(operator, linalg.LinearOperator)
assert operator.shape == (5, 5)
x, info = linalg.cg(operator, ones, rtol=1e-10)
assert info == 0
assert cp.allclose(matrix @ x, ones)
assert calls > 4
assert float((operator @ ones).sum()) == float(operator.matvec(ones).sum()) == 15
assert float((operator + operator)(ones).sum()) == 30
assert float((linalg.aslinearoperator(matrix) @ ones).sum()) == 15
assert linalg.gmres(operator, ones)[1] == 0
assert abs(float(linalg.eigsh(operator, k=1)[0][0]) - 5) < 1e-6


class Inverse(linalg.LinearOperator):
    def __init__(self, diagonal: cp.ndarray) -> None:
        super().__init__(diagonal.dtype, (diagonal.size, diagonal.size))
        self.diagonal = diagonal

    def _matvec(self, v: cp.ndarray) -> cp.ndarray:
        return v / self.diagonal


A = sparse.diags([cp.arange(1.0, 6.0)], [0]).tocsr()
seen: list[float] = []
x, info = linalg.cg(A, ones, M=Inverse(cp.arange(1.0, 6.0)), callback=lambda xk: seen.append(float(xk[0])))
assert info == 0
assert cp.allclose(A @ x, 1)
assert seen
assert cp.allclose(Inverse(cp.full(5, 2.0)) @ ones, 0.5)

tall = cp.arange(6.0).reshape(3, 2) + 1j


class Tall(linalg.LinearOperator):
    """Says what its adjoint is by another operator."""

    def __init__(self) -> None:
        super().__init__(tall.dtype, tall.shape)

    def _matvec(self, v: cp.ndarray) -> cp.ndarray:
        return tall @ v

    def _adjoint(self) -> linalg.LinearOperator:
        return linalg.LinearOperator((2, 3), matvec=lambda v: tall.conj().T @ v, rmatvec=self._matvec, dtype=tall.dtype)


three = cp.array([1.0, 2.0, 3.0])
assert cp.allclose(Tall().H.matvec(three), tall.conj().T @ three)
assert cp.allclose(Tall().adjoint().rmatvec(ones[:2]), tall @ ones[:2])
assert cp.allclose(Tall().rmatvec(three), tall.conj().T @ three)
assert cp.allclose(Tall().rmatmat(cp.eye(3)), tall.conj().T)
assert cp.allclose(Tall().T.matvec(three), tall.T @ three)
assert cp.allclose((Tall().H @ Tall()).matmat(cp.eye(2)), tall.conj().T @ tall)
