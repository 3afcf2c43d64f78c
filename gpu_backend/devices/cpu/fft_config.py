"""``cupy.fft.config``: settings of the transforms, and the cache of their plans."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from gpu_backend.devices.cpu.fft_cache import PlanCache
from gpu_backend.devices.cpu.naming import describe_as
from gpu_backend.devices.cpu.several import DEVICES
from gpu_backend.devices.cpu.table import define_value

_DEPRECATED = "enable_nd_planning is deprecated as of CuPy 14 and will always be True in the future."
_EXPERIMENTAL = "cupy.fft.config.set_cufft_gpus is experimental. The interface can change in the future."


class FftConfig:
    """What ``cupy.fft.config`` is."""

    def __init__(self) -> None:
        self._caches: dict[int, PlanCache] = {}
        self._together = True
        self._several = False
        self._devices: tuple[int, ...] | None = None

    @property
    def plans_together(self) -> bool:
        """Whether neighbouring axes are transformed at once, which keeps the memory order."""
        return self._together

    @property
    def enable_nd_planning(self) -> bool:
        """What `plans_together` is; deprecated by CuPy."""
        warnings.warn(_DEPRECATED, DeprecationWarning, stacklevel=2)
        return self._together

    @enable_nd_planning.setter
    def enable_nd_planning(self, value: bool) -> None:
        warnings.warn(_DEPRECATED, DeprecationWarning, stacklevel=2)
        self._together = value

    @property
    def use_multi_gpus(self) -> bool:
        """Whether transforms are to be spread over several devices."""
        return self._several

    @use_multi_gpus.setter
    def use_multi_gpus(self, value: bool) -> None:
        self._several = bool(value)

    @property
    def devices(self) -> tuple[int, ...] | None:
        """The GPUs to spread transforms over, if they are to be."""
        return self._devices if self._several else None

    def set_cufft_gpus(self, gpus: int | Sequence[int]) -> None:
        """Name the GPUs that `use_multi_gpus` is about: the first ``gpus``, or these."""
        warnings.warn(_EXPERIMENTAL, FutureWarning, stacklevel=2)
        if not isinstance(gpus, (int, list, tuple)):
            raise ValueError("gpus must be an int or a list or tuple of int.")
        named = range(gpus) if isinstance(gpus, int) else gpus
        if len(named) <= 1:
            raise ValueError("Must use at least 2 GPUs.")
        self._devices = tuple(named)

    def get_plan_cache(self) -> PlanCache:
        """Return the cache of the current device."""
        return self.cache_of(DEVICES.current)

    def cache_of(self, number: int) -> PlanCache:
        """Return the cache of the device ``number``."""
        if number not in self._caches:  # each transform asks
            self._caches[number] = PlanCache(dev=number)
        return self._caches[number]

    def clear_plan_cache(self) -> None:
        """Forget all plans."""
        self.get_plan_cache().clear()

    def get_plan_cache_size(self) -> int:
        """Return how many plans may be kept."""
        return self.get_plan_cache().get_size()

    def set_plan_cache_size(self, size: int) -> None:
        """Set how many plans may be kept."""
        self.get_plan_cache().set_size(size)

    def get_plan_cache_max_memsize(self) -> int:
        """Return the most bytes of work areas that plans may hold."""
        return self.get_plan_cache().get_memsize()

    def set_plan_cache_max_memsize(self, memsize: int) -> None:
        """Set the most bytes of work areas that plans may hold."""
        self.get_plan_cache().set_memsize(memsize)

    def show_plan_cache_info(self) -> None:
        """Do nothing here: the notebook shows what the cache says of itself."""

    def _no_callbacks(self) -> None:
        """Return None: there are no callbacks here."""

    get_current_callback_manager = _no_callbacks  # CuPy's name

    def set_cufft_callbacks(self, *args: object, **kwargs: object) -> None:
        """Refuse: there is no cuFFT here to compile them into."""
        raise RuntimeError(
            "Callbacks of transforms are compiled into NVIDIA's cuFFT, and this pool computes on a processor. "
            "Transform, and change the array before or after with a kernel."
        )


describe_as("cupy.fft._config._FFTConfig", FftConfig)
FftConfig.__module__, FftConfig.__name__, FftConfig.__qualname__ = "cupy.fft._config", "_FFTConfig", "_FFTConfig"
config = FftConfig()
define_value(config, "cupy.fft.config")
