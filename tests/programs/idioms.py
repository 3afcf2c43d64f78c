"""What published programs do here and there with arrays, lists of them, and memory."""

from __future__ import annotations

import cupy as cp
import numpy as np
from expecting import refused

a = cp.arange(12.0).reshape(3, 4)

# --- other sequences than lists and tuples ---------------------------------------------------------------------------

assert cp.take(a, range(1, 3), axis=1).get().tolist() == [[1, 2], [5, 6], [9, 10]]
assert cp.delete(a, range(3), axis=1).get().tolist() == [[3], [7], [11]]
rows = {"first": a[0], "last": a[-1]}
for join in (cp.concatenate, cp.stack, cp.hstack, cp.vstack, cp.dstack):
    expected = getattr(np, join.__name__)([row.get() for row in rows.values()])
    for given in (rows.values(), (row for row in rows.values()), iter([a[0], a[2]])):
        assert np.array_equal(join(given).get(), expected), join
assert cp.concatenate(a).get().tolist() == list(range(12))
refused(TypeError, lambda: cp.concatenate(cp.float64(3)))

# --- "do not copy", which can only be kept for what is on the GPU already --------------------------------------------

for host in (np.arange(3.0), [0.0, 1.0, 2.0], (cp.float64(0), 1.0, np.array(2.0)), [cp.array(n) for n in range(3)]):
    for make in (cp.array, cp.asarray, cp.asanyarray):
        assert make(host, copy=False).get().tolist() == [0, 1, 2]
assert cp.array(a, copy=False) is a
refused(ValueError, lambda: cp.array(a, dtype="f4", copy=False), "Unable to avoid copy")

# --- host arrays keep their memory order if it is F, and become C otherwise ------------------------------------------

by_columns = np.asfortranarray(np.arange(24.0).reshape(4, 6))
assert cp.asarray(by_columns).flags.fnc
for host in (by_columns[::2], by_columns[:, ::2], np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2)):
    assert cp.asarray(host).flags.c_contiguous
    assert cp.array(host, order="F").flags.fnc
    assert np.array_equal(cp.asarray(host).get(), host)
    assert np.array_equal(cp.array(host, order="F").get(), host)

# --- a list of arrays is joined if they are alike, and never taken to the host for it ---------------------------------

assert cp.array([[a[0], a[1]], [a[1], a[2]]]).shape == (2, 2, 4)
assert cp.array([cp.zeros(2, "i"), cp.ones(2, "f")]).dtype == np.float64
for mixed in ((0.0, cp.array(1.0)), [a[0], a[0].get()], [a[0], a[:, 0]], [a[0], [0.0, 1.0, 2.0, 3.0]], [[a[0]], []]):
    refused(TypeError, lambda mixed=mixed: cp.array(mixed), "Implicit conversion to a NumPy array is not allowed")

# --- functions that only call their argument's method leave a NumPy array to NumPy -----------------------------------

assert type(cp.copy(a.get())) is type(cp.reshape(a.get(), 12)) is np.ndarray
assert type(cp.copy(a)) is cp.ndarray
assert type(cp.repeat(a.get(), 2)) is type(cp.argsort(a.get())) is np.ndarray


class Lazy:
    """An array of a library such as Dask, which has methods of its own."""

    def __array_function__(self, *call: object) -> object:
        """Answer to NumPy's functions."""
        raise AssertionError("nobody asks")

    def squeeze(self, axis: object = None) -> str:
        """Return what tells that it was called."""
        return f"squeezed {axis}"


assert cp.squeeze(Lazy(), axis=0) == "squeezed 0"

# --- asking whether something is an array of a GPU -------------------------------------------------------------------

assert hasattr(a, "__cuda_array_interface__")
assert not hasattr(a.get(), "__cuda_array_interface__")

# --- seeds for several streams of random numbers ----------------------------------------------------------------------


def drawn(seed: object) -> list[float]:
    """Return the first numbers of the stream."""
    return cp.random.Generator(cp.random.XORWOW(seed)).random(3).get().tolist()


first, second = np.random.SeedSequence(3).spawn(2)
assert drawn(first) == drawn(np.random.SeedSequence(3, spawn_key=(0,))) != drawn(second)
assert drawn(np.random.SeedSequence(2**100)) == drawn(2**100) == drawn(np.random.SeedSequence([2**100]))
assert drawn(np.random.SeedSequence([1, 2])) != drawn(np.random.SeedSequence([2, 1]))
assert cp.random.default_rng(first).random(3).get().tolist() == drawn(first)

