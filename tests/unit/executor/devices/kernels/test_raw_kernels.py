"""RawKernel and RawModule: the examples of CuPy's user guide, the width of arguments, look-ups, launches."""

from __future__ import annotations

import io

import numpy as np
import pytest

from gpu_backend.devices.cpu.array_class import ndarray
from gpu_backend.devices.cpu.kernels import (
    ByValue,
    CompileException,
    CUDADriverError,
    RawKernel,
    RawModule,
)
from gpu_backend.devices.own_file import OwnFile

GUIDE = r"""
#include <cupy/complex.cuh>

extern "C" {
__global__ void my_add(const float* x1, const float* x2, float* y) {
    int tid = blockDim.x * blockIdx.x + threadIdx.x;
    y[tid] = x1[tid] + x2[tid];
}
__global__ void test_multiply(const float* x1, const float* x2, float* y, \
                              unsigned int N)
{
    unsigned int tid = blockDim.x * blockIdx.x + threadIdx.x;
    if (tid < N) { y[tid] = x1[tid] * x2[tid]; }
}
__global__ void my_func(const complex<float>* x1, const complex<float>* x2, complex<float>* y, float a) {
    int tid = blockDim.x * blockIdx.x + threadIdx.x;
    y[tid] = x1[tid] + a * x2[tid];
}
__constant__ float some_array[100];
__device__ int launches;
__global__ void multiply_by_const(float* x, int N) {
    int id = threadIdx.x + blockIdx.x * blockDim.x;
    if (id == 0) launches++;
    if (id < N) x[id] *= some_array[id];
}
}
template<typename T>
__global__ void fx3(T* arr, int N) {
    unsigned int tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid < N) { arr[tid] = arr[tid] * 3; }
}
namespace deep { namespace down {
__global__ void answer(int* out) { *out = 42; }
}}
__global__ void not_c_linkage(int* out) { *out = 1; }
"""
EXPRESSIONS = ["fx3<float>", "fx3<double>", "fx3<complex<double>>", "deep::down::answer"]


@pytest.fixture(scope="module")
def guide() -> RawModule:
    return RawModule(code=GUIDE, options=("-std=c++11",), name_expressions=EXPRESSIONS)


def test_a_kernel_adds_whatever_the_view_starts_at(guide: RawModule) -> None:
    x1 = np.arange(25, dtype=np.float32).reshape(5, 5)
    y = np.zeros((5, 5), np.float32)
    guide.get_function("my_add")((5,), (5,), (x1, x1, y))
    np.testing.assert_array_equal(y, x1 + x1)
    guide.get_function("my_add")((1,), (5,), (x1[2:], x1[3:], y[1:]))
    np.testing.assert_array_equal(y[1], x1[2] + x1[3])


def test_complex_arguments(guide: RawModule) -> None:
    x1 = np.arange(25, dtype=np.complex64)
    y = np.zeros(25, np.complex64)
    guide.get_function("my_func")((5,), (5,), (x1, 1j * x1, y, np.float32(2.0)))
    np.testing.assert_array_equal(y, x1 + 2 * (1j * x1))


@pytest.mark.parametrize(
    ("expression", "dtype"), list(zip(EXPRESSIONS, (np.float32, np.float64, np.complex128), strict=False))
)
def test_a_template_is_found_by_its_name_expression(guide: RawModule, expression: str, dtype: type) -> None:
    a = np.arange(10).astype(dtype)
    guide.get_function(expression)((1,), (16,), (a, 10))
    np.testing.assert_array_equal(a, np.arange(10) * 3)


def test_a_kernel_in_namespaces(guide: RawModule) -> None:
    out = np.zeros(1, np.int32)
    guide.get_function("deep::down::answer")((1,), (1,), (out,))
    assert out[0] == 42


def test_global_variables_are_shared_by_all_who_have_the_source(guide: RawModule) -> None:
    pointer = guide.get_global("some_array")
    constants = ndarray((100,), np.float32, pointer)
    constants[...] = np.arange(100)
    x = np.ones(100, np.float32)
    guide.get_function("multiply_by_const")((1,), (100,), (x, np.int32(100)))
    np.testing.assert_array_equal(x, np.arange(100))
    again = RawModule(code=GUIDE, options=("-std=c++11",), name_expressions=EXPRESSIONS)
    launches = ndarray((1,), np.int32, again.get_global("launches"))
    before = int(launches[0])
    guide.get_function("multiply_by_const")((1,), (1,), (x, 1))
    assert int(launches[0]) == before + 1
    assert pointer.mem.size == 400


