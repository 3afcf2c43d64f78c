"""``cupyx.scipy.ndimage`` on SciPy's; generic filters are in a module of their own."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.scipy_functions import define_scipy, with_parameters_of
from gpu_backend.devices.cpu.scipy_ndimage_edges import has_edge, with_checked_edge
from gpu_backend.devices.cpu.scipy_ndimage_halves import with_halves
from gpu_backend.devices.cpu.scipy_ndimage_modes import WINDOWED, with_modes_per_axis
from gpu_backend.devices.cpu.table import define, lookup
from gpu_backend.opstream.surface import Function, load

_PREFIX = "cupyx.scipy.ndimage"
_WARP = 32

#: Functions that take a shape, or one extent, for a structuring element of ones.
_STRUCTURED = (
    "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes", "binary_opening", "binary_propagation",
)  # fmt: skip

#: Functions that measure labelled regions and want their numbers in an array.
_MEASURING = (
    "extrema", "histogram", "labeled_comprehension", "maximum", "maximum_position", "mean", "median",
    "minimum", "minimum_position", "standard_deviation", "sum", "sum_labels", "variance",
)  # fmt: skip


#: Functions that take half floats, or refuse them as CuPy's do.
_OF_ANY_DTYPE = (
    "center_of_mass", "distance_transform_edt", "find_objects", "generate_binary_structure", "generic_filter",
    "generic_filter1d", "generic_gradient_magnitude", "generic_laplace", "iterate_structure", "value_indices",
)  # fmt: skip

#: Filters along one axis, of which SciPy takes one mode only.
_ALONG_ONE_AXIS = (
    "convolve1d",
    "correlate1d",
    "gaussian_filter1d",
    "maximum_filter1d",
    "minimum_filter1d",
    "uniform_filter1d",
)


def _adapted(name: str) -> Callable[..., Any]:
    entry = load().resolved(f"{_PREFIX}.{name}")
    assert isinstance(entry, Function)
    return with_parameters_of(entry, getattr(scipy.ndimage, name))


def _with_structure(function: Callable[..., object]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(input: Array, structure: object = None, *args: object, **kwargs: object) -> Any:
        if isinstance(structure, (int, np.integer)):
            structure = (int(structure),) * input.ndim
        if isinstance(structure, tuple):
            structure = np.ones(structure, bool)
        return function(input, structure, *args, **kwargs)

    return call


def _with_index_array(function: Callable[..., object]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        places = (*args[1:], kwargs.get("labels"), kwargs.get("index"))
        if any(isinstance(value, list) for value in places):
            raise TypeError("`labels` and `index` must be arrays or ints")
        if args and not isinstance(args[0], np.ndarray):
            raise TypeError("input must be cupy.ndarray")
        result = function(*args, **kwargs)
        # A histogram of each label: as in CuPy a list, where SciPy gives an array of objects.
        return list(result) if isinstance(result, np.ndarray) and result.dtype.hasobject else result

    return call


@define(f"{_PREFIX}.distance_transform_edt")
def distance_transform_edt(
    image: Array,
    sampling: object = None,
    return_distances: bool = True,
    return_indices: bool = False,
    distances: Array | None = None,
    indices: Array | None = None,
    *,
    block_params: object = None,
    float64_distances: bool = True,
) -> Any:
    _check_block_params(block_params, image)
    if indices is not None:
        least = 4 if image.ndim == 3 else 2
        if indices.dtype.kind not in "iu" or indices.dtype.itemsize < least or indices.shape[1:] != image.shape:
            raise RuntimeError("indices array has wrong dtype or shape")
    wanted = np.dtype(np.float64 if float64_distances else np.float32)
    if distances is not None and distances.dtype != wanted:
        raise RuntimeError(f"distances array must have dtype: {wanted}")
    if distances is not None and distances.shape != image.shape:
        raise RuntimeError("distances array has wrong shape")
    far, near = scipy.ndimage.distance_transform_edt(image, sampling, True, True)
    answers = []
    for asked, given, found in (
        (return_distances, distances, far.astype(wanted)), (return_indices, indices, near.astype(np.int32)),
    ):  # fmt: skip
        if asked and given is None:
            answers.append(found)
        elif asked and given is not None:
            given[...] = found
    return tuple(answers) if len(answers) > 1 else answers[0] if answers else None


def _check_block_params(block_params: Any, image: Array) -> None:
    """Refuse what no GPU launch could take: blocks beyond the padded image, or not of a power of two."""
    if block_params is None:
        return
    if any(m < 1 for m in block_params):
        raise ValueError("(m1, m2, m3) in block_params must be >= 1")
    if block_params[1] & (block_params[1] - 1):
        raise ValueError("m2 must be a power of 2")
    multiple = math.lcm(_WARP, *block_params)
    padded = math.ceil(max(image.shape) / multiple) * multiple
    if any(m > padded // _WARP for m in block_params):
        raise ValueError(f"block_params too large: each must be <= padded size // {_WARP}")


def _with_one_mode(function: Callable[..., object]) -> Callable[..., Any]:
    """Let ``mode`` be one for each axis, as CuPy does, in a filter along one axis."""

    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        bound = signature.bind(*args, **kwargs)
        mode = bound.arguments.get("mode", "reflect")
        if not isinstance(mode, str):
            bound.arguments["mode"] = list(mode)[bound.arguments.get("axis", -1)]
        return function(*bound.args, **bound.kwargs)

    return call


@define(f"{_PREFIX}.affine_transform")
def affine_transform(input: Array, matrix: Array, *args: object, **kwargs: object) -> Any:
    if matrix.ndim == 2 and matrix.shape == (input.ndim + 1, input.ndim + 1):
        matrix = matrix[:-1]  # CuPy does not look at the last row
    return _adapted("affine_transform")(input, matrix, *args, **kwargs)


@define(f"{_PREFIX}.map_coordinates")
def map_coordinates(input: Array, coordinates: Array, *args: object, **kwargs: object) -> Any:
    function = _adapted("map_coordinates")
    if coordinates.ndim > 1 or args or kwargs.get("output") is not None:
        return function(input, coordinates, *args, **kwargs)
    return function(input, coordinates[:, None], **kwargs)[0, ...]  # SciPy knows no 0-d result


@define(f"{_PREFIX}.value_indices")
def value_indices(arr: Array, *, ignore_value: object = None, adaptive_index_dtype: bool = False) -> dict[int, Any]:
    if arr.dtype.kind not in "iu":
        raise ValueError("Parameter 'arr' must be an integer array")
    plain = arr.astype(f"{arr.dtype.kind}{arr.dtype.itemsize}")  # SciPy overlooks long long
    found = scipy.ndimage.value_indices(plain, ignore_value=ignore_value)
    dtype = np.min_scalar_type(max(arr.shape, default=0)) if adaptive_index_dtype else np.dtype(np.intp)
    return {int(value): tuple(part.astype(dtype) for part in places) for value, places in found.items()}


define_scipy(
    _PREFIX,
    scipy.ndimage,
    without=(
        *_STRUCTURED, *_MEASURING, *_ALONG_ONE_AXIS, *WINDOWED,
        "affine_transform", "center_of_mass", "distance_transform_edt", "generic_filter", "generic_filter1d",
        "map_coordinates", "value_indices",
    ),
)  # fmt: skip
for _name in _STRUCTURED:
    define(f"{_PREFIX}.{_name}")(_with_structure(_adapted(_name)))
for _name in _MEASURING:
    define(f"{_PREFIX}.{_name}")(_with_index_array(_adapted(_name)))


@define(f"{_PREFIX}.center_of_mass")
def center_of_mass(input: Array, labels: object = None, index: object = None) -> Any:
    found = _with_index_array(scipy.ndimage.center_of_mass)(input, labels, index)
    return [np.array(place) for place in found] if isinstance(found, list) else found


for _name in _ALONG_ONE_AXIS:
    define(f"{_PREFIX}.{_name}")(_with_one_mode(_adapted(_name)))
for _name in WINDOWED:
    _entry = load().resolved(f"{_PREFIX}.{_name}")
    assert isinstance(_entry, Function)
    define(f"{_PREFIX}.{_name}")(with_modes_per_axis(_entry, _adapted(_name)))
for _name in load().below(_PREFIX):
    _entry = load().resolved(f"{_PREFIX}.{_name}")
    if isinstance(_entry, Function) and _name not in (*_MEASURING, *_OF_ANY_DTYPE):
        define(f"{_PREFIX}.{_name}")(with_halves(_name, _entry, lookup(f"{_PREFIX}.{_name}")))
    if has_edge(_name, _entry):
        assert isinstance(_entry, Function)
        define(f"{_PREFIX}.{_name}")(with_checked_edge(_name, _entry, lookup(f"{_PREFIX}.{_name}")))
