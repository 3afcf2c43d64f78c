"""C++ types of NumPy dtypes, as CuPy's kernels name them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.opstream.surface.c_types import C_TYPES


def type_name(dtype: np.dtype[Any]) -> str:
    """Return the C++ type of an element of ``dtype``.

    A structured dtype is ``gpu::Structure<size, alignment, gpu::Field<type, offset>...>``, whose fields are reached by
    number (``x.at<0>()``).

    Raises
    ------
    ValueError
        If kernels cannot use such elements.
    """
    if dtype.isnative and (name := C_TYPES.get(dtype.char)):
        return name
    if dtype.name == "bfloat16":
        return "bfloat16"
    if dtype.fields is not None:
        fields = [
            f"gpu::Field<{type_name(field[0])}, {field[1]}>" for field in map(dtype.fields.__getitem__, _names(dtype))
        ]
        return f"gpu::Structure<{', '.join([str(dtype.itemsize), str(dtype.alignment), *fields])}>"
    if dtype.kind == "V" and dtype.subdtype is None and dtype.itemsize:
        return f"gpu::Structure<{dtype.itemsize}, 1>"
    raise ValueError(f"Unsupported dtype {dtype}")


def _names(dtype: np.dtype[Any]) -> tuple[str, ...]:
    return dtype.names or ()
