"""Arrays of bfloat16: carried everywhere, computed where the device has them."""

from __future__ import annotations

import cupy as cp
import ml_dtypes
import numpy as np

host = np.arange(4).astype(ml_dtypes.bfloat16)
b = cp.asarray(host)
assert b.dtype == ml_dtypes.bfloat16
assert b.get().dtype == ml_dtypes.bfloat16
assert (b.get() == host).all()
assert cp.ones(4, dtype=ml_dtypes.bfloat16).nbytes == 8
assert float(b.astype(cp.float32).sum()) == 6
assert cp.arange(4.0).astype(ml_dtypes.bfloat16)[1:].get().tolist() == [1, 2, 3]
if b"NVIDIA" in cp.cuda.runtime.getDeviceProperties(0)["name"]:  # a GPU
    assert (b + b).dtype == ml_dtypes.bfloat16
    assert float((b + b).astype(cp.float32).sum()) == 12