# --- managed memory --------------------------------------------------------------------------------------------------

pool = cp.cuda.MemoryPool(cp.cuda.malloc_managed)
cp.cuda.set_allocator(pool.malloc)
b = cp.ones(1000)
assert pool.used_bytes() >= 8000
cp.cuda.set_allocator(cp.cuda.malloc_managed)
assert float((b + 1).sum()) == 2000
cp.cuda.set_allocator(cp.get_default_memory_pool().malloc)
assert cp.cuda.memory.malloc_managed(64).mem.size >= 64

# --- the random state in use is one object ---------------------------------------------------------------------------

state = cp.random.RandomState(7)
cp.random.set_random_state(state)
assert cp.random.get_random_state() is state
cp.random.seed(3)
number = float(cp.random.rand())
state.seed(3)
assert float(cp.random.rand()) == number
cp.random.reset_states()
assert cp.random.get_random_state() is not state
assert cp.random.get_random_state() is cp.random.get_random_state()

# --- what cannot be drawn, filled in or scanned is refused -----------------------------------------------------------

refusals = [
    (ValueError, lambda: cp.random.logseries(cp.zeros(()), size=3)),
    (ValueError, lambda: cp.random.poisson(None)),
    (ValueError, lambda: cp.random.hypergeometric(10, 10, 0, size=3)),
    (ValueError, lambda: cp.zeros(3).fill(cp.ones(1))),
    (ValueError, lambda: cp.zeros(3).fill([1])),
    (TypeError, lambda: cp.cumprod((1, 2, 3))),
]
for kind, refused_call in refusals:
    try:
        refused_call()
    except kind:
        continue
    raise AssertionError(f"{kind.__name__} was not raised")
assert cp.random.dirichlet(cp.array([1.0, 2.0]), size=5).shape == (5, 2)

# --- results that lie in columns, beside views of themselves ----------------------------------------------------------

columns = cp.linalg.solve(2 * cp.eye(3), cp.arange(6.0).reshape(2, 3).T)
assert columns.flags.f_contiguous
assert cp.dot(columns, columns.T).shape == cp.multiply(columns, columns[:, ::-1]).get().shape[:1] * 2
assert cp.concatenate([columns, columns[:1]]).get()[-1].tolist() == [0, 1.5]

# --- orders in small letters, fills, and views as a class ------------------------------------------------------------

assert cp.asarray(a, order="f").flags.f_contiguous
assert cp.asarray(a, order="c") is a
assert cp.asfortranarray(cp.array(1.0)).shape == cp.ascontiguousarray(cp.array(1.0)).shape == (1,)
refused(NotImplementedError, lambda: cp.r_[0:3])
refused(NotImplementedError, lambda: cp.r_["0,2", a[0], a[1]])
filled = cp.zeros(2, "i")
filled.fill(np.ones((), "f"))
filled[1:].fill(cp.array(3.0))
assert filled.get().tolist() == [1, 3]
assert type(filled.view(type=cp.ndarray)) is cp.ndarray
refused(ValueError, lambda: filled.view(type=np.ndarray), "sub-type of ndarray")
refused(TypeError, lambda: cp.indices((3, 4), dtype=bool))


class Held:
    """What holds an array of CuPy, and says so."""

    def __init__(self, array: cp.ndarray) -> None:
        self._array = array

    def __cupy_get_ndarray__(self) -> cp.ndarray:
        """Return the array."""
        return self._array

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)


assert cp.array([Held(a[0]), a[1]]).shape == (2, 4)
filled.fill(Held(cp.array(7)))
assert filled.get().tolist() == [7, 7]

# --- arrays that fill others, and signals of several axes -------------------------------------------------------------

assert cp.full((2, 3), cp.array([1.0, 2.0, 3.0])).tolist() == [[1, 2, 3], [1, 2, 3]]
assert cp.full_like(cp.zeros((2, 2)), cp.array([5])).tolist() == [[5, 5], [5, 5]]
assert cp.convolve(cp.ones((2, 2)), cp.ones(2)).tolist() == [1, 2, 2, 2, 1]
