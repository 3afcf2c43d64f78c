"""``cupy.fft.config`` and the plan cache: objects of the executor that print in the notebook."""

from __future__ import annotations

from kernelproxy.remote_object import RemoteInstance, RemoteObject


class PlanCache(RemoteObject):
    """The cache of plans."""

    _qualname = "cupy.fft._cache.PlanCache"

    def show_info(self) -> None:
        """Print what is cached, and how often it was used."""
        print(repr(self))  # noqa: T201 (printing is what it is for)


class FftConfig(RemoteInstance):
    """Settings of the transforms; each is one of the executor's."""

    def show_plan_cache_info(self) -> None:
        """Print what is cached."""
        print("=============== cuFFT plan cache info (all devices) ===============")  # noqa: T201
        self.get_plan_cache().show_info()


config = FftConfig("cupy.fft.config", "cupy.fft._config._FFTConfig")
