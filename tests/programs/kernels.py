"""Kernels in CUDA C++: element by element, reductions, raw kernels and modules."""

from __future__ import annotations

import io
import pickle
import tempfile
import time

import cupy as cp
import numpy as np
from expecting import refused

CompileException = cp.cuda.compiler.CompileException

# --- elementwise -----------------------------------------------------------------------------------------------------

squared = cp.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_diff")
x = cp.arange(10, dtype=np.float32).reshape(2, 5)
y = cp.arange(5, dtype=np.float32)
assert squared(x, y).shape == (2, 5)
assert float(squared(x, 5).sum()) == 85
z = cp.empty((2, 5), dtype=np.float32)
assert squared(x, y, z) is z
assert squared(x, y, z) is z
assert (squared.name, squared.nin, squared.nout, squared.nargs) == ("squared_diff", 2, 1, 3)
generic = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "generic")
assert generic(cp.arange(3), cp.arange(3)).dtype == np.int64
refused(TypeError, lambda: generic(x, cp.arange(5)), "Type is mismatched")
backwards = cp.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[_ind.size() - i - 1]", "backwards")
assert backwards(cp.arange(3), cp.arange(3)).get().tolist() == [2, 2, 2]
two = cp.ElementwiseKernel("T x", "T a, T b", "a = x; b = -x", "two")
assert float(two(cp.arange(3.0))[1].sum()) == -3
bad = cp.ElementwiseKernel("T x", "T y", "y = x + undefined_thing", "bad")
error = refused(CompileException, lambda: bad(cp.arange(3)), "undefined_thing")
assert "undefined_thing" in error.get_message()
error.dump(io.StringIO())
assert int(pickle.loads(pickle.dumps(generic))(cp.arange(3), 1).sum()) == 6

# --- reductions ------------------------------------------------------------------------------------------------------

norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
assert abs(float(norm(x)) - 16.881943) < 1e-4
assert norm(x, axis=1).shape == (2,)
assert norm(x, axis=1, keepdims=True).shape == (2, 1)
assert norm.name == norm.__name__ == "l2norm"

# --- raw: the widths of scalars are part of the call -----------------------------------------------------------------

take = cp.RawKernel(
    r"""
extern "C" __global__
void take(double* out, float a, double b, long long c, int d, bool e, short s, unsigned char u) {
    out[0] = a; out[1] = b; out[2] = (double)c; out[3] = d; out[4] = e; out[5] = s; out[6] = u;
}""",
    "take",
)
out = cp.zeros(7)
for _ in range(2):  # the second launch is not waited for
    out[...] = 0
    take((1,), (1,), (out, np.float32(2.5), 3.5, 1 << 40, np.int32(-7), True, np.int16(-3), np.uint8(200)))
    assert out.get().tolist() == [2.5, 3.5, float(1 << 40), -7, 1, -3, 200]
null = cp.RawKernel('extern "C" __global__ void f(int* out, int* p) { out[0] = (p == 0); }', "f")
flag = cp.zeros(1, "i")
null((1,), (1,), (flag, None))
assert int(flag[0]) == 1
complexes = cp.RawKernel(
    "#include <cupy/complex.cuh>\n"
    'extern "C" __global__ void f(complex<float>* o, complex<float> a, complex<double> b) '
    "{ o[0] = a; o[1] = complex<float>(b); }",
    "f",
)
pair = cp.zeros(2, "F")
complexes((1,), (1,), (pair, np.complex64(1 + 2j), 3 + 4j))
assert pair.get().tolist() == [1 + 2j, 3 + 4j]

pairs = np.dtype([("a", np.int32), ("b", np.float64)], align=True)
struct = cp.RawKernel(
    'struct S { int a; double b; }; extern "C" __global__ void f(double* o, S s) { o[0] = s.a; o[1] = s.b; }', "f"
)
value = np.zeros(1, pairs)
value["a"], value["b"] = 5, 2.5
out = cp.zeros(2)
struct((1,), (1,), (out, value))
assert out.get().tolist() == [5, 2.5]
refused(TypeError, lambda: struct((1,), (1,), (out, np.zeros(4))), "cupy.ndarray")
refused(TypeError, lambda: struct((1,), (1,), (out, [1, 2])), "Unsupported type")
refused(CompileException, lambda: cp.RawKernel('extern "C" __global__ void f() { nope; }', "f")((1,), (1,), ()), "nope")
missing = cp.RawKernel('extern "C" __global__ void f() { }', "g")
refused(cp.cuda.driver.CUDADriverError, lambda: missing((1,), (1,), ()))

