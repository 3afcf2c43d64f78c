"""``cupy.fft.config`` and the plan cache: objects of the executor that print in the notebook."""

from __future__ import annotations

from typing import Any

from kernelproxy import dispatch
from kernelproxy.remote_object import RemoteInstance, RemoteObject


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

    def __exit__(self, *raised: Any) -> None:
        dispatch.ask_object(".method", self, "__exit__", None, None, None)  # an exception is the notebook's own


class FftConfig(RemoteInstance):
    """Settings of the transforms; each is one of the executor's."""

    def set_cufft_callbacks(self, *args: Any, **kwargs: Any) -> Any:
        """Return a context in which transforms call functions of CUDA C++; parameters as in CuPy."""
        return dispatch.ask_object(".method", self, "set_cufft_callbacks", *args, **kwargs)

    def show_plan_cache_info(self) -> None:
        """Print what is cached."""
        print("=============== cuFFT plan cache info (all devices) ===============")  # noqa: T201
        self.get_plan_cache().show_info()


config = FftConfig("cupy.fft.config", "cupy.fft._config._FFTConfig")
