"""Names that published libraries take from CuPy's private modules, such as ``cupy._core.ElementwiseKernel``.

CuPy promises nothing about them, but image processing and learning libraries have named them for years, mostly when
they are imported. They are not on the surface. Each is either the object of a public name
or a small function on shapes and types that needs no device.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_backend.opstream.surface.c_types import C_TYPES
from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import ArrayLike, AxisLike, DTypeLike, ShapeLike
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.namespace import testing_names
from kernelproxy.namespace.kernels import RawModule

_CORE = (
    *("ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel", "ndarray", "ufunc"),
    *("absolute", "add", "angle", "bitwise_and", "bitwise_or", "bitwise_xor", "conjugate", "divide", "equal"),
    *("floor_divide", "greater", "greater_equal", "invert", "left_shift", "less", "less_equal", "multiply", "negative"),
    *("not_equal", "positive", "power", "remainder", "right_shift", "sqrt", "subtract", "true_divide"),
    *("array", "array_split", "ascontiguousarray", "asfortranarray", "broadcast_to", "dot", "matmul"),
    *("moveaxis", "nanmax", "nanmin", "rollaxis"),
)
_HEADERS = ("complex.cuh", "carray.cuh", "atomics.cuh", "math_constants.h")
_HERE = "kernelproxy.namespace.private_names"

#: Private modules of which something is here.
MODULES = frozenset(
    {
        *("cupy._core", "cupy._core.core", "cupy._core.internal", "cupy._core._accelerator", "cupy._core._kernel"),
        *("cupy._core._routines_indexing", "cupy._core._routines_linalg", "cupy._core._scalar", "cupy._core.flags"),
        *(f"cupyx.distributed.array._{name}" for name in ("chunk", "index_arith", "modes")),
        *("cupy._util", "cupy.linalg._util", "cupyx._runtime", "cupyx.profiler._time"),
        *(f"cupyx.scipy.sparse._{name}" for name in ("base", "coo", "csc", "csr", "dia")),
        *testing_names.PRIVATE_MODULES,
    }
)

#: Private name to the public one of the same object.
SAME_AS: dict[str, str] = {
    **{f"cupy._core.{name}": f"cupy.{name}" for name in _CORE},
    **{
        f"cupy._core.core.{name}": f"cupy.{name}"
        for name in ("array", "ascontiguousarray", "asfortranarray", "ndarray", "ufunc")
    },
    **{f"cupy._core._kernel.{name}": f"cupy.{name}" for name in ("ElementwiseKernel", "ufunc")},
    **{
        f"cupyx.distributed.array._modes.{name}": f"cupyx.distributed.array.{name}"
        for name in ("MAX", "MIN", "PROD", "REPLICA", "SUM")
    },
    **{
        f"cupyx.scipy.sparse._{form}.{name}": f"cupyx.scipy.sparse.{name}"
        for form in ("coo", "csc", "csr", "dia")
        for name in (f"{form}_array", f"{form}_matrix", f"isspmatrix_{form}")
    },
    **{
        f"cupyx.scipy.sparse._base.{name}": f"cupyx.scipy.sparse.{name}"
        for name in ("issparse", "isspmatrix", "sparray", "spmatrix")
    },
    "cupy._core._routines_indexing._ndarray_argwhere": "cupy.argwhere",
    "cupy._util.clear_memo": "cupy.clear_memo",
    "cupy._util.memoize": "cupy.memoize",
    "cupyx._runtime.get_runtime_info": "cupyx.get_runtime_info",
    "cupy.cuda.runtime._getLocalRuntimeVersion": "cupy.cuda.runtime.runtimeGetVersion",
}

#: Private name to the public function that returns its object. It is asked each time: another session has another one.
RETURNED_BY: dict[str, str] = {
    f"cupy._default_{which}memory_pool": f"cupy.get_default_{which}memory_pool" for which in ("", "pinned_")
}

_SETTINGS = "kernelproxy.namespace.computing_settings"
_DISTRIBUTED = "kernelproxy.namespace.distributed"

#: Private name to "module:attribute", for those that are made here.
MADE: dict[str, str] = {
    **{
        f"cupy._core.{module}{verb}_{which}_accelerators": f"{_SETTINGS}:{verb}_{which}_accelerators"
        for module in ("", "_accelerator.")
        for verb in ("get", "set")
        for which in ("elementwise", "reduction", "routine")
    },
    **{
        f"cupy._core._accelerator.ACCELERATOR_{name}": f"{_SETTINGS}:ACCELERATOR_{name}"
        for name in ("CUB", "CUTENSOR", "CUTENSORNET")
    },
    **{
        f"cupy._core.{module}{verb}_compute_type": f"{_SETTINGS}:{verb}_compute_type"
        for module in ("", "_routines_linalg.")
        for verb in ("get", "set")
    },
    **{
        f"cupy._core._routines_linalg.COMPUTE_TYPE_{name}": f"{_SETTINGS}:COMPUTE_TYPE_{name}"
        for name in ("TBD", "DEFAULT", "PEDANTIC", "FP16", "FP32", "FP64", "BF16", "TF32")
    },
    "cupy._core.core.compile_with_cache": f"{_HERE}:compile_with_cache",
    "cupy._core.flags.Flags": "kernelproxy.array.views:Flags",
    "cupy._core.elementwise_copy": f"{_HERE}:elementwise_copy",
    "cupy._core.get_size": f"{_HERE}:get_size",
    "cupy._core._scalar.get_typename": f"{_HERE}:get_typename",
    "cupy._util.PerformanceWarning": f"{_HERE}:PerformanceWarning",
    **{f"cupy.linalg._util.{name}": f"{_HERE}:{name}" for name in ("_tril", "_triu")},
    **{f"cupyx.distributed.array.{module}Mode": f"{_DISTRIBUTED}.modes:Mode" for module in ("", "_modes.")},
    "cupyx.distributed.array._chunk._Chunk": f"{_DISTRIBUTED}.chunks:Chunk",
    **{
        f"cupyx.distributed.array._index_arith.{name}": f"{_DISTRIBUTED}.indices:{ours}"
        for name, ours in (
            *(("_extgcd", "greatest_divisor"), ("_slice_intersection", "common"), ("_index_for_subslice", "within")),
            *(("_normalize_index", "normal"), ("_normalize_index_map", "normal_map")),
        )
    },
    "cupyx.profiler._time._PerfCaseResult": "kernelproxy.namespace.profiler:PerfCaseResult",
    **{
        f"cupy._core.internal.{name}": f"{_HERE}:{name}"
        for name in ("_normalize_axis_index", "_normalize_axis_indices", "get_size", "prod", "prod_sequence")
    },
    **testing_names.PRIVATE_NAMES,
}


class PerformanceWarning(RuntimeWarning):
    """Warning of something that works and is slow."""

    __module__ = "cupy._util"


def elementwise_copy(source: ArrayLike, out: ArrayCore) -> Any:
    """Copy ``source`` into ``out``, broadcasting and casting; return ``out``."""
    dispatch.call("cupy.copyto", (out, source), {"casting": "unsafe"})
    return out


def compile_with_cache(
    source: str, options: Sequence[str] = (), arch: str | None = None, cachd_dir: str | None = None,
    prepend_cupy_headers: bool = True, backend: str = "nvrtc", **others: object,
) -> Any:  # fmt: skip
    """Return the module of the kernels in ``source``, which is compiled when one of them is asked for."""
    headers = "".join(f"#include <cupy/{name}>\n" for name in _HEADERS) if prepend_cupy_headers else ""
    return RawModule(code=headers + source, options=tuple(options), backend=backend)


def get_typename(dtype: DTypeLike) -> str:
    """Return what C calls the elements of ``dtype``.

    Raises
    ------
    TypeError
        If ``dtype`` is None.
    ValueError
        If C has no name for it.
    """
    if dtype is None:
        raise TypeError("dtype is None")
    found = np.dtype(dtype)
    if found.char not in C_TYPES:
        raise ValueError(f"Unsupported dtype {found}")
    return C_TYPES[found.char]


def _tril(x: ArrayCore, k: int = 0) -> Any:
    """Set what is above the ``k``-th diagonal of the matrix ``x`` to zero; return ``x``."""
    return elementwise_copy(dispatch.call("cupy.tril", (x, k), {}), x)


def _triu(x: ArrayCore, k: int = 0) -> Any:
    """Set what is below the ``k``-th diagonals of the matrices ``x`` to zero; return ``x``."""
    return elementwise_copy(dispatch.call("cupy.triu", (x, k), {}), x)


def get_size(size: ShapeLike | None) -> tuple[int, ...]:
    """Return ``size``, a number or a shape, as a shape.

    Raises
    ------
    TypeError
        If it is None.
    """
    if size is None:
        raise TypeError("Use () not None as shape arguments")
    return tuple(map(operator.index, size)) if isinstance(size, Sequence) else (operator.index(size),)


def prod(args: Sequence[int]) -> int:
    """Return the product of the numbers."""
    return math.prod(args)


prod_sequence = prod


def _normalize_axis_index(axis: int, ndim: int) -> int:
    place = operator.index(axis)
    if not -ndim <= place < ndim:
        raise np.exceptions.AxisError(place, ndim)
    return place % ndim


def _normalize_axis_indices(axes: AxisLike, ndim: int, sort_axes: bool = True) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(ndim))
    given = axes if isinstance(axes, tuple) else (axes,)
    places = tuple(_normalize_axis_index(axis, ndim) for axis in given)
    if len(set(places)) != len(places):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(places)) if sort_axes else places
