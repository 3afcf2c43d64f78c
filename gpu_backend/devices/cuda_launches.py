"""The launcher of a GPU: see `launching`."""

from __future__ import annotations

import ctypes

from cupy.cuda import driver, runtime

from gpu_backend.devices import launching
from gpu_backend.devices.launching import Launcher


class LostLaunch(driver.CUDADriverError):  # type: ignore[misc]
    """A launch that the driver refused when ops behind it had been carried out, so nobody knows what those made."""


def make_launcher() -> Launcher | None:
    """Return what launches on the current GPU; None where it is not compiled.

    Raises OSError if there is no driver.
    """
    runtime.free(0)  # so that it has a context
    library = ctypes.CDLL("libcuda.so.1")
    functions = (library.cuLaunchKernel, library.cuLaunchCooperativeKernel, library.cuCtxSetCurrent)
    return launching.make(*map(_address, functions), driver.ctxGetCurrent(), _failure)


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _failure(status: int, is_late: bool) -> Exception:
    error: Exception = LostLaunch(status) if is_late else driver.CUDADriverError(status)
    return error
