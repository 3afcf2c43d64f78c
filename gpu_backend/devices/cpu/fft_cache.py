"""The cache of plans: those used last are kept, up to a number."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from gpu_backend.devices.cpu.fft_plans import Plan
from gpu_backend.devices.cpu.naming import public_class


@public_class("cupy.fft._cache.PlanCache", module="cupy.fft._cache")
class PlanCache:
    """Plans by what they were made of. Theirs is no memory of the device: SciPy finds its own room."""

    def __init__(self, size: int = 16, memsize: int = -1, dev: int = -1) -> None:
        self._device = max(dev, 0)
        self._size = self._bytes = -1
        self.clear()
        self.set_size(size)
        self.set_memsize(memsize)

    def get_size(self) -> int:
        """Return how many plans may be kept; -1 for any number."""
        return self._size

    def set_size(self, size: int) -> None:
        """Set how many plans may be kept: -1 for any number, 0 for none."""
        if size < -1:
            raise ValueError("invalid input")
        self._size = size
        self._eject()

    def get_memsize(self) -> int:
        """Return the most bytes of work areas that plans may hold; -1 for any number."""
        return self._bytes

    def set_memsize(self, memsize: int) -> None:
        """Set the most bytes of work areas that plans may hold: -1 for any number, 0 keeps no plans."""
        if memsize < -1:
            raise ValueError("invalid input")
        self._bytes = memsize
        self._eject()

    def get_curr_size(self) -> int:
        """Return how many plans are kept."""
        return len(self._plans)

    def get_curr_memsize(self) -> int:
        """Return 0: plans hold no memory of the device."""
        return 0

    def clear(self) -> None:
        """Forget all plans, and how often they were found."""
        self._plans: OrderedDict[tuple[Any, ...], Plan] = OrderedDict()
        self._hits = self._misses = 0

    def get(self, key: tuple[object, ...], default: object = None) -> Any:
        """Return the plan that was made of ``key``, else ``default``."""
        if not self._is_enabled:
            return default
        plan = self._plans.get(key)
        if plan is None:
            self._misses += 1
            return default
        self._hits += 1
        self._plans.move_to_end(key)
        return plan

    def keep(self, key: tuple[object, ...], plan: Plan) -> None:
        """Keep ``plan``, if plans are kept, in place of the one that was used longest ago."""
        if self._is_enabled:
            self._plans[key] = plan
            self._eject()

    @property
    def _is_enabled(self) -> bool:
        return self._size != 0 and self._bytes != 0

    def _eject(self) -> None:
        while self._plans and (not self._is_enabled or -1 < self._size < len(self._plans)):
            self._plans.popitem(last=False)

    def show_info(self) -> None:
        """Do nothing here: the notebook shows what `repr` says."""

    def __repr__(self) -> str:
        size, held = ("(unlimited)" if limit == -1 else limit for limit in (self._size, self._bytes))
        head = (
            f"------------------- cuFFT plan cache (device {self._device}) -------------------\n"
            f"cache enabled? {self._is_enabled}\n"
            f"current / max size   : {len(self._plans)} / {size} (counts)\n"
            f"current / max memsize: 0 / {held} (bytes)\n"
            f"hits / misses: {self._hits} / {self._misses} (counts)\n"
            "\ncached plans (most recently used first):\n"
        )
        plans = reversed(self._plans.items())
        return head + "".join(f"key: {key}, plan type: {type(plan).__name__}, memory usage: 0\n" for key, plan in plans)
