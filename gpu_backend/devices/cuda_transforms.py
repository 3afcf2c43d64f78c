"""The plans of cuFFT's that CuPy keeps, as an op that is captured meets them: used where they are, and never made.

What a transform launches leads to the work area and the tables of its plan, and so holds as long as CuPy would use that
plan again. A plan that was made during a capture would have a work area at an address that there is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from cupy.fft import _fft

from gpu_backend.devices.replays import Unrepeatable

#: The most memory that the work area of a captured transform's plan may take: larger ones keep the device busy.
_MOST_BYTES = 16 << 20


class _Used(NamedTuple):
    """A plan, and where CuPy keeps it."""

    cache: Any
    keys: tuple[object, ...]
    plan: Any


class Plans:
    """The plans by which a captured op goes."""

    def __init__(self) -> None:
        self._used: list[_Used] = []

    def __bool__(self) -> bool:
        return bool(self._used)

    def add(self, used: _Used) -> None:
        """Note a plan. Raises `Unrepeatable` if its work area is large."""
        area = used.plan.work_area
        if not hasattr(area, "mem") or area.mem.size > _MOST_BYTES:
            raise Unrepeatable("a plan with much memory, or of several devices")
        if all(one.plan is not used.plan for one in self._used):
            self._used.append(used)

    def hold(self) -> bool:
        """Tell whether CuPy would go by these plans now, and note that they are used, as it would."""
        return bool(self._used) and all(used.cache.get(used.keys) is used.plan for used in self._used)

    def let_go(self) -> None:
        """Have them hold no more, and their memory be CuPy's to free."""
        self._used.clear()


class _Cache:
    """CuPy's cache of plans while an op is captured."""

    def __init__(self, cache: Any, plans: Plans) -> None:
        self._cache, self._plans = cache, plans

    def get(self, keys: tuple[object, ...], default: object = None) -> Any:
        """Return the plan for ``keys``. Raises `Unrepeatable` if there is none."""
        plan = self._cache.get(keys)
        if plan is None:
            raise Unrepeatable("a transform without a plan")
        self._plans.add(_Used(self._cache, keys, plan))
        return plan


@contextmanager
def plans_used() -> Iterator[Plans]:
    """Return a context in which plans are taken from CuPy's cache only, and those that are."""
    plans = Plans()
    usual: Callable[[], Any] = _fft.get_plan_cache
    _fft.get_plan_cache = lambda: _Cache(usual(), plans)
    try:
        yield plans
    finally:
        _fft.get_plan_cache = usual


def is_transform(function: Callable[..., Any]) -> bool:
    """Tell whether ``function`` is one of ``cupy.fft``, and so leads to no memory but operands' and plans'."""
    return bool(getattr(function, "__module__", "") == _fft.__name__)