add = cp.RawKernel(
    'extern "C" __global__ void add(const float* a, const float* b, float* c) '
    "{ int i = blockDim.x * blockIdx.x + threadIdx.x; c[i] = a[i] + b[i]; }",
    "add",
)
a = cp.arange(25, dtype=cp.float32)
c = cp.zeros(25, dtype=cp.float32)
add((5,), (5,), (a, a, c))
assert (c == 2 * a).all()
assert add.name == add.__name__ == "add"
assert "add" in add.code
assert add.max_threads_per_block > 0
assert isinstance(add.attributes, dict)
add.compile()
stream = cp.cuda.Stream()
c[...] = 0
cp.cuda.Device().synchronize()
add((5,), (5,), (a, a, c), stream=stream)
with stream:
    add((5,), (5,), (a, c, c), shared_mem=100)
stream.synchronize()
assert (c == 3 * a).all()
c[...] = 0
pickle.loads(pickle.dumps(add))((5,), (5,), (a, a, c))
assert (c == 2 * a).all()

# --- modules ---------------------------------------------------------------------------------------------------------

module = cp.RawModule(
    code="template<typename T> __global__ void triple(T* a, int n)"
    "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = a[i] * 3; }",
    options=("-std=c++17",),
    name_expressions=["triple<float>", "triple<double>"],
)
a = cp.arange(5.0)
module.get_function("triple<double>")((1,), (10,), (a, np.int32(5)))
assert float(a.sum()) == 30
module = cp.RawModule(
    code='extern "C" { __device__ int table[4]; '
    "__global__ void f(int* o) { for (int i = 0; i < 4; i++) o[i] = table[i]; } }"
)
place = module.get_global("table")
assert isinstance(place, cp.cuda.MemoryPointer)
table = cp.ndarray((4,), cp.int32, place)
table[...] = cp.arange(4)
out = cp.zeros(4, "i")
module.get_function("f")((1,), (1,), (out,))
assert out.get().tolist() == [0, 1, 2, 3]
again = pickle.loads(pickle.dumps(module.get_function("f")))
again((1,), (1,), (out,))
assert out.get().tolist() in ([0, 1, 2, 3], [0, 0, 0, 0])  # its module may be another one, with another table
log = io.StringIO()
code = (
    f'extern "C" __global__ void noted(float* x) {{ int number; x[0] = {time.time_ns()}.0f; }}'  # never compiled before
)
cp.RawModule(code=code).compile(log_stream=log)
assert "number" in log.getvalue(), log.getvalue()
cp.RawKernel(code, "noted").compile()
table.set(np.arange(4, dtype=np.int32) * 2)
module.get_function("f")((1,), (1,), (out,))
assert out.get().tolist() == [0, 2, 4, 6]
with tempfile.NamedTemporaryFile(suffix=".cubin") as compiled:
    compiled.write(b"\x7fELF\xff no code of any GPU")
    compiled.flush()
    refused(cp.cuda.driver.CUDADriverError, lambda: cp.RawModule(path=compiled.name).get_function("f"))
nothing = "CUDA_ERROR_FILE_NOT_FOUND"
refused(cp.cuda.driver.CUDADriverError, lambda: cp.RawModule(path="/nowhere.cubin").get_function("f"), nothing)

# --- headers that come with CuPy --------------------------------------------------------------------------------------

preamble = (
    "#include <cupy/cuda_workaround.h>\ntemplate <bool B, class T> using Only = typename std::enable_if<B, T>::type;"
)
traits = cp.ElementwiseKernel(
    "T x",
    "int32 y",
    "y = std::numeric_limits<T>::digits; Only<true, int> z = std::is_same<T, int>::value; y += z",
    "traits",
    preamble=preamble,
)
assert traits(cp.zeros(1, dtype=np.int32)).get().tolist() == [32]
assert traits(cp.zeros(1, dtype=np.int8)).get().tolist() == [7]
shaped = cp.ElementwiseKernel(
    "raw T x",
    "T y",
    "ptrdiff_t row = i / _raw_y.shape()[1]; y = x[i] + row * 100 + n()",
    "shaped",
    preamble="__device__ int n() { return 1; }",
    reduce_dims=False,
)
assert shaped(cp.arange(6), cp.empty((2, 3), dtype=np.int64)).get().tolist() == [[1, 2, 3], [104, 105, 106]]
joined = cp.ElementwiseKernel("T x", "int64 y", "y = _raw_x.ndim * 10 + _raw_x.shape()[0]", "joined")
assert joined(cp.empty((2, 3))).get().tolist() == [[16, 16, 16], [16, 16, 16]]
