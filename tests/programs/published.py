"""What programs that others published lean on, each found by running one of them."""

from __future__ import annotations

import cupy as cp
import cupyx.scipy.fft
import cupyx.scipy.ndimage as ndimage
import cupyx.scipy.signal as signal
import numpy as np
import scipy.special
from expecting import refused

# --- NumPy's and SciPy's ufuncs that are no ufuncs in CuPy ------------------------------------------------------------

a = cp.arange(6.0).reshape(2, 3)
square = a.T @ a
assert isinstance(np.matmul(a, a.T), cp.ndarray)
assert (np.matmul(a, a.T) == a @ a.T).all()
kept = cp.empty((3, 3))
assert np.matmul(a.T, a, out=kept) is kept
assert (kept == square).all()
assert isinstance(scipy.special.round(a), cp.ndarray)
refused(TypeError, lambda: np.spacing(a))

# --- no operand of a product comes from the host by itself ------------------------------------------------------------

host = np.ones((3, 3))
refused(TypeError, lambda: a @ host)
refused(TypeError, lambda: host @ square)
refused(TypeError, lambda: np.matmul(a, host))
refused(TypeError, lambda: cp.matmul(a, host))
refused(TypeError, lambda: a @ [1.0, 2.0, 3.0])

# --- nor of most other functions; some take it, and some leave it where it is -----------------------------------------

refused(TypeError, lambda: cp.concatenate([square, host]), "Unsupported type")
refused(TypeError, lambda: cp.dot(square, host), "Argument 'b'")
refused(TypeError, lambda: cp.median(host), "Argument 'a'")
refused(TypeError, lambda: cp.fft.fft(host), "must be a cupy.ndarray")
refused(np.linalg.LinAlgError, lambda: cp.linalg.solve(square, host), "only supports cupy.ndarray")
refused(TypeError, lambda: cp.array_equal(square, host), "Unsupported type")
refused(TypeError, lambda: cp.sum(a, out=np.empty(())), "Argument 'out'")
refused(TypeError, lambda: ndimage.label(host), "must be cupy.ndarray")
assert isinstance(cp.vstack([square, host]), cp.ndarray)
assert isinstance(cp.einsum("ij,jk", square, host), cp.ndarray)
assert bool(cp.allclose(square, square.get()))
assert isinstance(cp.sort(host), np.ndarray)
assert isinstance(cp.rot90(host), np.ndarray)
refused(AttributeError, lambda: cp.cov([[1.0, 2.0], [3.0, 4.0]]), "no attribute 'ndim'")
refused(AttributeError, lambda: cp.unique([1, 1, 2]), "no attribute 'shape'")
assert signal.welch([1.0, 2.0, 3.0, 4.0], nperseg=4)[1].shape == (3,)
assert signal.gausspulse([0.0, 0.1], fc=5).shape == (2,)
assert cp.fft.fftfreq(4.0).tolist() == [0, 0.25, -0.5, -0.25]

# --- filters along an axis that is named by its place among the arguments ---------------------------------------------

weights = cp.array([-1.0, 0.0, 1.0])
for filtered, same in (
    (ndimage.correlate1d(a, weights, 0), ndimage.correlate1d(a, weights, axis=0)),
    (ndimage.convolve1d(a, weights, 0, None, "wrap"), ndimage.convolve1d(a, weights, axis=0, mode="wrap")),
    (ndimage.gaussian_filter1d(a, 1.0, 0), ndimage.gaussian_filter1d(a, 1.0, axis=0)),
    (ndimage.uniform_filter1d(a, 3, 0), ndimage.uniform_filter1d(a, 3, axis=0)),
    (ndimage.maximum_filter1d(a, 3, 0), ndimage.maximum_filter1d(a, 3, axis=0)),
    (ndimage.minimum_filter1d(input=a, size=3, axis=0), ndimage.minimum_filter1d(a, 3, 0)),
):
    assert (filtered == same).all()

# --- a boundary mode for each axis ------------------------------------------------------------------------------------

box = cp.ones((3, 3))
at_edges = ndimage.correlate(a, box, mode=["reflect", "mirror"])
by_axes = ndimage.correlate1d(a, cp.ones(3), 1, mode="mirror")
assert cp.allclose(at_edges, ndimage.correlate1d(by_axes, cp.ones(3), 0))
whole = ndimage.convolve(a, box, mode=("wrap", "nearest"))
assert cp.allclose(
    whole, ndimage.convolve1d(ndimage.convolve1d(a, cp.ones(3), 0, mode="wrap"), cp.ones(3), 1, mode="nearest")
)
assert (ndimage.median_filter(a, 3, mode=["reflect"] * 2) == ndimage.median_filter(a, 3)).all()
into = cp.empty_like(a)
ndimage.rank_filter(a, 0, 3, None, into, ["nearest", "mirror"])
assert into.tolist() == [[0, 0, 1], [0, 0, 1]]

