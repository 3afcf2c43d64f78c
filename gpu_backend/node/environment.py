"""What an executor has in its environment: what it needs by name, and nothing else of whoever started the pool."""

from __future__ import annotations

import site
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu_backend.node.inventory import Found
from gpu_backend.sources import VARIABLE

__all__ = ["executor_environment"]

#: Handed on if they are set: how text and time are written, what Python imports, how many processors are used, and
#: which compiler and libraries.
_KEPT = (
    "CUDA_HOME", "CUDA_MODULE_LOADING", "CUDA_PATH", "CXX", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "PYTHONHOME", "PYTHONMALLOC",
    "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONSAFEPATH", "PYTHONUTF8", "PYTHONWARNINGS", "TZ", "VECLIB_MAXIMUM_THREADS",
    VARIABLE,
)  # fmt: skip
_KEPT_PREFIXES = ("LC_", "NVIDIA_")
#: CuPy's own settings that say how it computes, and neither where it finds things nor what it starts.
_KEPT_OF_CUPY = (
    "CUPY_ACCELERATORS", "CUPY_CACHE_IN_MEMORY", "CUPY_CACHE_SAVE_CUDA_SOURCE", "CUPY_COMPILE_WITH_PTX",
    "CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION", "CUPY_CUDA_ARRAY_INTERFACE_SYNC", "CUPY_CUDA_COMPILE_WITH_DEBUG",
    "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "CUPY_DLPACK_EXPORT_VERSION", "CUPY_DUMP_CUDA_SOURCE_ON_ERROR",
    "CUPY_GPU_MEMORY_LIMIT", "CUPY_SEED", "CUPY_TF32",
)  # fmt: skip
_SEARCHED = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def executor_environment(own: Path, devices: Sequence[Found], ours: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the executor whose own directory is ``own``, and make the folders that it names.

    Parameters
    ----------
    own
        Where all goes that it writes.
    devices
        The only devices that it sees, of one kind; there they have the numbers from 0 on.
    ours
        This process's environment.
    """
    kept = (*_KEPT, *_KEPT_OF_CUPY)
    environment = {name: value for name, value in ours.items() if name in kept or name.startswith(_KEPT_PREFIXES)}
    environment["PATH"] = ":".join((str(Path(sys.executable).parent), *_SEARCHED))
    if site.ENABLE_USER_SITE:  # what is installed for one user is found by their home, which is not the executor's
        environment["PYTHONUSERBASE"] = site.getuserbase()
    cache = own / "cache"
    folders = {
        "HOME": own / "home", "TMPDIR": own / "tmp", "XDG_CACHE_HOME": cache, "CUPY_CACHE_DIR": cache / "cupy",
        "GPU_WORKBENCH_KERNEL_CACHE": cache / "cpu", "CUDA_CACHE_PATH": cache / "driver",
    }  # fmt: skip
    for name, folder in folders.items():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        environment[name] = str(folder)
    if devices[0].kind == "cuda":
        several = ",".join(device.visible or str(device.ordinal) for device in devices)
        environment["CUDA_VISIBLE_DEVICES"] = several if len(devices) > 1 else devices[0].visible
    return environment
