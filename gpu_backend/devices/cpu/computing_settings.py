"""How CuPy is asked to compute: kept and told as CuPy does; NumPy has one way only."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import DTypeLike

from gpu_backend.devices.cpu.table import define_value

_ACCELERATORS = {"cub": 1, "cutensor": 2, "cutensornet": 3}
#: Numbers of the ways to multiply matrices: "to be decided", the default, pedantic, and by five types.
_DEFAULT, _COMPUTE_TYPES = 1, range(8)
_PRECISIONS = {"e": "half", "f": "single", "F": "single", "d": "double", "D": "double"}

_chosen: dict[str, list[int]] = {which: [1] for which in ("elementwise", "reduction", "routine")}
_compute_types: dict[str, int] = {}


def _number(accelerator: int | str) -> int:
    if isinstance(accelerator, int):
        return accelerator
    if accelerator not in _ACCELERATORS:
        raise ValueError(f"Unknown accelerator: {accelerator}")
    return _ACCELERATORS[accelerator]


def _accelerators(which: str) -> tuple[Callable[[], list[int]], Callable[[Iterable[int | str]], None]]:
    def get() -> list[int]:
        return _chosen[which]

    def set_to(accelerators: Iterable[int | str]) -> None:
        _chosen[which] = [_number(one) for one in accelerators]

    return get, set_to


def _precision(dtype: DTypeLike) -> str:
    found = np.dtype(dtype)
    if found.name == "bfloat16":
        return "bfloat16"
    if found.char not in _PRECISIONS:
        raise TypeError(f"dtype is not supported: {found}")
    return _PRECISIONS[found.char]


def get_compute_type(dtype: DTypeLike) -> int:
    """Return the number of the way in which matrices of ``dtype`` are multiplied."""
    return _compute_types.get(_precision(dtype)) or _DEFAULT


def set_compute_type(dtype: DTypeLike, compute_type: int) -> None:
    """Note the way in which matrices of ``dtype`` are to be multiplied."""
    if compute_type not in _COMPUTE_TYPES:
        raise ValueError(f"Unknown compute type: {compute_type}")
    _compute_types[_precision(dtype)] = compute_type


for _which in _chosen:
    _get, _set = _accelerators(_which)
    define_value(_get, f"cupy._core.get_{_which}_accelerators")
    define_value(_set, f"cupy._core.set_{_which}_accelerators")
define_value(get_compute_type, "cupy._core.get_compute_type")
define_value(set_compute_type, "cupy._core.set_compute_type")
