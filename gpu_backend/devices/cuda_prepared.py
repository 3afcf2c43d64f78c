"""Kernels that a pool compiles before anybody asks: ``python -m gpu_backend.devices.cuda_prepared FOLDER``.

All of them are compiled from CuPy's sources and ours, never from a notebook's, so executors of different users may load
them: out of a folder that none of them can write. The process that does it serves nobody.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import sys
from pathlib import Path

import cupy
import numpy as np
from cupy.cuda import compiler
from cupy.cuda._compiler_cache import DiskKernelCacheBackend, KernelCacheBackend

from gpu_backend.devices import segment_source, usual_ops
from gpu_backend.devices.cuda_bins import compile_bins
from gpu_backend.devices.cuda_matrix_pointers import matrix_pointers
from gpu_backend.devices.cuda_reading import reading_kernel
from gpu_backend.devices.cuda_segments import CudaSegments
from gpu_backend.devices.cuda_selections import compile_selections
from gpu_backend.engine import logs
from gpu_backend.opstream.layout import DType

log = logging.getLogger("devices.prepared")


class PreparedKernels(KernelCacheBackend):  # type: ignore[misc]
    """CuPy's cache of compiled kernels, which looks into the pool's folder first, and writes to the executor's own."""

    def __init__(self, folder: Path, own: KernelCacheBackend) -> None:
        self._shared, self._own = DiskKernelCacheBackend(str(folder)), own

    def load(self, name: str) -> bytes | None:
        """Return what is kept under ``name``; None if nothing is."""
        try:
            found = self._shared.load(name)
        except OSError:
            found = None
        return self._own.load(name) if found is None else found  # type: ignore[no-any-return]

    def save(self, name: str, cubin: bytes, source: str) -> None:
        """Keep a kernel for this executor's user."""
        self._own.save(name, cubin, source)


def read_prepared(folder: Path | None) -> None:
    """Have CuPy find what lies in ``folder`` from now on, if there is one."""
    if folder is not None:
        compiler._set_kernel_cache_backend(PreparedKernels(folder, compiler._kernel_cache_backend))


def note_of(folder: Path | None, device: cupy.cuda.Device) -> Path | None:
    """Return the file in ``folder`` that says that the program of usual ops lies there, compiled for ``device``."""
    if folder is None:
        return None
    parts = (cupy.__version__, str(compiler._get_nvrtc_version()), str(device.compute_capability))
    sources = (inspect.getsource(segment_source), inspect.getsource(usual_ops))
    return folder / f"{hashlib.sha1('|'.join(parts + sources).encode()).hexdigest()}.ready"


def prepare(folder: Path) -> None:
    """Compile what is not in ``folder`` yet: the program of usual ops first, then the kernels of what is not in it."""
    device = cupy.cuda.Device()
    compiler._set_kernel_cache_backend(DiskKernelCacheBackend(str(folder)))
    note = note_of(folder, device)
    if note is not None and not note.exists():
        CudaSegments(device).compile_usual()
        note.touch(mode=0o600)
    compile_selections()
    compile_bins()
    matrix_pointers()
    reading_kernel()
    for dtype in (np.float64, np.float32, np.int64, np.int32, np.bool_):
        _use(np.dtype(dtype))
    device.synchronize()


def _use(dtype: DType) -> None:
    """Have CuPy compile kernels of its own that most programs use, by using them on arrays of one type."""
    flat, table, mask = cupy.zeros(4, dtype), cupy.zeros((3, 4), dtype), cupy.zeros((3, 4), np.bool_)
    for array in (flat, flat[::2], table.T, table[:, 1:]):
        array.copy()
        cupy.ones_like(array)
        array.astype(np.float64)
    cupy.concatenate([flat, flat])
    flat.take(cupy.arange(2))
    table[mask]
    names = ("sum", "any", "all", "max", "min", "argmax", "argmin", "mean", "prod", "cumsum")
    for name in names if dtype.kind != "b" else names[:3]:
        for axis in (None, 0, 1):
            getattr(table, name)(axis=axis)


def main() -> None:
    """Prepare the kernels of the first GPU that this process sees, behind everybody else."""
    logs.set_up()
    os.nice(19)
    prepare(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
