"""A function that the executor gives back is called like one, and has what functions have: nothing of arrays."""

from __future__ import annotations

import pytest

from gpu_backend.devices import open_device
from kernelproxy.namespace.names import make
from kernelproxy.namespace.remote_routine import RemoteRoutine
from tests.conformance.asked_of_views import REMOTE
from tests.conformance.in_process import notebook_on


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_the_solver_of_factorized(kind: str) -> None:
    with notebook_on(open_device(kind)) as executor:
        solve = make("cupyx.scipy.sparse.linalg.factorized")(make("cupyx.scipy.sparse.csc_matrix")(2 * REMOTE.eye(3)))
        assert isinstance(solve, RemoteRoutine)
        assert callable(solve)
        before = executor.talk.applied
        assert not any(hasattr(solve, name) for name in ("shape", "dtype", "matvec", "__array_ufunc__", "solve"))
        with pytest.raises(AttributeError, match="has no attribute 'shape'"):
            solve.shape = (3, 3)
        assert repr(solve) == "<function (remote)>"
        assert executor.talk.applied == before  # nobody was asked
        assert solve(REMOTE.ones(3)).get().tolist() == [0.5, 0.5, 0.5]
