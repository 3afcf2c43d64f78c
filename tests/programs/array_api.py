"""Libraries that dispatch on the array they are given: array-api-compat, SciPy, scikit-learn."""

from __future__ import annotations

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import array_api_compat
import cupy as cp
import numpy as np
import scipy.fft
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score

a = cp.arange(1.0, 5.0)

# --- array-api-compat ------------------------------------------------------------------------------------------------

xp = array_api_compat.array_namespace(a)
assert xp.__name__ == "array_api_compat.cupy"
assert array_api_compat.is_cupy_array(a)
assert float(xp.sum(a)) == 10
assert xp.astype(a, xp.float32).dtype == cp.float32
assert isinstance(array_api_compat.to_device(a, "cpu"), np.ndarray)
assert array_api_compat.device(a) == cp.cuda.Device(0)
assert array_api_compat.size(a) == 4
assert xp.unique_all(a).values.shape == (4,)
assert xp.linalg.svd(xp.eye(3)).S.shape == (3,)
assert xp.__array_namespace_info__().default_dtypes()["real floating"] == cp.float64

# --- SciPy -----------------------------------------------------------------------------------------------------------

for made in (
    scipy.special.erf(a),
    scipy.special.logsumexp(a),
    scipy.fft.fft(a),
    scipy.ndimage.gaussian_filter(a, 1.0),
    scipy.signal.fftconvolve(a, a),
    scipy.stats.zscore(a),
):
    assert isinstance(made, cp.ndarray), type(made)

# --- scikit-learn ----------------------------------------------------------------------------------------------------

X = cp.random.RandomState(0).rand(50, 5)
with sklearn.config_context(array_api_dispatch=True):
    transformed = PCA(n_components=2, svd_solver="full").fit(X).transform(X)
    assert isinstance(transformed, cp.ndarray)
    assert transformed.shape == (50, 2)
    predicted = Ridge(solver="svd").fit(X, X[:, 0]).predict(X)
    assert isinstance(predicted, cp.ndarray)
    assert abs(accuracy_score(cp.array([1, 0, 1]), cp.array([1, 1, 1])) - 2 / 3) < 1e-9
