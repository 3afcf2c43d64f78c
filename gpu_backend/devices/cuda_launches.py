"""The launcher of a GPU: see `launching`."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

from cupy.cuda import driver, runtime
from cupy_backends.cuda.libs import cublas

from gpu_backend.devices import launching
from gpu_backend.devices.launching import Launcher


class Lost(Exception):
    """What was refused when ops behind it were taken for carried out, so nobody knows what those made."""


class LostLaunch(Lost, driver.CUDADriverError):  # type: ignore[misc]
    """A launch, by the driver."""


class LostProduct(Lost, cublas.CUBLASError):  # type: ignore[misc]
    """A product, by its library."""


def make_launcher() -> Launcher | None:
    """Return what launches on the current GPU; None where it is not compiled.

    Raises OSError if there is no driver.
    """
    runtime.free(0)  # so that it has a context
    library = ctypes.CDLL("libcuda.so.1")
    functions = (library.cuLaunchKernel, library.cuLaunchCooperativeKernel, library.cuCtxSetCurrent)
    return launching.make(*map(address, functions), driver.ctxGetCurrent(), _failure)


def address(function: object) -> int:
    """Return where a function of a library is."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _failure(status: int, is_late: bool, is_librarys: bool) -> Exception:
    kinds = (cublas.CUBLASError, LostProduct) if is_librarys else (driver.CUDADriverError, LostLaunch)
    error: Exception = kinds[is_late](status)
    return error


def library_of_products() -> ctypes.CDLL:
    """Return the cuBLAS that CuPy calls. Raises OSError if it has none that could be found."""
    maps = Path("/proc/self/maps").read_text()
    found = re.search(r"\S*/libcublas\.so\S*", maps)
    if found is None:
        raise OSError("CuPy has loaded no cuBLAS.")
    return ctypes.CDLL(found[0])
