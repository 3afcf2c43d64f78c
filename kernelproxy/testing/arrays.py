"""Arrays with known contents, made by NumPy and handed to the array module that is asked for, by default CuPy."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import numpy as np


def _xp(xp: Any) -> Any:
    # By name: what is imported here is the remote CuPy, never the library.
    return importlib.import_module("cupy") if xp is None else xp


def _counted(shape: Iterable[int], dtype: Any, first: int, step: int) -> np.ndarray[Any, Any]:
    size = int(np.prod(tuple(shape)))
    numbers = np.arange(first, first + step * size, step, dtype=np.int64)
    kind = np.dtype(dtype).kind
    if kind == "c":
        return numbers + numbers * 1j
    return numbers % 2 == 0 if kind == "b" else numbers


def shaped_arange(shape: Any, xp: Any = None, dtype: Any = np.float32, order: str = "C") -> Any:
    """Return 1, 2, 3, ... in ``shape``; alternating for bool, with an equal imaginary part for complex."""
    made = _counted(shape, dtype, 1, 1).astype(dtype).reshape(shape)
    return _xp(xp).array(made, dtype=dtype, order=order)


def shaped_reverse_arange(shape: Any, xp: Any = None, dtype: Any = np.float32) -> Any:
    """Return ..., 3, 2, 1 in ``shape``; alternating for bool, with an equal imaginary part for complex."""
    made = _counted(shape, dtype, int(np.prod(tuple(shape))), -1).astype(dtype).reshape(shape)
    return _xp(xp).array(made, dtype=dtype)


def shaped_random(
    shape: Any, xp: Any = None, dtype: Any = np.float32, scale: float = 10, seed: int = 0, order: str = "C"
) -> Any:
    """Return random numbers in [0, scale), the same for the same seed; complex ones in both parts."""
    state = np.random.RandomState(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        made = state.randint(2, size=shape).astype(bool)
    elif kind == "c":
        made = state.rand(*shape) + 1j * state.rand(*shape)
    else:
        made = state.rand(*shape)
    return _xp(xp).array(made * scale if kind != "b" else made, dtype=dtype, order=order)


def shaped_sparse_random(
    shape: tuple[int, int], sp: Any = None, dtype: Any = np.float32, density: float = 0.01, format: str = "coo",
    seed: int = 0,
) -> Any:  # fmt: skip
    """Return a random sparse matrix, the same for the same seed.

    Parameters
    ----------
    sp : module, optional
        ``scipy.sparse`` or ``cupyx.scipy.sparse``, which is the default.

    Raises
    ------
    ValueError
        If ``sp`` has no sparse matrices.
    """
    module = importlib.import_module("cupyx.scipy.sparse") if sp is None else sp
    made = importlib.import_module("scipy.sparse").random(*shape, density, random_state=seed).astype(dtype)
    if not hasattr(module, "coo_matrix"):
        raise ValueError(f"Module {module} does not have the expected sparse APIs")
    return module.coo_matrix(made).asformat(format)


def shaped_linspace(start: Any, stop: Any, shape: Any, xp: Any = None, dtype: Any = np.float32) -> Any:
    """Return evenly spaced numbers in ``shape``, within the range of bool and of unsigned dtypes."""
    kind = np.dtype(dtype).kind
    if kind in "bu":
        start = max(start, 0)
    if kind == "b":
        stop = min(stop, 1)
    made = np.linspace(start, stop, int(np.prod(shape))).astype(dtype).reshape(shape)
    return _xp(xp).array(made, dtype=dtype)


def generate_matrix(
    shape: tuple[int, ...], xp: Any = None, dtype: Any = np.float32, *, singular_values: Any = None
) -> Any:
    """Return random matrices that have the given singular values.

    Parameters
    ----------
    shape : tuple of int
        (..., M, N).
    dtype : dtype
        Real or complex floating.
    singular_values : array_like
        Not negative; it is broadcast to (..., min(M, N)).

    Raises
    ------
    TypeError
        If ``singular_values`` is missing or complex, or ``dtype`` is not floating.
    ValueError
        If ``shape`` is no matrix's, or a singular value is negative.
    """
    module, kind = _xp(xp), np.dtype(dtype)
    if len(shape) < 2:
        raise ValueError(f"shape {shape} is invalid for matrices: too few axes")
    if singular_values is None:
        raise TypeError("singular_values is not given")
    wanted = module.asarray(singular_values)
    if kind.kind not in "fc":
        raise TypeError(f"dtype {kind} is not supported")
    if not module.isrealobj(wanted):
        raise TypeError("singular_values is not real")
    if (wanted < 0).any():
        raise ValueError("negative singular value is given")
    chance = module.random.randn(*shape)
    if kind.kind == "c":
        chance = chance + 1j * module.random.randn(*shape)
    left, values, right = module.linalg.svd(chance, full_matrices=False)
    wanted = module.broadcast_to(wanted, values.shape)
    return module.matmul(left * wanted[..., None, :], right).astype(kind)
