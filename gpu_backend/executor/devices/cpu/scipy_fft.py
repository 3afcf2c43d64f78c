"""``cupyx.scipy.fft`` and ``cupyx.scipy.fftpack``. A plan is accepted and not needed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import scipy.fft
import scipy.fftpack

from gpu_backend.executor.devices.cpu.arrays import Array, np
from gpu_backend.executor.devices.cpu.naming import public_class
from gpu_backend.executor.devices.cpu.scipy_functions import define_scipy
from gpu_backend.executor.devices.cpu.table import define


@public_class("cupy.cuda.cufft.Plan1d", module="cupy.cuda.cufft")
class Plan1d:
    """What a transform would be planned with; a context, and an argument of the transforms."""

    def __init__(self, shape: tuple[int, ...], kind: str) -> None:
        self.shape = shape
        self.fft_type = kind

    def __enter__(self) -> Plan1d:
        return self

    def __exit__(self, *args: object) -> None:
        pass


@define("cupyx.scipy.fft.get_fft_plan", "cupyx.scipy.fftpack.get_fft_plan")
def get_fft_plan(a: Array, shape: Any = None, axes: Any = None, value_type: str = "C2C") -> Plan1d:
    if value_type not in ("C2C", "C2R", "R2C"):
        raise ValueError(f"value_type {value_type} is not understood")
    if value_type == "R2C" and a.dtype.kind == "c":
        raise TypeError("The input array must be real")
    wanted = a.shape if shape is None else (shape,) if np.isscalar(shape) else tuple(shape)
    return Plan1d(wanted, value_type)


@define("cupyx.scipy.fft.next_fast_len")
def next_fast_len(target: int, real: bool = False) -> int:
    """Return the least length from ``target`` on that has no prime factor but 2, 3, 5 and 7."""
    while not _is_smooth(target):
        target += 1
    return target


def _is_smooth(length: int) -> bool:
    for prime in (2, 3, 5, 7):
        while length and length % prime == 0:
            length //= prime
    return length in (0, 1)


def _of_types_2_and_3(transform: Callable[..., Any], letters: str) -> Callable[..., Any]:
    @functools.wraps(transform)
    def call(x: Any, type: int = 2, *args: Any, **kwargs: Any) -> Any:
        if type in (1, 4):
            raise NotImplementedError(f"Only {letters}-II and {letters}-III have been implemented.")
        return transform(x, type, *args, **kwargs)

    return call


_REAL_TRANSFORMS = tuple(
    f"{inverse}{kind}{many}" for inverse in ("", "i") for kind in ("dct", "dst") for many in ("", "n")
)
define_scipy("cupyx.scipy.fft", scipy.fft, without=(*_REAL_TRANSFORMS, "next_fast_len"))
for _name in _REAL_TRANSFORMS:
    _letters = "DCT" if "dct" in _name else "DST"
    define(f"cupyx.scipy.fft.{_name}")(_of_types_2_and_3(getattr(scipy.fft, _name), _letters))
define_scipy("cupyx.scipy.fftpack", scipy.fftpack)
