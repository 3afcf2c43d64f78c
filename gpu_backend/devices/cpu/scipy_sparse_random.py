"""Random sparse matrices: drawn from the device's own state, so that ``cupy.random.seed`` repeats them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.random_functions import get_random_state
from gpu_backend.devices.cpu.random_state import RandomState
from gpu_backend.devices.cpu.scipy_sparse import adopt
from gpu_backend.devices.cpu.table import define

_PREFIX = "cupyx.scipy.sparse"


def _drawn(
    m: int, n: int, density: float, dtype: DTypeLike, random_state: Any, data_rvs: Any
) -> tuple[Array, tuple[Array, Array]]:
    """Return the elements of a random matrix and their rows and columns."""
    if not 0 <= density <= 1:
        raise ValueError("density expected to be 0 <= density <= 1")
    dtype = np.dtype(dtype)
    if dtype.char not in "fd":
        raise NotImplementedError(f"type {dtype} not supported")
    if random_state is None:
        random_state = get_random_state()
    elif isinstance(random_state, (int, np.integer)):
        random_state = RandomState(random_state)
    count = int(density * m * n)
    places = random_state.choice(m * n, size=count, replace=False)
    values = (random_state.rand if data_rvs is None else data_rvs)(count)
    return values.astype(dtype), (places % m, places // m)


@define(f"{_PREFIX}.random")
def random(
    m: int, n: int, density: float = 0.01, format: str = "coo", dtype: Any = None, random_state: Any = None,
    data_rvs: Any = None,
) -> Any:  # fmt: skip
    drawn = _drawn(m, n, density, dtype, random_state, data_rvs)
    return adopt(scipy.sparse.coo_matrix(drawn, shape=(m, n)).asformat(format))


@define(f"{_PREFIX}.rand")
def rand(
    m: int, n: int, density: float = 0.01, format: str = "coo", dtype: object = None, random_state: object = None
) -> Any:
    return random(m, n, density, format, dtype, random_state)


@define(f"{_PREFIX}.random_array")
def random_array(
    shape: Any, *, density: float = 0.01, format: str = "coo", dtype: Any = None, rng: Any = None,
    data_sampler: Any = None,
) -> Any:  # fmt: skip
    m, n = shape if len(shape) == 2 else (1, *shape)
    values, (rows, columns) = _drawn(m, n, density, dtype, rng, data_sampler)
    places = (columns,) if len(shape) == 1 else (rows, columns)
    return adopt(scipy.sparse.coo_array((values, places), shape=tuple(shape)).asformat(format))
