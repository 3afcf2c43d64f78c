"""What a CuPy array is to its neighbours: NumPy, SciPy, polynomials, sparse matrices, warnings, iterators."""

from __future__ import annotations

import pickle
import warnings

import cupy as cp
import cupyx
import cupyx.scipy.fft
import cupyx.scipy.linalg
import cupyx.scipy.signal
import cupyx.scipy.sparse as sparse
import numpy as np
import scipy.fft
import scipy.sparse
from expecting import refused

a = cp.arange(6.0).reshape(2, 3)

# --- constants are NumPy's own ----------------------------------------------------------------------------------------

assert cp.nan is cp.NaN is np.nan
assert cp.inf is np.inf
assert cp.pi is np.pi
assert cp.euler_gamma is np.euler_gamma

# --- warnings are the program's to treat ------------------------------------------------------------------------------

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    (a + 1j).astype(np.float32)
assert [one.category for one in told] == [np.exceptions.ComplexWarning]
assert told[0].filename == __file__
with warnings.catch_warnings():
    warnings.simplefilter("error")
    refused(np.exceptions.ComplexWarning, lambda: (a + 1j).astype(np.float32), "imaginary")

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    cupyx.scipy.signal.normalize(cp.array([0.0, 1.0]), cp.array([1.0, 1.0]))
assert [one.category for one in told] == [cupyx.scipy.signal.BadCoefficients]

# --- errors of linear algebra, if they are asked for ------------------------------------------------------------------

singular = cp.ones((3, 3))
assert cp.linalg.inv(singular).shape == (3, 3)
with cupyx.errstate(linalg="raise"):
    refused(np.linalg.LinAlgError, lambda: cp.linalg.inv(singular))
assert cp.linalg.inv(singular).shape == (3, 3)

# --- SciPy hands over -------------------------------------------------------------------------------------------------

with scipy.fft.set_backend(cupyx.scipy.fft):
    moved = scipy.fft.fft(a)
assert isinstance(moved, cp.ndarray)
assert cp.allclose(moved, cp.fft.fft(a))
assert cupyx.scipy.linalg.__ua_domain__ == "numpy.scipy.linalg"

# --- sparse matrices come and go --------------------------------------------------------------------------------------

host = scipy.sparse.random(8, 5, density=0.4, format="coo", random_state=1)
for form in ("csr", "csc", "coo", "dia"):
    remote = getattr(sparse, f"{form}_matrix")(host)
    assert remote.shape == (8, 5)
    back = remote.get()
    assert type(back) is getattr(scipy.sparse, f"{form}_matrix")
    assert np.array_equal(back.toarray(), host.toarray())
assert np.array_equal(pickle.loads(pickle.dumps(sparse.csr_matrix(host))).toarray().get(), host.toarray())
assert str(sparse.csr_matrix(host)) == str(host.tocsr()) != repr(sparse.csr_matrix(host))
assert issubclass(sparse.SparseEfficiencyWarning, Warning)
assert pickle.loads(pickle.dumps(cp.ones((2, 3), order="F"))).flags.f_contiguous
dense = cp.ones((8, 5))
assert cp.allclose(dense + sparse.csr_matrix(host), dense + cp.asarray(host.toarray()))

# --- polynomials ------------------------------------------------------------------------------------------------------

p = cp.poly1d(np.poly1d([1, 2, 3], variable="z"))
assert p.variable == "z"
assert p.get() == np.poly1d([1, 2, 3])
assert cp.allclose(cp.array([1.0, 1, 1]) + p, [2, 3, 4])
assert cp.allclose(cp.add(p, 1), [2, 3, 4])
p.set(np.poly1d([4, 5, 6], variable="w"))
assert p.variable == "w"
assert p.coeffs.tolist() == [4, 5, 6]

# --- iterators, comparisons, named results ----------------------------------------------------------------------------

flat = a.flat
assert [float(one) for one in flat] == [0, 1, 2, 3, 4, 5]
assert a.flat[4] == 4
a.flat[1:4] = 9
assert a.tolist() == [[0, 9, 9], [9, 4, 5]]
assert len(a.flat) == 6
refused(IndexError, lambda: a.flat[1, 2], "unsupported iterator index")
assert not (a == None).any()  # noqa: E711 (the operator is what is tried)
assert (a != None).all()  # noqa: E711