@pytest.mark.parametrize("name", ["no_such_kernel", "fx3<char>", "fx3", "not_c_linkage"])
def test_what_cannot_be_looked_up(guide: RawModule, name: str) -> None:
    with pytest.raises(CUDADriverError, match=r"CUDA_ERROR_NOT_FOUND: named symbol not found"):
        guide.get_function(name)


def test_an_unknown_global(guide: RawModule) -> None:
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_NOT_FOUND"):
        guide.get_global("nothing")


WIDTHS = r"""
struct Pair { int a; double b; };
struct Matrix { float value[4][4]; };
extern "C" {
__global__ void integers(long long a, int b, short c, signed char d, unsigned long long e, bool f, long long* out) {
    out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = (long long)e; out[5] = f;
}
__global__ void reals(double a, float b, double2 z, float2 w, double* out) {
    out[0] = a; out[1] = b; out[2] = z.x; out[3] = z.y; out[4] = w.x; out[5] = w.y;
}
__global__ void structs(const Pair p, Matrix m, const Pair* array, double* out) {
    out[0] = p.a + p.b; out[1] = m.value[1][2]; out[2] = array[1].a + array[1].b;
}
__global__ void pointers(float* none, double* pointer, long long* out) { out[0] = none == nullptr; out[1] = *pointer; }
}
"""


@pytest.fixture(scope="module")
def widths() -> RawModule:
    return RawModule(code=WIDTHS)


def test_integers_keep_the_width_they_come_with(widths: RawModule) -> None:
    out = np.zeros(6, np.int64)
    run = widths.get_function("integers")
    run((1,), (1,), (-(2**40), np.int32(-7), np.int16(-3), np.int8(-1), 2**64 - 1, True, out))
    assert out.tolist() == [-(2**40), -7, -3, -1, -1, 1]
    run((1,), (1,), (5, 5, 5, 5, 5, 1, out))  # 8 bytes read as fewer: their low ones, as on the GPU
    assert out.tolist() == [5, 5, 5, 5, 5, 1]


def test_reals_and_complex(widths: RawModule) -> None:
    out = np.zeros(6)
    widths.get_function("reals")((1,), (1,), (1.5, np.float32(2.5), 3 + 4j, np.complex64(5 + 6j), out))
    assert out.tolist() == [1.5, 2.5, 3, 4, 5, 6]


def test_structs_by_value_and_in_arrays(widths: RawModule) -> None:
    pair = np.dtype([("a", np.int32), ("b", np.float64)], align=True)
    pairs = np.array([(1, 0.5), (2, 0.25)], pair)
    matrix = np.arange(16, dtype=np.float32).view(np.dtype([("value", np.float32, (4, 4))]))
    out = np.zeros(3)
    widths.get_function("structs")((1,), (1,), (pairs[0], ByValue(matrix), pairs, out))
    assert out.tolist() == [1.5, 6.0, 2.25]


def test_none_and_pointers(widths: RawModule) -> None:
    out = np.zeros(2, np.int64)
    value = np.full(3, 9.0)

    class Pointer:
        ptr = value[1:].ctypes.data

    widths.get_function("pointers")((1,), (1,), (None, Pointer(), out))
    assert out.tolist() == [1, 9]


@pytest.mark.parametrize("value", ["text", [1], {}])
def test_values_that_no_kernel_takes(widths: RawModule, value: object) -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        widths.get_function("pointers")((1,), (1,), (value, None, None))


def test_too_few_arguments_are_counted(widths: RawModule) -> None:
    with pytest.raises(TypeError, match="'pointers' takes 3 arguments, but 1 were given"):
        widths.get_function("pointers")((1,), (1,), (None,))


def test_an_int_beyond_64_bits(widths: RawModule) -> None:
    with pytest.raises(OverflowError):
        widths.get_function("pointers")((1,), (1,), (2**64, None, None))


