"""``cupy.fft.config`` and the plan cache: settings of the notebook, which act in the executor, and what it keeps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from kernelproxy.calls import dispatch, planning
from kernelproxy.calls.remote_object import RemoteInstance, RemoteObject
from kernelproxy.client import current
from kernelproxy.errors import warn_of_experimental

_DEPRECATED = "enable_nd_planning is deprecated as of CuPy 14 and will always be True in the future."


class PlanCache(RemoteObject):
    """The cache of plans."""

    _qualname = "cupy.fft._cache.PlanCache"

    def show_info(self) -> None:
        """Print what is cached, and how often it was used."""
        print(repr(self))  # noqa: T201 (printing is what it is for)


class CufftCallbacks(RemoteObject):
    """What `FftConfig.set_cufft_callbacks` gives: transforms inside its block call the user's functions."""

    _qualname = "cupy.fft._callback.set_cufft_callbacks"

    def __enter__(self) -> Any:
        return dispatch.ask_object(".method", self, "__enter__")

    def __exit__(self, *raised: object) -> None:
        dispatch.ask_object(".method", self, "__exit__", None, None, None)  # an exception is the notebook's own


class FftConfig(RemoteInstance):
    """Settings of the transforms. Each holds for the context that sets it, and acts where the ops run."""

    _enable_nd_planning = planning.enable_nd_planning
    _use_multi_gpus = planning.use_multi_gpus
    _devices = planning.devices

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    @property
    def enable_nd_planning(self) -> bool:
        """Whether neighbouring axes are transformed at once, if they can be. Deprecated by CuPy."""
        warnings.warn(_DEPRECATED, DeprecationWarning, stacklevel=2)
        return self._enable_nd_planning.get()

    @enable_nd_planning.setter
    def enable_nd_planning(self, value: bool) -> None:
        warnings.warn(_DEPRECATED, DeprecationWarning, stacklevel=3)
        self._enable_nd_planning.set(value)
        current().part(planning.Planning).bring()

    @property
    def use_multi_gpus(self) -> bool:
        """Whether transforms are spread over the GPUs that `set_cufft_gpus` named."""
        return self._use_multi_gpus.get()

    @use_multi_gpus.setter
    def use_multi_gpus(self, value: bool) -> None:
        self._use_multi_gpus.set(bool(value))
        current().part(planning.Planning).bring()

    @property
    def devices(self) -> tuple[int, ...] | None:
        """The GPUs that transforms are spread over; None if they are not."""
        return self._devices.get() if self._use_multi_gpus.get() else None

    def set_cufft_gpus(self, gpus: int | Sequence[int]) -> None:
        """Name the GPUs to spread transforms over: the first ``gpus``, or these.

        Raises
        ------
        ValueError
            If they are fewer than two.
        """
        warn_of_experimental("cupy.fft.config.set_cufft_gpus")
        if not isinstance(gpus, (int, list, tuple)):
            raise ValueError("gpus must be an int or a list or tuple of int.")
        named = tuple(range(gpus) if isinstance(gpus, int) else gpus)
        if len(named) <= 1:
            raise ValueError("Must use at least 2 GPUs.")
        self._devices.set(named)
        current().part(planning.Planning).bring()

    def set_cufft_callbacks(self, *args: object, **kwargs: object) -> Any:
        """Return a context in which transforms call functions of CUDA C++; parameters as in CuPy."""
        return self._ask("set_cufft_callbacks", *args, **kwargs)

    def get_plan_cache(self) -> Any:
        """Return the cache of plans."""
        return self._ask("get_plan_cache")

    def clear_plan_cache(self) -> None:
        """Forget all plans."""
        self._ask("clear_plan_cache")

    def get_plan_cache_size(self) -> int:
        """Return how many plans may be kept; -1 for any number."""
        return int(self._ask("get_plan_cache_size"))

    def set_plan_cache_size(self, size: int) -> None:
        """Set how many plans may be kept: -1 for any number, 0 for none."""
        self._ask("set_plan_cache_size", size)

    def get_plan_cache_max_memsize(self) -> int:
        """Return the most bytes of work areas that plans may hold; -1 for any number."""
        return int(self._ask("get_plan_cache_max_memsize"))

    def set_plan_cache_max_memsize(self, size: int) -> None:
        """Set the most bytes of work areas that plans may hold: -1 for any number, 0 keeps no plans."""
        self._ask("set_plan_cache_max_memsize", size)

    def show_plan_cache_info(self) -> None:
        """Print what is cached."""
        print("=============== cuFFT plan cache info (all devices) ===============")  # noqa: T201
        self.get_plan_cache().show_info()

    def _ask(self, name: str, *args: object, **kwargs: object) -> Any:
        return dispatch.ask_object(".method", self, name, *args, **kwargs)


config = FftConfig("cupy.fft.config", "cupy.fft._config._FFTConfig")
