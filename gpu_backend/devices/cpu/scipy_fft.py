"""``cupyx.scipy.fft``: transforms that take a plan and may overwrite their array, and cosine and sine transforms."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any

import scipy.fft

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.fft import KINDS, swapped
from gpu_backend.devices.cpu.fft_plans import Plan
from gpu_backend.devices.cpu.fft_transforms import one_by_one, way
from gpu_backend.devices.cpu.scipy_functions import define_scipy
from gpu_backend.devices.cpu.table import define


def _one_axis(name: str) -> Callable[..., Array]:
    kind, forward = KINDS[name]

    def function(
        x: Array, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False, *,
        plan: Plan | None = None,
    ) -> Array:  # fmt: skip
        return one_by_one(x, (n,), (axis,), norm, forward, kind, overwrite_x=overwrite_x, plan=plan)

    return function


def _in_sequence(value: object) -> Any:
    return (value,) if isinstance(value, numbers.Number) else value


def _many_axes(name: str, default: object) -> Callable[..., Array]:
    kind, forward = KINDS[name]

    def function(
        x: Array, s: object = None, axes: object = default, norm: str | None = None, overwrite_x: bool = False, *,
        plan: Plan | None = None,
    ) -> Array:  # fmt: skip
        s, axes = _in_sequence(s), _in_sequence(axes)
        go = way(x, s, axes, None, kind)  # CuPy does not ask what the plan is for
        return go(x, s, axes, norm, forward, kind, overwrite_x=overwrite_x, plan=plan)

    return function


def _refuse_plan(name: str, plan: Plan | None) -> None:
    if plan is not None:
        raise NotImplementedError(f"{name} plan is currently not yet supported")


def _hermitian_one(name: str) -> Callable[..., Array]:
    """Return the transform along one axis from or to an array that is its own mirror image."""
    transform = _one_axis("irfft" if name == "hfft" else "rfft")

    def function(
        x: Array, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False, *,
        plan: Plan | None = None,
    ) -> Array:  # fmt: skip
        _refuse_plan(name, plan)
        norm = swapped(norm)
        return transform(x.conj(), n, axis, norm) if name == "hfft" else transform(x, n, axis, norm).conj()

    return function


def _hermitian_many(name: str, default: object) -> Callable[..., Array]:
    inverse = name.startswith("i")
    transform = _many_axes("rfft" if inverse else "irfft", default)

    def function(
        x: Array, s: object = None, axes: object = default, norm: str | None = None, overwrite_x: bool = False, *,
        plan: Plan | None = None,
    ) -> Array:  # fmt: skip
        _refuse_plan(name, plan)
        norm = swapped(norm)
        return transform(x, s, axes, norm).conj() if inverse else transform(x.conj(), s, axes, norm)

    return function


for _name in KINDS:
    define(f"cupyx.scipy.fft.{_name}")(_one_axis(_name))
    define(f"cupyx.scipy.fft.{_name}n")(_many_axes(_name, None))
    define(f"cupyx.scipy.fft.{_name}2")(_many_axes(_name, (-2, -1)))
for _name in ("hfft", "ihfft"):
    define(f"cupyx.scipy.fft.{_name}")(_hermitian_one(_name))
    define(f"cupyx.scipy.fft.{_name}n")(_hermitian_many(f"{_name}n", None))
    define(f"cupyx.scipy.fft.{_name}2")(_hermitian_many(f"{_name}2", (-2, -1)))


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
    def call(x: object, type: int = 2, *args: object, **kwargs: object) -> Any:
        if type in (1, 4):
            raise NotImplementedError(f"Only {letters}-II and {letters}-III have been implemented.")
        return transform(x, type, *args, **kwargs)

    return call


_REAL_TRANSFORMS = tuple(
    f"{inverse}{kind}{many}" for inverse in ("", "i") for kind in ("dct", "dst") for many in ("", "n")
)
_COMPLEX_TRANSFORMS = tuple(f"{name}{many}" for name in (*KINDS, "hfft", "ihfft") for many in ("", "2", "n"))
define_scipy("cupyx.scipy.fft", scipy.fft, without=(*_REAL_TRANSFORMS, *_COMPLEX_TRANSFORMS, "next_fast_len"))
for _name in _REAL_TRANSFORMS:
    _letters = "DCT" if "dct" in _name else "DST"
    define(f"cupyx.scipy.fft.{_name}")(_of_types_2_and_3(getattr(scipy.fft, _name), _letters))