class Unlike:
    def __ne__(self, other):
        return True


assert not (a == Unlike()).any()
refused(TypeError, lambda: a != Unlike())
assert cupyx.scipy.linalg.khatri_rao(np.eye(2), np.ones((1, 2))).tolist() == [[1, 0], [0, 1]]
assert (np.array(9) == a).sum() == 3
assert (a.astype(bool) < 2**63).all()
for numbers in (a, a.astype(bool), a.astype("i1")):
    for other in (2**64, -(2**63) - 1):
        refused(OverflowError, lambda numbers=numbers, other=other: numbers < other, "too large to convert to C long")
        refused(OverflowError, lambda numbers=numbers, other=other: numbers + other, "too large to convert to C long")
counts = cp.unique_counts(a)
assert counts.values.tolist() == [0, 4, 5, 9]
assert counts.counts.tolist() == [1, 1, 1, 3]
assert type(cp.sum(np.arange(3.0))) is np.float64

# --- what waits for the device ----------------------------------------------------------------------------------------

with warnings.catch_warnings(record=True) as told, cupyx.allow_synchronize(False):
    b = a * 2
    refused(cupyx.DeviceSynchronized, b.get, "synchronization")
assert [one.category for one in told] == [UserWarning]
assert b.sum() == 72

# --- results that were given, indices, values ------------------------------------------------------------------------

quotient = cp.empty(3, int)
made = cp.divmod(cp.arange(3), 2, out=(quotient, None))
assert made[0] is quotient
assert made[1].tolist() == [0, 1, 0]


# --- the same view twice is one array, another view of the same memory is not -----------------------------------------

window = cp.arange(20.0)[4:]
assert cupyx.scipy.signal.csd(window, window, nperseg=8)[1].dtype == np.float64
assert cupyx.scipy.signal.csd(window, cp.arange(20.0)[4:], nperseg=8)[1].dtype == np.complex128
assert cupyx.scipy.signal.csd(window, window[:], nperseg=8)[1].dtype == np.complex128


class Named:
    """Stands for an array, as objects of other libraries may."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __cupy_get_ndarray__(self):
        return self.array


assert cp.arange(5)[[Named(cp.array(3))]].tolist() == [3]
square = cp.zeros((3, 3))
square[cp.diag_indices(3)] = 2
square[cp.ix_(cp.array([0]), cp.array([1, 2]))] = 5
assert square.tolist() == [[2, 5, 5], [0, 2, 0], [0, 0, 2]]


# --- what wraps an array of ours is a window on it --------------------------------------------------------------------


class Wrapper:
    """Says where an array's memory is, as other libraries' arrays do."""

    def __init__(self, array, **more):
        self.array, self.more = array, more

    @property
    def __cuda_array_interface__(self):
        array = self.array
        place = {"shape": array.shape, "typestr": array.dtype.str, "data": (array.data.ptr, False), "version": 3}
        strides = {} if array.flags.c_contiguous else {"strides": array.strides}
        return place | strides | self.more


cube = cp.arange(24.0).reshape(2, 3, 4)
part = cube[:, ::2, 1:]
again = cp.asarray(Wrapper(part))
again += 100
assert float(cube[0, 2, 3]) == 111
assert float(cp.add(Wrapper(part), part).sum()) == 2 * float(part.sum())
assert cp.asnumpy(Wrapper(part)).tolist() == part.tolist()
assert float(cp.array(Wrapper(part)).sum()) == float(part.sum())
double = cp.ElementwiseKernel("T x", "T y", "y = 2 * x", "double_it")
assert float(double(Wrapper(part)).sum()) == 2 * float(part.sum())
assert cp.asarray(Wrapper(cp.empty((0, 3)))).shape == (0, 3)
try:
    cp.asarray(Wrapper(part, mask=part))
except ValueError as error:
    assert "masked" in str(error)
else:
    raise AssertionError("a masked array was taken")

# --- numbers at the edge ----------------------------------------------------------------------------------------------

assert cp.nancumprod(cp.array([2, complex(np.nan, np.nan), 3])).tolist() == [2, 2, 6]
assert float(cp.eye(3, k=1 << 63).sum()) == 0
assert cp.cuda.alloc_pinned_memory(np.int64(80)).mem.size >= 80
