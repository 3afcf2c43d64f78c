"""``cupy.fft.config``: settings of transforms that SciPy does not need. They are kept and answered."""

from __future__ import annotations

import warnings

from gpu_backend.executor.devices.cpu.naming import public_class
from gpu_backend.executor.devices.cpu.table import define_value


class PlanCache:
    """A cache of plans that stays empty: SciPy keeps its own."""

    def __init__(self) -> None:
        self._size, self._bytes = 16, -1

    def get_size(self) -> int:
        """Return how many plans may be kept."""
        return self._size

    def set_size(self, size: int) -> None:
        """Set how many plans may be kept; -1 for any number."""
        if size < -1:
            raise ValueError("size must be -1 or non-negative")
        self._size = size

    def get_memsize(self) -> int:
        """Return the most bytes of work areas that plans may hold; -1 for any number."""
        return self._bytes

    def set_memsize(self, memsize: int) -> None:
        """Set the most bytes of work areas that plans may hold."""
        self._bytes = memsize

    def get_curr_size(self) -> int:
        """Return 0: there are no plans."""
        return 0

    def get_curr_memsize(self) -> int:
        """Return 0: there are no plans."""
        return 0

    def clear(self) -> None:
        """Do nothing: the cache is empty."""

    def show_info(self) -> None:
        """Do nothing: there is nothing to show."""

    def __repr__(self) -> str:
        size, held = ("(unlimited)" if limit == -1 else limit for limit in (self._size, self._bytes))
        return (
            "------------------- cuFFT plan cache (device 0) -------------------\n"
            f"cache enabled? {self._size != 0}\ncurrent / max size   : 0 / {size} (counts)\n"
            f"current / max memsize: 0 / {held} (bytes)\nhits / misses: 0 / 0 (counts)\n"
            "\ncached plans (most recently used first):\n"
        )


class FftConfig:
    """What ``cupy.fft.config`` is."""

    def __init__(self) -> None:
        self.enable_nd_planning = True
        self.use_multi_gpus = False
        self._cache = PlanCache()

    def get_plan_cache(self) -> PlanCache:
        """Return the cache."""
        return self._cache

    def clear_plan_cache(self) -> None:
        """Do nothing: the cache is empty."""

    def get_plan_cache_size(self) -> int:
        """Return how many plans may be kept."""
        return self._cache.get_size()

    def set_plan_cache_size(self, size: int) -> None:
        """Set how many plans may be kept."""
        self._cache.set_size(size)

    def get_plan_cache_max_memsize(self) -> int:
        """Return the most bytes of work areas that plans may hold."""
        return self._cache.get_memsize()

    def set_plan_cache_max_memsize(self, memsize: int) -> None:
        """Set the most bytes of work areas that plans may hold."""
        self._cache.set_memsize(memsize)

    def show_plan_cache_info(self) -> None:
        """Do nothing: there is nothing to show."""

    def set_cufft_gpus(self, gpus: int | list[int]) -> None:
        """Take note: there is one device."""
        warnings.warn("there is one device; transforms use it", stacklevel=2)

    def set_cufft_callbacks(self, *args: object, **kwargs: object) -> None:
        """Refuse: there is no cuFFT here to compile them into."""
        raise RuntimeError(
            "Callbacks of transforms are compiled into NVIDIA's cuFFT, and this pool computes on a processor. "
            "Transform, and change the array before or after with a kernel."
        )


public_class("cupy.fft._cache.PlanCache", module="cupy.fft._cache")(PlanCache)
FftConfig.__module__, FftConfig.__name__, FftConfig.__qualname__ = "cupy.fft._config", "_FFTConfig", "_FFTConfig"
define_value(FftConfig(), "cupy.fft.config")