def test_a_host_array_by_value_has_one_element() -> None:
    with pytest.raises(TypeError, match="of size one can be passed by value"):
        ByValue(np.zeros(2))


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [((1,), (1025,), 0), ((1,), (1, 1, 65), 0), ((1, 65536), (1,), 0), ((1,), (1,), 49153)],
)
def test_launches_that_no_gpu_would_take(
    widths: RawModule, grid: tuple[int, ...], block: tuple[int, ...], shared: int
) -> None:
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_INVALID_VALUE"):
        widths.get_function("pointers")(grid, block, (None, None, None), shared_mem=shared)


def test_grid_and_block_are_tuples(widths: RawModule) -> None:
    with pytest.raises(TypeError, match="expected tuple, got int"):
        widths.get_function("pointers")(1, (1,), (None, None, None))  # type: ignore[arg-type]


MISC = r"""
#ifndef PRECISION
#error precision not supported
#endif
#if 0
extern "C" __global__ void dropped() {}
#endif
#define MAKE(name, value) extern "C" __global__ void name(int* out) { *out = value; }
MAKE(made_by_macro, 5)
extern "C" __global__ void speak(int n) { printf("thread %d of %d\n", threadIdx.x, n); }
extern "C" __global__ void check(int n) { int unused; assert(threadIdx.x != n); }
extern "C" __global__ void dynamic(float* out) {
    extern __shared__ float s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def misc() -> RawModule:
    return RawModule(code=MISC, options=("-DPRECISION=2", "--use_fast_math", "-arch=sm_90"))


def test_a_kernel_that_a_macro_makes(misc: RawModule) -> None:
    out = np.zeros(1, np.int32)
    misc.get_function("made_by_macro")((1,), (1,), (out,))
    assert out[0] == 5


def test_a_kernel_that_the_preprocessor_drops(misc: RawModule) -> None:
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_NOT_FOUND"):
        misc.get_function("dropped")


def test_printf_reaches_the_sink_in_order(misc: RawModule, heard: list[str]) -> None:
    misc.get_function("speak")((1,), (3,), (np.int32(3),))
    assert heard == ["thread 0 of 3\nthread 1 of 3\nthread 2 of 3\n"]


def test_a_failed_assertion_names_thread_and_text_and_the_device_goes_on(misc: RawModule, heard: list[str]) -> None:
    check = misc.get_function("check")
    with pytest.raises(CUDADriverError, match=r"CUDA_ERROR_ASSERT.*thread: \[2,0,0\].*threadIdx.x != n"):
        check((1,), (4,), (np.int32(2),))
    check((1,), (4,), (np.int32(9),))


def test_dynamic_shared_memory_up_to_the_attribute(misc: RawModule) -> None:
    dynamic = misc.get_function("dynamic")
    out = np.zeros(64, np.float32)
    dynamic((1,), (64,), (out,), shared_mem=256)
    np.testing.assert_array_equal(out, np.arange(64)[::-1])
    dynamic.max_dynamic_shared_size_bytes = 100_000
    dynamic((1,), (64,), (out,), shared_mem=100_000)
    with pytest.raises(CUDADriverError):
        dynamic.max_dynamic_shared_size_bytes = 300_000


def test_attributes(misc: RawModule) -> None:
    kernel = misc.get_function("speak")
    assert kernel.attributes["max_threads_per_block"] == 1024
    assert kernel.attributes["max_dynamic_shared_size_bytes"] == 49152
    assert kernel.shared_size_bytes == 0
    assert kernel.num_regs > 0
    kernel.preferred_shared_memory_carveout = 50
    assert kernel.preferred_shared_memory_carveout == 50


def test_the_compilers_text_is_the_error(misc: RawModule) -> None:
    with pytest.raises(CompileException, match="precision not supported"):
        RawModule(code=MISC).get_function("speak")
    broken = RawKernel('extern "C" __global__ void f() { undefined_thing; }', "f")
    with pytest.raises(CompileException, match=r"kernel.cu:1:\d+: error: .*undefined_thing") as caught:
        broken((1,), (1,), ())
    assert "name expressions" not in str(caught.value)
    report = io.StringIO()
    caught.value.dump(report)
    assert "1 extern" in report.getvalue()


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        ('#include "nowhere.h"\n', (), 'cannot open source file "nowhere.h"'),
        ("", ("--no-such-option",), "unrecognized option '--no-such-option'"),
        ("__global__ void k() {", (), "error"),
        ('extern "C" __global__ void k(int* x) { asm("mov.u32 %0, %laneid;" : "=r"(*x)); }', (), "inline PTX"),
    ],
)
def test_sources_that_do_not_compile(code: str, options: tuple[str, ...], text: str) -> None:
    with pytest.raises(CompileException, match=text):
        RawModule(code=code, options=options).compile()


def test_warnings_go_to_the_log(fresh_cache) -> None:
    log = io.StringIO()
    RawModule(code=MISC, options=("-DPRECISION=2",)).compile(log_stream=log)
    assert "warning" in log.getvalue()
    assert "unused" in log.getvalue()


def test_constructors_refuse_what_cupy_refuses(tmp_path) -> None:
    with pytest.raises(TypeError, match="Exactly one of"):
        RawModule()
    with pytest.raises(TypeError, match="Exactly one of"):
        RawModule(code="", path="x.cubin")
    with pytest.raises(ValueError, match="nvrtc"):
        RawModule(code="", backend="nvcc", name_expressions=["f<int>"])
    with pytest.raises(TypeError, match="expected tuple, got list"):
        RawKernel("", "f", options=["-DX"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected str, got int"):
        RawKernel(3, "f")  # type: ignore[arg-type]
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_FILE_NOT_FOUND"):
        RawModule(path=OwnFile(str(tmp_path / "none.cubin"))).get_function("f")
    (tmp_path / "some.cubin").write_bytes(b"\x7fELF")
    with pytest.raises(CUDADriverError, match="code for a GPU"):
        RawModule(path=OwnFile(str(tmp_path / "some.cubin"))).get_function("f")


def test_cucomplex_with_and_without_translation() -> None:
    code = r"""
    #include <cuComplex.h>
    extern "C" __global__ void f(cuDoubleComplex* a, cuDoubleComplex* b, cuDoubleComplex* out, cuComplex* low) {
        int i = threadIdx.x;
        out[i] = cuCadd(cuCmul(a[i], b[i]), cuCdiv(cuConj(a[i]), b[i]));
        low[i] = cuComplexDoubleToFloat(make_cuDoubleComplex(cuCabs(a[i]), -3. * cuCimag(b[i])));
    }
    """
    rng = np.random.default_rng(1)
    a, b = (rng.random(8) + 1j * rng.random(8) for _ in range(2))
    for translate in (False, True):
        out, low = np.zeros(8, np.complex128), np.zeros(8, np.complex64)
        RawKernel(code, "f", translate_cucomplex=translate)((1,), (8,), (a, b, out, low))
        np.testing.assert_allclose(out, a * b + a.conj() / b, rtol=1e-14)
        np.testing.assert_allclose(low, np.abs(a) - 3j * b.imag, rtol=1e-6)


CHILDREN = r"""
template <typename T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void fill(float* x, int n, double value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value + i;
}
extern "C" __global__ void parent(float* x, int n, int part) {
    int t = threadIdx.x;
    if (t < n / part) {
        fill<<<1, part>>>(x + t * part, part, t);
        twice<float><<<dim3(1), dim3(part)>>>(x + t * part);
    }
}
"""


def test_kernels_launch_kernels_in_code_that_is_linked() -> None:
    x = np.zeros(169, np.float32)
    RawKernel(CHILDREN, "parent", options=("-dc",))((1,), (13,), (x, np.int32(169), np.int32(13)))
    np.testing.assert_array_equal(x.reshape(13, 13), 2 * (np.arange(13)[:, None] + np.arange(13)))
    with pytest.raises(CompileException):
        RawKernel(CHILDREN, "parent")((1,), (13,), (x, 169, 13))


def test_a_source_of_older_cupy_has_float16_from_carray() -> None:
    """Up to CuPy 13 ``carray.cuh`` defined the type itself, and published kernels include nothing else for it."""
    source = r"""
    #include "cupy/carray.cuh"
    extern "C" __global__ void widen(const float16* x, float* y) { y[threadIdx.x] = float(x[threadIdx.x]); }
    """
    wide = np.zeros(4, np.float32)
    RawKernel(source, "widen")((1,), (4,), (np.arange(4, dtype=np.float16), wide))
    assert wide.tolist() == [0, 1, 2, 3]
