"""What is read off CUDA sources and compile options."""

from __future__ import annotations

import pytest

from gpu_backend.devices.compiling.options import RefusedOptionError, UnknownOptionError
from gpu_backend.devices.cpu.kernels.options import translate_options
from gpu_backend.devices.cpu.kernels.source import blanked, find_kernels, translate

SOURCE = r"""
// __global__ void commented_out() {}
/* extern "C" { __global__ void this_too() {} */
#define MAKE(name) __global__ void name() {}
const char* text = "} {"; const char brace = '{';
const char* raw = R"x( } __global__ void in_text() { )x";
extern "C" {
__global__ void __launch_bounds__(256, 2) first(int x) { if (x) { } }
struct Inner { int a; __device__ void method() {} };
__device__ int helper() { return '}'; }
__global__ void declared_only(int);
}
namespace outer { inline namespace inner {
extern "C" __global__
void second(float* x)
{ }
}
__attribute__((noinline)) __global__ void third() {}
}
template <typename T, int N> static __global__ void fourth(T* x) {}
extern "C" __global__ void __attribute__((unused)) fifth(void (*callback)(int)) { }
"""


def test_kernels_with_their_linkage_and_namespaces() -> None:
    found = {name: tuple(kernel) for name, kernel in find_kernels(SOURCE).items()}
    assert found == {
        "first": ("first", "C"),
        "second": ("outer::inner::second", "C"),
        "third": ("outer::third", "C++"),
        "fourth": ("fourth", "template"),
        "fifth": ("fifth", "C"),
    }


def test_blanks_keep_the_lines() -> None:
    text = blanked(SOURCE)
    assert len(text) == len(SOURCE)
    assert text.count("\n") == SOURCE.count("\n")
    assert "this_too" not in text
    assert "in_text" not in text
    assert 'extern "C"' in text


@pytest.mark.parametrize(
    ("declaration", "reference"),
    [
        ("extern __shared__ float s[];", "float (&s)[] = *reinterpret_cast<float (*)[]>"),
        ("extern __shared__ __align__(16) unsigned char m[];", "unsigned char (&m)[]"),
        ("extern volatile __shared__ double t[][32];", "volatile double (&t)[][32]"),
        ("extern __shared__ T* p[];", "T* (&p)[]"),
    ],
)
def test_dynamic_shared_arrays_become_references(declaration: str, reference: str) -> None:
    assert reference in translate(declaration)


def test_other_declarations_stay() -> None:
    text = "__shared__ float s[4]; extern __device__ int x[];"
    assert translate(text) == text


def test_lines_stay_where_they_are() -> None:
    assert translate("a;\nextern __shared__\n  float s[];\nb;").split("\n").index("b;") == 3


def test_options_that_mean_something_here() -> None:
    given = ("-DA=1", "--define-macro=B", "-D", "C=x y", "-I/usr/local/cuda/include", "--std=c++20")
    wanted = "-std=c++20|-D|A=1|-D|B|-D|C=x y"
    assert translate_options(given) == tuple(wanted.split("|"))


@pytest.mark.parametrize(
    "option",
    ["--use_fast_math", "-arch=sm_80", "--gpu-architecture=compute_90", "--fmad=false", "-dc", "-lineinfo", "-O3",
     "--maxrregcount=32", "--Ofast-compile=min", "-no-cache", "-std=c++11", "--std=c++14", "-w",
     "--relocatable-device-code=true"],
)  # fmt: skip
def test_options_that_only_steer_a_gpu(option: str) -> None:
    assert translate_options((option,)) == ("-std=c++17",)


@pytest.mark.parametrize("option", ["--bogus", "-fplugin=/tmp/x.so", "-o/tmp/x", "-wrapper", "@file", "-Xlinker"])
def test_no_other_option_reaches_the_compiler(option: str) -> None:
    with pytest.raises((UnknownOptionError, RefusedOptionError), match=r"unrecognized option|no kernel of this pool"):
        translate_options((option,))
