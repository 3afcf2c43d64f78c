"""Device functions against NumPy, SciPy and Python: math, intrinsics, half, complex, atomics of each type."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gpu_backend.devices.cpu.kernels import CompileException, ElementwiseKernel, RawKernel, RawModule

FUNCTIONS = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "rcbrt": lambda x: 1 / np.cbrt(x),
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: 10.0**x,
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
    "erfcx": scipy.special.erfcx, "tgamma": scipy.special.gamma, "lgamma": scipy.special.gammaln,
    "normcdf": scipy.special.ndtr, "cyl_bessel_i0": scipy.special.i0, "cyl_bessel_i1": scipy.special.i1,
    "j0": scipy.special.j0, "j1": scipy.special.j1, "y0": scipy.special.y0, "y1": scipy.special.y1,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2)), "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2)),
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "round": lambda x: np.floor(x + 0.5), "fabs": np.abs, "abs": np.abs,
}  # fmt: skip


def test_functions_of_one_number_in_both_widths() -> None:
    names = list(FUNCTIONS)
    cases = "".join(f"case {n}: y = {name}(x); break;" for n, name in enumerate(names))
    kernel = ElementwiseKernel("T x, int32 which", "T y", f"switch (which) {{ {cases} }}", "functions")
    x = np.linspace(0.01, 20, 50)
    for which, name in enumerate(names):
        expected = FUNCTIONS[name](x)
        np.testing.assert_allclose(kernel(x, which), expected, rtol=2e-13, atol=1e-13, err_msg=name)
        low = kernel(x.astype(np.float32), which)
        assert low.dtype == np.float32
        np.testing.assert_allclose(low, FUNCTIONS[name](x.astype(np.float32).astype(float)), rtol=2e-5, atol=2e-6)


def test_inverse_error_functions_to_the_ends() -> None:
    kernel = ElementwiseKernel(
        "T p", "T a, T b, T c", "a = erfinv(2 * p - 1); b = erfcinv(p); c = normcdfinv(p);", "inv"
    )
    p = np.array([1e-300, 1e-100, 1e-20, 1e-5, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-9, 1.0])
    a, b, c = kernel(p)
    np.testing.assert_allclose(a, scipy.special.erfinv(2 * p - 1), rtol=1e-9)
    np.testing.assert_allclose(b, scipy.special.erfcinv(p), rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(c, scipy.special.ndtri(p), rtol=1e-9, atol=1e-15)


INTRINSICS = r"""
extern "C" __global__ void integers(const int* x, const int* y, long long* out) {
    int i = threadIdx.x, a = x[i], b = y[i];
    unsigned u = a, v = b;
    long long w = ((long long)a << 32) ^ (unsigned)b;
    long long values[] = {
        __popc(u), __clz(a), __ffs(a), (long long)__brev(u), __popcll(w), __clzll(w), __ffsll(w),
        (long long)__brevll(w), __mulhi(a, b), (long long)__umulhi(u, v), __mul24(a, b),
        (long long)__byte_perm(u, v, 0x7531),
        (long long)__funnelshift_l(u, v, 5), (long long)__funnelshift_r(u, v, 5), (long long)__sad(a, b, 3u),
        __hadd(a, b), min(a, b), (long long)max(u, v), abs(a), __dp4a(a, b, 1)};
    for (int k = 0; k < 20; ++k) out[i * 20 + k] = values[k];
}
extern "C" __global__ void conversions(const double* x, long long* out) {
    double d = x[threadIdx.x];
    float f = (float)d;
    long long values[] = {__double2int_rn(d), __double2int_rz(d), __double2int_rd(d), __double2int_ru(d),
                          (long long)__float2uint_rz(f), __double2ll_rz(d), (long long)__float2int_rn(f),
                          __longlong_as_double(__double_as_longlong(d)) == d || d != d,
                          __float_as_int(__int_as_float(__float_as_int(f))) == __float_as_int(f),
                          __hiloint2double(__double2hiint(d), __double2loint(d)) == d || d != d};
    for (int k = 0; k < 10; ++k) out[threadIdx.x * 10 + k] = values[k];
}
"""


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


@pytest.fixture(scope="module")
def intrinsics() -> RawModule:
    return RawModule(code=INTRINSICS)


int32 = st.integers(-(2**31), 2**31 - 1)


@settings(max_examples=60, deadline=None)
@given(a=int32, b=int32)
def test_integer_intrinsics(intrinsics: RawModule, a: int, b: int) -> None:
    out = np.zeros(20, np.int64)
    x, y = np.array([a], np.int32), np.array([b], np.int32)
    intrinsics.get_function("integers")((1,), (1,), (x, y, out))
    u, v = a & 0xFFFFFFFF, b & 0xFFFFFFFF
    w = u << 32 ^ v
    wide = v << 32 | u
    octets = wide.to_bytes(8, "little")
    pairs = [(signed(u >> s & 255, 8), signed(v >> s & 255, 8)) for s in (0, 8, 16, 24)]
    expected = [
        u.bit_count(), 32 - u.bit_length(), (u & -u).bit_length(), int(f"{u:032b}"[::-1], 2), w.bit_count(),
        64 - w.bit_length(), (w & -w).bit_length(), signed(int(f"{w:064b}"[::-1], 2), 64), a * b >> 32, u * v >> 32,
        signed(signed(u, 24) * signed(v, 24)), int.from_bytes(octets[1::2], "little"), wide << 5 >> 32 & 0xFFFFFFFF,
        wide >> 5 & 0xFFFFFFFF, abs(a - b) + 3 & 0xFFFFFFFF, a + b >> 1, min(a, b), max(u, v), signed(abs(a)),
        1 + sum(p * q for p, q in pairs),
    ]  # fmt: skip
    assert out.tolist() == expected


def test_conversions_round_and_saturate(intrinsics: RawModule) -> None:
    x = np.array([2.5, -2.5, 3.7, 1e30, -1e30, np.nan, 0.0, 4e9])
    out = np.zeros((x.size, 10), np.int64)
    intrinsics.get_function("conversions")((1,), (x.size,), (x, out))
    most, least = 2**31 - 1, -(2**31)
    assert out[:, 0].tolist() == [2, -2, 4, most, least, 0, 0, most]
    assert out[:, 1].tolist() == [2, -2, 3, most, least, 0, 0, most]
    assert out[:, 2].tolist() == [2, -3, 3, most, least, 0, 0, most]
    assert out[:, 3].tolist() == [3, -2, 4, most, least, 0, 0, most]
    assert out[:, 4].tolist() == [2, 0, 3, 2**32 - 1, 0, 0, 0, 4_000_000_000]
    assert out[:, 5].tolist() == [2, -2, 3, 2**63 - 1, -(2**63), 0, 0, 4_000_000_000]
    assert (out[:, 7:] == 1).all()


floats = hnp.arrays(np.float32, 64, elements=st.floats(width=32, allow_subnormal=True))


@pytest.fixture(scope="module")
def halves() -> ElementwiseKernel:
    return ElementwiseKernel(
        "float32 x", "float16 y, float32 z, float16 sum", "y = x; z = y; sum = y; sum += y;", "halves"
    )


@settings(max_examples=60, deadline=None)
@given(x=floats)
def test_half_rounds_as_numpy_does(halves: ElementwiseKernel, x: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
        y, z, total = halves(x)
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_array_equal(z, expected.astype(np.float32))
        np.testing.assert_array_equal(total, expected + expected)


def test_half_all_values_and_header() -> None:
    kernel = RawKernel(
        r"""#include <cuda_fp16.h>
        extern "C" __global__ void f(const __half* x, float* wide, __half* back, half* doubled) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            wide[i] = __half2float(x[i]);
            back[i] = __float2half(wide[i]);
            doubled[i] = __hadd(x[i], x[i]);
        }""",
        "f",
    )
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    wide, back, doubled = np.zeros(65536, np.float32), np.zeros(65536, np.float16), np.zeros(65536, np.float16)
    kernel((64,), (1024,), (x, wide, back, doubled))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(wide, x.astype(np.float32))
        np.testing.assert_array_equal(back, x)
        np.testing.assert_array_equal(doubled, x + x)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_functions(dtype: type) -> None:
    names = "sqrt exp log sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh log10".split()
    cases = "".join(f"case {n}: y = {name}(x); break;" for n, name in enumerate(names))
    kernel = ElementwiseKernel("T x, int32 which", "T y", f"switch (which) {{ {cases} }}", "complex_functions")
    rng = np.random.default_rng(2)
    x = (rng.normal(size=40) + 1j * rng.normal(size=40)).astype(dtype)
    tolerance = 1e-4 if dtype is np.complex64 else 1e-12
    numpy_names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
                   "atanh": "arctanh"}  # fmt: skip
    for which, name in enumerate(names):
        expected = getattr(np, numpy_names.get(name, name))(x)
        np.testing.assert_allclose(kernel(x, which), expected, rtol=tolerance, err_msg=name)


def test_complex_arithmetic_and_mixed_operands() -> None:
    kernel = ElementwiseKernel(
        "complex128 a, complex128 b, float64 r", "complex128 y, float64 z",
        "y = (a * b + r) / (b - 2.0) * conj(a) - pow(a, 3); y += r; y *= b;"
        "z = abs(a) + norm(b) + arg(a) + real(b) + a.imag()",
        "arithmetic",
    )  # fmt: skip
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=30) + 1j * rng.normal(size=30) for _ in range(2))
    r = rng.normal(size=30)
    y, z = kernel(a, b, r)
    np.testing.assert_allclose(y, ((a * b + r) / (b - 2) * a.conj() - a**3 + r) * b, rtol=1e-12)
    np.testing.assert_allclose(z, np.abs(a) + np.abs(b) ** 2 + np.angle(a) + b.real + a.imag, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_quotients_and_sizes_are_numpys_to_the_last_bit(dtype: type) -> None:
    rng = np.random.default_rng(4)
    a, b = ((rng.normal(size=3000) + 1j * rng.normal(size=3000)).astype(dtype) for _ in range(2))
    b[:3] = [0, 1, 1j]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ElementwiseKernel("T a, T b", "T c", "c = a / b", "quotient")(a, b), a / b)
    a[:5] = [0, np.inf, complex(np.nan, np.inf), complex(np.nan, 1), 1e-40]
    size = np.empty(a.shape, a.real.dtype)
    np.testing.assert_array_equal(ElementwiseKernel("T a", "R c", "c = abs(a)", "size")(a, size), np.abs(a))


ATOMICS = {
    "int32": "int", "uint32": "unsigned", "int64": "long long", "uint64": "unsigned long long", "float32": "float",
    "float64": "double",
}  # fmt: skip


def test_atomics_of_each_type() -> None:
    code = "".join(
        f"""extern "C" __global__ void of_{name}(const {kind}* x, {kind}* out) {{
            {kind} v = x[threadIdx.x];
            atomicAdd(&out[0], v); atomicMin(&out[1], v); atomicMax(&out[2], v); atomicSub(&out[3], v);
        }}\n"""
        for name, kind in ATOMICS.items()
    )
    code += r"""extern "C" __global__ void bits(const unsigned* x, unsigned* out) {
        unsigned v = x[threadIdx.x];
        atomicAnd(&out[0], v); atomicOr(&out[1], v); atomicXor(&out[2], v);
        atomicInc(&out[3], 5); atomicDec(&out[4], 5); atomicExch(&out[5], v); atomicCAS(&out[6], 0, v);
    }"""
    module = RawModule(code=code)
    for name in ATOMICS:
        x = np.arange(1, 65).astype(name)
        out = np.array([0, 100, 0, 3000], name)
        module.get_function(f"of_{name}")((1,), (64,), (x, out))
        assert out.tolist() == [2080, 1, 64, 920], name
    x = np.arange(1, 65, dtype=np.uint32)
    out = np.array([0xFFFF, 0, 0, 0, 0, 0, 0], np.uint32)
    module.get_function("bits")((1,), (64,), (x, out))
    steps = 0
    for _ in range(64):
        steps = 0 if steps >= 5 else steps + 1
    falls = 0
    for _ in range(64):
        falls = 5 if falls == 0 or falls > 5 else falls - 1
    assert out.tolist() == [0, 127, int(np.bitwise_xor.reduce(x)), steps, falls, 64, 1]


def test_vectors_and_constants() -> None:
    kernel = RawKernel(
        r"""#include <math_constants.h>
        #include <stdint.h>
        __device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
        extern "C" __global__ void f(const float4* x, float* out, const float3* p) {
            float4 a = x[0];
            int2 b = make_int2(3, 4);
            float3 c = p[0] + p[1];
            out[0] = a.x + a.y + a.z + a.w + b.x * b.y;
            out[1] = c.x * c.y * c.z;
            out[2] = sizeof(float3) * 100 + alignof(double2);
            out[3] = CUDART_PI_F;
            out[4] = isinf(CUDART_INF_F) && isnan(CUDART_NAN) && sizeof(uint64_t) == 8;
        }""",
        "f",
    )
    out = np.zeros(5, np.float32)
    kernel((1,), (1,), (np.arange(4, dtype=np.float32), out, np.arange(6, dtype=np.float32)))
    np.testing.assert_allclose(out, [18, 3 * 5 * 7, 1216, math.pi, 1], rtol=1e-7)


def test_the_standard_library_can_be_included() -> None:
    kernel = RawModule(
        code=r"""
        #include <cuda/std/limits>
        #include <type_traits>
        #include <cmath>
        #include <algorithm>
        #include <cstdio>
        template <typename T, typename = typename std::enable_if<std::is_floating_point<T>::value>::type>
        __global__ void f(T* x) { x[0] = std::max(std::sqrt(x[0]), T(2)) + cuda::std::numeric_limits<T>::epsilon(); }
        """,
        name_expressions=("f<float>", "f<double>"),
    )
    x = np.array([16.0])
    kernel.get_function("f<double>")((1,), (1,), (x,))
    assert x[0] == 4.0 + np.finfo(float).eps


def test_names_that_a_gpu_leaves_to_kernels() -> None:
    code = """__constant__ float gamma = 2;
    __device__ double scalb(double x) { return x; }
    extern "C" __global__ void f(double* y) { const float M_PI = 3, M_E = 1; *y = gamma + scalb(1.0) + M_PI + M_E; }"""
    out = np.zeros(1)
    RawKernel(code, "f")((1,), (1,), (out,))
    assert out[0] == 7
    RawKernel(
        '__device__ int time[2] = {3, 4}; extern "C" __global__ void write(double* y) { *y = time[1]; }', "write"
    )((1,), (1,), (out,))
    assert out[0] == 4
    pi = '#include <math.h>\nextern "C" __global__ void f(double* y) { *y = M_PI; }'
    RawKernel(pi, "f")((1,), (1,), (out,))
    assert out[0] == np.pi
    with pytest.raises(CompileException, match="M_PI"):
        RawKernel(pi.partition("\n")[2], "f")((1,), (1,), (out,))
