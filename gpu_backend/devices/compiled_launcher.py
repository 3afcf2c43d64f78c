"""The launcher that is written in C: see `launching`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_backend import sources
from gpu_backend.devices.launching import Launcher


def make(
    launch_kernel: int, launch_cooperative: int, enter: int, context: int,
    failure: Callable[[int, bool, bool], Exception],
) -> Launcher | None:  # fmt: skip
    """Return a launcher; None where it is not compiled.

    Parameters
    ----------
    launch_kernel, launch_cooperative, enter
        Where the driver's ``cuLaunchKernel``, ``cuLaunchCooperativeKernel`` and ``cuCtxSetCurrent`` are.
    context
        What the thread enters.
    failure
        Makes an exception of a status: whether other ops have come since, and whether it is the library's of products.
    """
    core: Any = sources.in_c("gpu_backend.devices._launching")
    if core is None:
        return None
    made: Launcher = core.Launcher(
        launch_kernel=launch_kernel, launch_cooperative=launch_cooperative, enter=enter, context=context,
        failure=failure,
    )  # fmt: skip
    return made
