"""``generic_filter`` and ``generic_filter1d`` with CUDA kernels as their functions, as CuPy takes them."""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np
from scipy.ndimage import _ni_support

from gpu_backend.devices.cpu.arrays import Array, DType, in_c_order
from gpu_backend.devices.cpu.dtypes import cast_into
from gpu_backend.devices.cpu.kernels import ElementwiseKernel, RawKernel, ReductionKernel
from gpu_backend.devices.cpu.kernels.typenames import type_name
from gpu_backend.devices.cpu.table import define

#: SciPy's names of boundary modes to NumPy's.
_PAD_MODES: dict[str, Literal["symmetric", "reflect", "edge", "wrap", "constant"]] = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip

#: Calls the user's function, made a device function, on each row of doubles.
_WINDOWS = """
namespace user {{
{code}
}}
extern "C" __global__ void cupy_generic_windows(const double* rows, long long n, double* results) {{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double values[{width}], result;
    for (int j = 0; j < {width}; ++j) values[j] = rows[i * {width} + j];
    user::{name}(values, {width}, &result);
    results[i] = result;
}}
"""

_LINES = """
namespace user {{
{code}
}}
extern "C" __global__ void cupy_generic_lines(double* lines, long long n, double* results) {{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) user::{name}(lines + i * {longer}, {longer}, results + i * {length}, {length});
}}
"""

#: A reduction kernel's own code, run on each row. Its words are those of CuPy: ``_raw_x``, ``_in_ind``, ``_out_ind``.
_REDUCTION = """
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
namespace user {{
{types}
{preamble}
#define REDUCE(a, b) ({reduce_expr})
#define POST_MAP(a) ({post_map_expr})
struct Window {{
    int place;
    __device__ int size() const {{ return {width}; }}
    __device__ int get() const {{ return place; }}
}};
typedef {reduce_type} _type_reduce;
__device__ void reduce(const {source}* _raw_{x}, {result}* _raw_{y}) {{
    Window _in_ind = {{0}};
    _type_reduce _s = _type_reduce({identity});
    for (int _j = 0; _j < {width}; ++_j) {{
        _in_ind.place = _j;
        const {source}& {x} = _raw_{x}[_j];
        _type_reduce _a = static_cast<_type_reduce>({map_expr});
        _s = REDUCE(_s, _a);
    }}
    {result}& {y} = _raw_{y}[0];
    POST_MAP(_s);
}}
}}
extern "C" __global__ void cupy_generic_reduction(const {source_type}* rows, long long n, {result_type}* results) {{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) user::reduce(rows + i * {width}, results + i);
}}
"""

_BLOCK = 128


@functools.cache
def _driver(template: str, kernel_name: str, kernel: RawKernel, **sizes: int) -> RawKernel:
    code = template.format(code=kernel.code.replace("__global__", "__device__"), name=kernel.name, **sizes)
    return RawKernel(code, kernel_name, kernel.options)


@functools.cache
def _reduction_driver(kernel: ReductionKernel, source: DType, result: DType, width: int) -> RawKernel:
    x, y = kernel.in_params[0], kernel.out_params[0]
    templates = {p.ctype: type_name(d) for p, d in ((y, result), (x, source)) if p.dtype is None}
    code = _REDUCTION.format(
        types="\n".join(f"typedef {ctype} {name};" for name, ctype in templates.items()),
        preamble=kernel.preamble,
        reduce_expr=kernel.reduce_expr,
        post_map_expr=kernel.post_map_expr,
        reduce_type=kernel.reduce_type,
        identity=kernel.identity,
        map_expr=kernel.map_expr,
        source=x.ctype,
        result=y.ctype,
        x=x.name,
        y=y.name,
        source_type=type_name(source),
        result_type=type_name(result),
        width=width,
    )
    return RawKernel(code, "cupy_generic_reduction", kernel.options)


def _padded(a: Array, before_after: list[tuple[int, int]], mode: str, cval: float) -> Array:
    """Return ``a`` in double precision, extended beyond its borders."""
    if mode not in _PAD_MODES:
        raise RuntimeError(f"boundary mode not supported (actual: {mode})")
    options: dict[str, Any] = {"constant_values": float(cval)} if _PAD_MODES[mode] == "constant" else {}
    made: Array = np.pad(a.astype(np.float64), before_after, _PAD_MODES[mode], **options)
    return made


