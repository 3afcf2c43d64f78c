"""The table of public names, filled by the area modules and read by `CpuDevice.resolve`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from gpu_backend.devices.cpu.call import guarded

F = TypeVar("F", bound=Callable[..., Any])

_TABLE: dict[str, Any] = {}

#: Which area modules define the names under a prefix. The longest prefix that fits is loaded, then shorter ones.
_AREAS: dict[str, tuple[str, ...]] = {
    "cupy": (
        "plain",
        "ufuncs",
        "creation",
        "conversion",
        "index",
        "scatter",
        "selection",
        "reductions",
        "statistics",
        "array_class",
        "grids",
        "manipulation",
        "sets",
        "polynomials",
        "host_answers",
        "products",
        "histograms",
        "functional",
    ),
    "cupy._core": ("computing_settings",),
    "cupy.polynomial": ("power_series",),
    "cupy.cuda": ("cuda_errors", "cuda_device", "cuda_stream", "cuda_memory", "cuda_runtime"),
    "cupy.get_default_memory_pool": ("cuda_memory",),
    "cupy.is_available": ("cuda_memory",),
    "cupy.ndarray.data": ("cuda_memory",),
    "cupy.ElementwiseKernel": ("kernels.surface",),
    "cupy.RawKernel": ("kernels.surface",),
    "cupy.RawModule": ("kernels.surface",),
    "cupy.ReductionKernel": ("kernels.surface",),
    "cupy.cuda.compiler": ("kernels.surface",),
    "cupy.cuda.driver": ("kernels.surface",),
    "cupy.linalg": ("linalg", "products", "manipulation"),
    "cupy.fft": ("fft", "fft_config"),
    "cupy.random": ("random_functions", "random_generator"),
    "cupyx": ("scatter", "error_state"),
    "cupyx.rsqrt": ("scipy_special",),
    "cupyx.signal": ("signal_extras",),
    "cupyx.cusparse": ("cusparse", "cusparse_products"),
    "cupyx.cusolver": ("lapack", "scipy_sparse_solvers"),
    "cupyx.lapack": ("lapack",),
    "cupyx.linalg": ("lapack",),
    "cupyx.linalg.sparse": ("scipy_sparse_linalg",),
    "cupy.cublas": ("lapack",),
    "cupyx.scipy.ndimage": ("scipy_ndimage", "scipy_generic_filter"),
    "cupyx.scipy.special": ("scipy_special",),
    "cupyx.scipy.sparse": ("scipy_sparse", "scipy_sparse_random"),
    "cupyx.scipy.sparse.linalg": ("scipy_sparse_linalg", "scipy_sparse_solvers"),
    "cupyx.scipy.stats": ("scipy_stats",),
    "cupyx.scipy.fft": ("scipy_fft", "scipy_fftpack"),
    "cupyx.scipy.fftpack": ("scipy_fftpack",),
    "cupy.cuda.cufft": ("fft_plans",),
    "cupyx.scipy.linalg": ("scipy_linalg",),
    "cupyx.scipy.spatial": ("scipy_spatial", "scipy_distance", "scipy_kdtree"),
    "cupyx.scipy.interpolate": ("scipy_interpolate",),
    "cupyx.scipy.signal": ("scipy_signal", "scipy_signal_filters", "scipy_signal_splines"),
}
_loaded: set[str] = set()


def define(*names: str) -> Callable[[F], F]:
    """Register the decorated function, guarded, under public names such as "cupy.linalg.svd"."""

    def register(function: F) -> F:
        call = guarded(function)
        for name in names:
            _TABLE[name] = call
        return function

    return register


def define_value(value: object, *names: str) -> None:
    """Register ``value`` as it is: a class, a constant, or a function with host results."""
    for name in names:
        _TABLE[name] = value


def define_plain(prefix: str, source: object, names: Iterable[str]) -> None:
    """Register functions of ``source`` (a NumPy or SciPy module) that need nothing but the guard.

    What is defined for itself has precedence, in whatever order the areas are loaded.
    """
    for name in names:
        _TABLE.setdefault(f"{prefix}.{name}", guarded(getattr(source, name)))


def define_alias(alias: str, name: str) -> None:
    """Register what ``name`` stands for under ``alias`` too."""
    _TABLE[alias] = _TABLE[name]


def lookup(qualname: str) -> Any:
    """Return what is registered under ``qualname``.

    Raises
    ------
    AttributeError
        If nothing is; the message says so.
    """
    if qualname not in _TABLE:
        _load_areas(qualname)
    if qualname in _TABLE:
        return _TABLE[qualname]
    parent, _, attribute = qualname.rpartition(".")
    if isinstance(_TABLE.get(parent), type) and not attribute.startswith("_"):
        return getattr(_TABLE[parent], attribute)
    raise AttributeError(f"the CPU device has no {qualname!r}; a CUDA device may have it")


def names() -> frozenset[str]:
    """Return every name that can be looked up. Loads all areas."""
    for prefix in _AREAS:
        _load(prefix)
    return frozenset(_TABLE)


def _load_areas(qualname: str) -> None:
    parts = qualname.split(".")
    for length in range(len(parts), 0, -1):
        _load(".".join(parts[:length]))
        if qualname in _TABLE:
            return


def _load(prefix: str) -> None:
    if prefix in _loaded:
        return
    for module in _AREAS.get(prefix, ()):
        importlib.import_module(f"{__package__}.{module}")
    _loaded.add(prefix)
