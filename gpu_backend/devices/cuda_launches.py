"""The launcher of a GPU: see `launching`."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path

from cupy.cuda import driver, function, runtime
from cupy_backends.cuda.libs import cublas

from gpu_backend.devices import compiled_launcher
from gpu_backend.devices.launching import Driver, Launcher

#: What of the driver's is called, in the order in which `Driver` has it.
_CALLED = (
    "cuLaunchKernel", "cuLaunchCooperativeKernel", "cuCtxSetCurrent",
    "cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiateWithFlags", "cuGraphUpload",
    "cuGraphExecKernelNodeSetParams", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy",
)  # fmt: skip


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
    launch_kernel, launch_cooperative, enter, *graphs = [_address(getattr(library, name, None)) for name in _CALLED]
    functions = Driver(launch_kernel, launch_cooperative, enter, tuple(graphs), driver.ctxGetCurrent())
    launcher = compiled_launcher.make(functions, _failure)
    if launcher is not None and all(graphs):  # which an older driver has not
        launcher.watch(function.Module)
    return launcher


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _failure(status: int, is_late: bool, is_librarys: bool) -> Exception:
    kinds = (cublas.CUBLASError, LostProduct) if is_librarys else (driver.CUDADriverError, LostLaunch)
    error: Exception = kinds[is_late](status)
    return error


@cache
def functions_of_products() -> tuple[int, int] | None:
    """Return where ``cublasGemmEx`` and ``cublasSetStream_v2`` are that CuPy calls; None if that cannot be said."""
    found = re.search(r"/[^\n]*/libcublas\.so[^\n]*", Path("/proc/self/maps").read_text())
    if found is None:
        return None
    try:
        library = ctypes.CDLL(found[0])
        return _address(library.cublasGemmEx), _address(library.cublasSetStream_v2)
    except (OSError, AttributeError):
        return None
