"""Functions that NumPy has under the same name and with the same meaning; the guard is all they need."""

from __future__ import annotations

import numpy as np

from gpu_backend.devices.cpu.table import define_plain

define_plain(
    "cupy",
    np,
    (
        "all", "allclose", "amax", "amin", "angle", "any", "append", "apply_along_axis", "apply_over_axes", "arange",
        "argmax", "argmin", "argpartition", "argsort", "argwhere", "around", "array", "array_equal", "array_equiv",
        "array_split", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "astype",
        "average", "bartlett", "bincount", "blackman", "broadcast_arrays",
        "broadcast_to", "choose", "clip", "column_stack", "compress", "concat", "concatenate", "copy",
        "copyto", "correlate", "count_nonzero", "cov", "cross", "cumprod", "cumsum",
        "delete", "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "diff",
        "digitize", "dot", "dsplit", "dstack", "ediff1d", "einsum", "empty", "empty_like", "expand_dims", "extract",
        "eye", "fill_diagonal", "flatnonzero", "flip", "fliplr", "flipud", "frombuffer", "fromfunction", "fromiter",
        "fromstring", "full", "full_like", "gradient", "hamming", "hanning", "histogram", "histogram2d", "histogramdd",
        "hsplit", "hstack", "identity", "imag", "indices", "inner", "interp", "intersect1d", "isclose", "iscomplex",
        "isin", "isneginf", "isposinf", "isreal", "ix_", "kaiser", "kron", "lexsort", "linspace", "logspace",
        "mask_indices", "matmul", "matrix_transpose", "max", "mean", "median", "meshgrid", "min", "moveaxis",
        "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
        "nanprod", "nanstd", "nansum", "nanvar", "nonzero", "ones", "ones_like", "outer", "packbits", "pad",
        "partition", "percentile", "permute_dims", "piecewise", "place", "poly", "polyadd", "polyfit", "polymul",
        "polysub", "polyval", "prod", "ptp", "put", "put_along_axis", "putmask", "quantile", "ravel",
        "ravel_multi_index", "real", "real_if_close", "repeat", "require", "reshape", "resize", "roll", "rollaxis",
        "roots", "rot90", "round", "searchsorted", "select", "setdiff1d", "setxor1d", "sort", "sort_complex", "split",
        "squeeze", "stack", "std", "sum", "swapaxes", "take", "take_along_axis", "tensordot", "tile", "trace",
        "transpose", "trapezoid", "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros", "triu",
        "triu_indices", "triu_indices_from", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse",
        "unique_values", "unpackbits", "unravel_index", "unwrap", "vander", "var", "vdot", "vsplit", "vstack", "where",
        "zeros", "zeros_like",
    ),
)  # fmt: skip

_METHODS = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "choose", "clip", "compress", "conj",
    "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "fill", "flatten", "item", "max", "mean", "min",
    "nonzero", "partition", "prod", "put", "ravel", "repeat", "reshape", "round", "searchsorted", "sort", "squeeze",
    "std", "sum", "swapaxes", "take", "tobytes", "tolist", "trace", "transpose", "var", "view", "__getitem__",
    "__setitem__",
)  # fmt: skip

define_plain("cupy.ndarray", np.ndarray, _METHODS)
