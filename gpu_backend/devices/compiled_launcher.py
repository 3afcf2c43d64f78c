"""The launcher that is written in C: see `launching`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_backend import sources
from gpu_backend.devices.launching import Driver, Launcher


def make(driver: Driver, failure: Callable[[int, bool, bool], Exception]) -> Launcher | None:
    """Return a launcher; None where it is not compiled.

    ``failure`` makes an exception of a status: whether other ops have come since, and whether it is the library's of
    products.
    """
    core: Any = sources.in_c("gpu_backend.devices._launching")
    if core is None:
        return None
    made: Launcher = core.Launcher(**driver._asdict(), failure=failure)
    return made
