"""Fourier transforms with plans and settings: refused plans, threads, memory order, arrays that are overwritten."""

from __future__ import annotations

import threading
import warnings

import cupy as cp
import cupy.fft.config as module
import cupyx.scipy.fft
import numpy as np
import scipy.fft
from cupy.cuda import cufft
from cupy.fft.config import get_plan_cache
from cupyx.scipy import fftpack
from cupyx.scipy.fft import fft, fftn, get_fft_plan


def refused(kind, words, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"{words!r} was not raised")


def in_another_thread(call):
    results = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


config = cp.fft.config
assert module is config
a = (cp.random.random((4, 6, 8)) + 1j * cp.random.random((4, 6, 8))).astype("F")
wanted = cp.asarray(np.fft.fftn(a.get()).astype("F"))

# --- plans -----------------------------------------------------------------------------------------------------------

plan = get_fft_plan(a)
assert isinstance(plan, cufft.PlanNd)
assert (plan.shape, plan.fft_type, plan.order) == ((4, 6, 8), cufft.CUFFT_C2C, "C")
assert cp.allclose(fftn(a, plan=plan), wanted, atol=1e-3)
with plan:
    assert cufft.get_current_plan() is plan
    assert in_another_thread(cufft.get_current_plan) is None
    assert cp.allclose(cp.fft.fftn(a), wanted, atol=1e-3)
    assert in_another_thread(lambda: cp.fft.fft(cp.ones(3))).shape == (3,)
    refused(ValueError, "The cuFFT plan and a.shape do not match", cp.fft.fftn, a[:2].copy())
    refused(ValueError, "array orders mismatch", cp.fft.fftn, cp.asfortranarray(a))
    refused(RuntimeError, "either as a context manager or as an argument", fftpack.fftn, a, plan=plan)
assert cufft.get_current_plan() is None
assert cp.fft.fftn(a[:2].copy()).shape == (2, 6, 8)

single = cufft.Plan1d(8, cufft.CUFFT_C2C, 24)
out = single.get_output_array(a)
single.fft(a, out, cufft.CUFFT_FORWARD)
assert cp.allclose(out, fft(a, plan=single), atol=1e-3)
refused(ValueError, "Batch size does not match the plan.", fft, a[:1].copy(), plan=single)
refused(ValueError, "Target array size", fft, a, 4, plan=single)
refused(ValueError, "expected plan to have type cufft.Plan1d", fft, a, plan=plan)
refused(ValueError, "Input array a must be contiguous", get_fft_plan, a[:, :, ::2])
refused(NotImplementedError, "hfft plan is currently not yet supported", cupyx.scipy.fft.hfft, a, plan=plan)
refused(TypeError, "must be a cupy.ndarray", cp.fft.fft, np.ones(4))
with scipy.fft.set_backend(cupyx.scipy.fft):
    assert cp.allclose(scipy.fft.fft(a, plan=single), out, atol=1e-3)

# --- in place --------------------------------------------------------------------------------------------------------

given = a.copy()
made = fftn(given, overwrite_x=True)
assert made is given
assert cp.allclose(made, wanted, atol=1e-3)

# --- settings --------------------------------------------------------------------------------------------------------

in_columns = cp.asfortranarray(a)
assert cp.fft.fftn(cp.ones((3, 2)), (3, 2), (1, 0)).shape == (3, 2)  # for CuPy these lengths ask for nothing
assert cp.fft.fftn(in_columns).flags.f_contiguous
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    config.enable_nd_planning = False
    assert config.enable_nd_planning is False
assert [one.category for one in seen] == [DeprecationWarning] * 2
assert {one.filename for one in seen} == {__file__}
one_by_one = cp.fft.fftn(in_columns)
assert one_by_one.strides == (384, 64, 8)
assert cp.allclose(one_by_one, wanted, atol=1e-3)
# A setting is its context's. (On native CuPy a thread has no CUDA context for cuFFT before it launches a kernel.)
assert in_another_thread(lambda: (cp.ones(1), cp.fft.fftn(in_columns))[1]).flags.f_contiguous
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    config.enable_nd_planning = True
assert cp.fft.fftn(in_columns).flags.f_contiguous
assert config.devices is None

cache = get_plan_cache()
cache.clear()
cp.fft.fft(cp.ones(16))
cp.fft.fft(cp.ones(32))
assert cache.get_curr_size() == 2
config.set_plan_cache_size(1)
assert (cache.get_curr_size(), config.get_plan_cache_size()) == (1, 1)
config.clear_plan_cache()
assert cache.get_curr_size() == 0