# --- whether memory is shared, by bounds or exactly -------------------------------------------------------------------

line = cp.arange(10)
assert cp.shares_memory(line[::2], line[1::2], "MAY_SHARE_BOUNDS") is True
assert cp.shares_memory(line[::2], line[1::2], "MAY_SHARE_EXACT") is cp.shares_memory(line[::2], line[1::2]) is False
assert cp.shares_memory(line, line[3:], "MAY_SHARE_EXACT") is True
assert cp.shares_memory(line, line.copy(), "MAY_SHARE_BOUNDS") is False
refused(NotImplementedError, lambda: cp.shares_memory(line, line[3:], 1), "Not supported for integer `max_work`.")
refused(NotImplementedError, lambda: cp.may_share_memory(line, line[3:], 1), "Only supported for `max_work` is `None`")
assert cp.min_scalar_type(line) == line.dtype
assert cp.min_scalar_type(300) == np.uint16

# --- kernels that take types from CuPy's headers ----------------------------------------------------------------------

SOURCE = r"""
#include "cupy/carray.cuh"
#include "cupy/float16.cuh"
template <class A, class B>
struct wider {
  static const bool same = cupy::type_traits::is_same<A, B>::value;
  typedef typename cupy::type_traits::conditional<same, A, double>::type type;
};
template <class A>
__device__ typename cupy::type_traits::enable_if<sizeof(A) == 8, A>::type twice(A value) { return 2 * value; }
extern "C" __global__ void grown(const float16* x, wider<float16, float>::type* y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = twice(static_cast<double>(static_cast<float>(x[i])) + 1);
}
"""
halves = cp.arange(4, dtype=np.float16)
grown = cp.zeros(4)
cp.RawModule(code=SOURCE).get_function("grown")((1,), (32,), (halves, grown, 4))
assert grown.tolist() == [2.0, 4.0, 6.0, 8.0]

# --- element types that no array has ----------------------------------------------------------------------------------

for kind, told in ((object, "object"), (np.dtype("O"), "object"), (np.object_, "object"), (str, "<U0"), (bytes, "|S0")):
    refused(ValueError, lambda kind=kind: cp.zeros(3, dtype=kind), f"Unsupported dtype {told}")
    refused(ValueError, lambda kind=kind: a.astype(kind), f"Unsupported dtype {told}")

# --- copies between addresses -----------------------------------------------------------------------------------------

runtime = cp.cuda.runtime
sent, back = np.arange(6.0), np.zeros(6)
there, twin = cp.zeros(6), cp.ones(6)
stream = cp.cuda.Stream()
runtime.memcpy(dst=there.data.ptr, src=sent.ctypes.data, size=sent.nbytes, kind=runtime.memcpyHostToDevice)
assert there.tolist() == sent.tolist()
runtime.memcpy(twin.data.ptr, there.data.ptr + 8, 40, runtime.memcpyDeviceToDevice)
assert twin.tolist() == [1, 2, 3, 4, 5, 1]
runtime.deviceSynchronize()
runtime.memcpyAsync(back.ctypes.data, twin.data.ptr, 48, runtime.memcpyDeviceToHost, stream.ptr)
stream.synchronize()
assert back.tolist() == [1, 2, 3, 4, 5, 1]
runtime.memcpyAsync(back.ctypes.data, sent.ctypes.data, 16, runtime.memcpyHostToHost, 0)
stream.synchronize()
runtime.deviceSynchronize()
assert back.tolist() == [0, 1, 3, 4, 5, 1]
refused(runtime.CUDARuntimeError, lambda: runtime.memcpy(there.data.ptr, twin.data.ptr, 8, 9), "MemcpyDirection")
runtime.memset(there.data.ptr, 0, 24)
runtime.memsetAsync(twin.data.ptr, 0, 8, stream.ptr)
stream.synchronize()
assert there.tolist() == [0, 0, 0, 3, 4, 5]
assert twin.tolist() == [0, 2, 3, 4, 5, 1]

# --- the room that a plan works in ------------------------------------------------------------------------------------

plan = cupyx.scipy.fft.get_fft_plan(cp.ones((4, 6), complex))
assert plan.work_area.mem.size >= 0

# --- memory that is given back before its time ------------------------------------------------------------------------

taken = cp.cuda.alloc(4096)
pool = cp.get_default_memory_pool()
held = pool.used_bytes()
taken.mem.free()
assert pool.used_bytes() == held - 4096
assert taken.mem.ptr == 0
