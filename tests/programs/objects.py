"""Objects that are no arrays, and what other libraries ask of arrays."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import tempfile
import warnings
import weakref
from contextlib import ExitStack, redirect_stdout

import cupy as cp
import cupyx.scipy
import numpy as np
import scipy
from cupy import testing
from cupyx.profiler import benchmark, profile, time_range
from cupyx.scipy.fft import fft, get_fft_plan
from expecting import refused
from IPython.core.interactiveshell import InteractiveShell

# --- iterators -------------------------------------------------------------------------------------------------------

a = cp.arange(6).reshape(2, 3)
assert [row.shape for row in a] == [(3,), (3,)]
assert [int(one) for one in a.flat] == [0, 1, 2, 3, 4, 5]
assert isinstance(a.flat, cp.flatiter)
assert len(a.flat) == 6
a.flat[0] = 9
assert (int(a[0, 0]), int(a.flat[3])) == (9, 3)
one, two = cp.array([1, 2])
assert int(two) == 2
assert 3 in cp.arange(5)
assert 9 not in cp.arange(5)
assert sum(int(i) * j for i, j in zip(cp.arange(3), range(3), strict=True)) == 5
refused(TypeError, lambda: iter(cp.array(3)))
refused(TypeError, lambda: range(cp.array(3)))
refused(TypeError, lambda: hash(cp.arange(3)))
both = cp.broadcast(cp.ones((2, 1)), cp.ones(3))
assert (both.shape, both.size, both.nd) == ((2, 3), 6, 2)

# --- polynomials -----------------------------------------------------------------------------------------------------

p = cp.poly1d([1.0, 2.0, 3.0])
assert float(p(2)) == 11
assert (p.order, len(p), p.variable) == (2, 2, "x")
assert isinstance(p * p, cp.poly1d)
assert isinstance(p.coeffs, cp.ndarray)
assert float((p + 1)[0]) == 4
assert (p - 1 + 2 * p / 2 - (-p)) == cp.poly1d([3.0, 6.0, 8.0])
assert str(p) == str(np.poly1d([1.0, 2.0, 3.0]))
assert p.get() == np.poly1d([1, 2, 3])
assert cp.poly1d(np.poly1d([1, 2])).get() == np.poly1d([1, 2])
p[3] = 1.0
assert p.order == 3
assert cp.polyfit(cp.arange(5.0), cp.arange(5.0) ** 2, 2).shape == (3,)

# --- plans, random states --------------------------------------------------------------------------------------------

x = cp.random.random((4, 16)).astype("F")
plan = get_fft_plan(x, axes=(1,), value_type="C2C")
with plan:
    planned = fft(x, axis=1)
assert cp.allclose(planned, fft(x, axis=1, plan=plan), atol=1e-4)
cache = cp.fft.config.get_plan_cache()
cache.set_size(8)
assert cache.get_size() == 8
cache.clear()
assert (cp.random.RandomState(42).rand(3) == cp.random.RandomState(42).rand(3)).all()
cp.random.seed(7)
first = cp.random.rand(4)
cp.random.seed(7)
assert (first == cp.random.rand(4)).all()
assert (cp.random.default_rng(42).random(3) == cp.random.default_rng(42).random(3)).all()
assert isinstance(cp.random.get_random_state(), cp.random.RandomState)
assert cp.random.Generator(cp.random.Philox4x3210(1)).exponential(1.0, 3).shape == (3,)

# --- files of this machine -------------------------------------------------------------------------------------------

with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    a = cp.arange(10.0).reshape(2, 5)
    cp.save("a.npy", a)
    assert (cp.load("a.npy") == a).all()
    assert isinstance(np.load("a.npy"), np.ndarray)
    cp.savez("a.npz", x=a, y=a * 2)
    with cp.load("a.npz") as archive:
        assert sorted(archive.npz_file.files) == ["x", "y"]
        assert float(archive["y"].sum()) == 90
    cp.savez_compressed("b.npz", a)
    assert (cp.load("b.npz")["arr_0"] == a).all()
    cp.savetxt("a.txt", a)
    assert cp.loadtxt("a.txt").shape == cp.genfromtxt("a.txt").shape == (2, 5)
    a.tofile("a.bin")
    assert cp.fromfile("a.bin").shape == (10,)
    refused(TypeError, lambda: a.dump("a.pkl"))
    with open("a.pkl", "wb") as dumped:
        a.dump(dumped)
    assert isinstance(cp.load("a.pkl", allow_pickle=True), cp.ndarray)
    assert (pickle.loads(a.dumps()) == a).all()
    with open("other.pkl", "wb") as other:
        pickle.dump({"n": 1}, other)
    assert cp.load("other.pkl", allow_pickle=True) == {"n": 1}
    refused(FileNotFoundError, lambda: cp.load("nothing.npy"))
    os.chdir("/")
stream = io.BytesIO()
cp.save(stream, a)
stream.seek(0)
assert (cp.load(stream) == a).all()
assert float(cp.fromiter((i * i for i in range(5)), dtype=float).sum()) == 30
assert cp.fromstring("1 2 3", sep=" ").shape == (3,)
assert cp.frombuffer(b"\x01\x02", "u1").get().tolist() == [1, 2]

# --- copies, pickles, weak references --------------------------------------------------------------------------------

a = cp.arange(5.0)
assert (pickle.loads(pickle.dumps(a)) == a).all()
changed = copy.deepcopy(a)
changed[0] = 9
assert float(a[0]) == float(copy.copy(a)[0]) == 0
assert pickle.loads(pickle.dumps(cp.sum)) is cp.sum
another_add = pickle.loads(pickle.dumps(cp.add))  # kept: native CuPy unloads the kernels of both when a copy goes
assert another_add.nin == 2
reference = weakref.ref(a)
assert reference() is a
del a
gc.collect()
assert reference() is None

# --- subclasses


class Named(cp.ndarray):
    def __array_finalize__(self, other: object) -> None:
        self.name = getattr(other, "name", "nobody")


a = cp.arange(3.0).view(Named)
assert (type(a), a.name) == (Named, "nobody")
a.name = "x"
assert (type(a[1:]), a[1:].name) == (Named, "x")
assert (type(a.reshape(3, 1)), type(Named((3,), "f"))) == (Named, Named)
assert float(a.sum()) == 3
plain = cp.ones(3)
for made in (
    a + 1,
    1 / a,
    -a,
    a**2,
    plain * a,
    a < plain,
    cp.sin(a),
    cp.add(plain, a, dtype="f"),
    *cp.modf(a),
    np.exp(a),
):
    assert (type(made), made.name) == (Named, "x")  # of the first operand that is of a subclass
assert cp.add(a, a, out=plain) is plain
assert type(plain) is cp.ndarray

# --- structured dtypes -----------------------------------------------------------------------------------------------

point = np.dtype([("x", "f4"), ("y", "i4")])
host = np.zeros(3, point)
host["y"] = [1, 2, 3]
points = cp.asarray(host)
points["x"] = 2
assert (points.itemsize, points.nbytes) == (8, 24)
assert int(points["y"].sum()) == 6
assert points.get().dtype == point
assert points.get()["x"].tolist() == [2, 2, 2]

# --- NumPy, SciPy, tests, profiles -----------------------------------------------------------------------------------

a = cp.arange(4.0)


def takes_remote_arrays(a: cp.ndarray) -> list[object]:
    return [
        np.sin(a),
        np.sum(a),
        np.concatenate([a, a]),
        np.add(a, 1),
        np.add.reduce(a),
        np.float64(3) * a,
        np.linalg.norm(a),
        np.fft.fft(a),
        np.where(a > 1, a, 0),
        np.einsum("i,i", a, a),
        np.zeros_like(a),
    ]


assert all(isinstance(made, cp.ndarray) for made in takes_remote_arrays(a))
out = cp.empty(4)
assert np.add(a, a, out=out) is out
refused(TypeError, lambda: a + np.arange(4.0), "Unsupported type")
assert cp.get_array_module(a) is cp
assert cp.get_array_module(np.ones(1)) is np
assert cupyx.scipy.get_array_module(a) is cupyx.scipy
assert cupyx.scipy.get_array_module(np.ones(1)) is scipy
testing.assert_array_equal(a, np.arange(4.0))
testing.assert_allclose(cp.ones(3), 1.0)
testing.assert_array_almost_equal(cp.ones(2), np.ones(2))
testing.assert_array_list_equal([cp.ones(2)], [np.ones(2)])
refused(AssertionError, lambda: testing.assert_array_equal(a, cp.ones(4)))
with testing.assert_warns(UserWarning):
    warnings.warn("heard", UserWarning, stacklevel=1)
with ExitStack() as silent:
    silent.enter_context(testing.assert_warns(UserWarning))
    refused(AssertionError, silent.close, "UserWarning not trigger")
assert testing.shaped_arange((2, 3), cp, "i").get().tolist() == [[1, 2, 3], [4, 5, 6]]
assert testing.shaped_random((2, 3), np).shape == (2, 3)
times = benchmark(lambda x: x + 1, (a,), n_repeat=5, n_warmup=1)
assert (times.cpu_times.shape, times.gpu_times.shape) == ((5,), (1, 5))
assert "CPU" in str(times)
with time_range("x", color_id=0), profile():
    cp.ones(3)
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "cupyx.profiler")
shell.user_ns.update(cp=cp, n=3)
with redirect_stdout(io.StringIO()) as printed:
    shell.run_line_magic("gpu_timeit", "-n 3 -w 1 cp.ones(n).sum()")
    shell.run_cell_magic("gpu_timeit", "-n 3 --max-duration 1", "x = cp.ones(n)\ny = x + 1\n")
assert printed.getvalue().count("GPU-0:") == 2
refused(NameError, lambda: shell.run_line_magic("gpu_timeit", "-n 1 absent"))