def _output(output: object, a: Array) -> Array:
    if isinstance(output, np.ndarray):
        if output.shape != a.shape:
            raise ValueError("output shape is not correct")
        return output
    return np.empty(a.shape, a.dtype if output is None else output)


def _check_kernel(function: object) -> None:
    if isinstance(function, ElementwiseKernel):
        raise TypeError("only ReductionKernel allowed (not ElementwiseKernel)")
    if isinstance(function, ReductionKernel):
        if function.nin != 1 or function.nout != 1:
            raise TypeError("ReductionKernel must have 1 input and output")
    elif not isinstance(function, RawKernel):
        raise TypeError("bad function type")


def _result_dtype(kernel: ReductionKernel, given: DType, wanted: DType) -> DType:
    source, result = kernel.in_params[0], kernel.out_params[0]
    if result.dtype is not None:
        return np.dtype(result.dtype)
    return given if result.ctype == source.ctype else wanted


@define("cupyx.scipy.ndimage.generic_filter")
def generic_filter(
    input: Array,
    function: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    if input.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    axes = _ni_support._check_axes(axes, input.ndim)
    if size is None and footprint is None:
        raise RuntimeError("no footprint or filter size provided")
    if footprint is None:
        footprint = np.ones(_ni_support._normalize_sequence(size, len(axes)), bool)
    footprint = np.asarray(footprint).astype(bool)
    if footprint.ndim != len(axes):
        raise RuntimeError("footprint array has incorrect shape.")
    _check_kernel(function)
    origins = _ni_support._normalize_sequence(origin, len(axes))
    result = _output(output, input)
    if not footprint.size or not input.size:
        return result
    windows = _windows(input, footprint, axes, origins, mode, cval)
    _apply(function, windows, input.dtype, result)
    return result


def _windows(a: Array, footprint: Array, axes: Any, origins: Any, mode: str, cval: float) -> Array:
    """Return, for each element of ``a``, a row of those that ``footprint`` selects around it, in double precision."""
    reach = [(0, 0)] * a.ndim
    for axis, extent, origin in zip(axes, footprint.shape, origins, strict=True):
        before = extent // 2 + origin
        if not 0 <= before < extent:
            raise ValueError("invalid origin")
        reach[axis] = (before, extent - 1 - before)
    padded = _padded(a, reach, mode, cval)
    views = np.lib.stride_tricks.sliding_window_view(padded, footprint.shape, axes)
    return in_c_order(views[..., footprint]).reshape(a.size, -1)


def _apply(kernel: Any, windows: Array, dtype: DType, result: Array) -> None:
    count, width = windows.shape
    grid = ((count + _BLOCK - 1) // _BLOCK,)
    if isinstance(kernel, RawKernel):
        values = np.empty(count, np.float64)
        driver = _driver(_WINDOWS, "cupy_generic_windows", kernel, width=width)
        driver(grid, (_BLOCK,), (windows, count, values))
    else:
        values = np.empty(count, _result_dtype(kernel, dtype, result.dtype))
        typed = np.empty(windows.shape, dtype)
        cast_into(typed, windows)
        driver = _reduction_driver(kernel, dtype, values.dtype, width)
        driver(grid, (_BLOCK,), (typed, count, values))
    cast_into(result, values.reshape(result.shape))


@define("cupyx.scipy.ndimage.generic_filter1d")
def generic_filter1d(
    input: Array,
    function: object,
    filter_size: int,
    axis: int = -1,
    output: object = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Array:
    if input.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    if not isinstance(function, RawKernel):
        raise TypeError("bad function type")
    if filter_size < 1:
        raise RuntimeError("invalid filter size")
    axis = np.lib.array_utils.normalize_axis_index(axis, input.ndim)
    before = filter_size // 2 + origin
    if not 0 <= before < filter_size:
        raise ValueError("invalid origin")
    result = _output(output, input)
    lines = np.moveaxis(input, axis, -1)
    length = lines.shape[-1]
    padded = in_c_order(_padded(lines, [(0, 0)] * (input.ndim - 1) + [(before, filter_size - 1 - before)], mode, cval))
    count, longer = input.size // length, length + filter_size - 1
    values = np.empty(lines.shape, np.float64)
    driver = _driver(_LINES, "cupy_generic_lines", function, length=length, longer=longer)
    driver(((count + _BLOCK - 1) // _BLOCK,), (_BLOCK,), (padded, count, values))
    cast_into(result, np.moveaxis(values, -1, axis))
    return result
