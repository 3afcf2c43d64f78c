"""Options that only steer the code pass; those that name files, folders or tools are refused with the reason."""

from __future__ import annotations

import pytest

from gpu_backend.devices.compiling.options import RefusedOptionError, UnknownOptionError, checked_options


def passed(*options: str, folder: str = "") -> list[tuple[str, str | None]]:
    return [tuple(one) for one in checked_options(options, lambda name: name == folder)]  # type: ignore[misc]


@pytest.mark.parametrize(
    "option",
    ["-std=c++17", "--std=c++20", "-arch=sm_90", "--gpu-architecture=compute_90a",
     "-gencode=arch=compute_80,code=sm_80",
     "--maxrregcount=64", "--fmad=false", "-ftz=true", "--use_fast_math", "-lineinfo", "-G", "-w", "-rdc=true", "-dc",
     "--device-c", "-dlto", "--restrict", "--extra-device-vectorization", "-default-device", "-Xptxas=-v",
     "--ptxas-options=-O3,-v", "--diag-suppress=177,550", "--minimal", "--split-compile=0", "-DCUPY_USE_JITIFY",
     "-DCUB_DISABLE_BF16_SUPPORT", "--device-as-default-execution-space", "-include=jitify_preinclude.h", ""],
)  # fmt: skip
def test_options_that_steer_the_code(option: str) -> None:
    passed(option)


def test_macros_and_values_that_follow_as_the_next_option() -> None:
    assert passed("-D", "N=4", "-DM", "--define-macro=F(x)=x", "-U", "N", "-arch", "sm_90") == [
        ("define-macro", "N=4"), ("define-macro", "M"), ("define-macro", "F(x)=x"), ("undefine-macro", "N"),
        ("arch", "sm_90"),
    ]  # fmt: skip


@pytest.mark.parametrize("folder", ["/usr/local/cuda/include", "/opt/cuda-12.8/targets/x86_64-linux/include/",
                                    "/v/lib/python3.12/site-packages/cupy/_core/include",
                                    "/v/lib/python3.12/site-packages/nvidia/cuda_runtime/include"])  # fmt: skip
def test_folders_of_cuda_may_be_named(folder: str) -> None:
    assert passed(f"-I{folder}", f"--include-path={folder}", "-I", folder) == [("include-path", folder)] * 3


def test_folders_that_cupy_passes_may_be_named() -> None:
    assert passed("-I/there", folder="/there") == [("include-path", "/there")]


@pytest.mark.parametrize(
    "option",
    ["-include=/etc/passwd", "-include", "--pre-include=x", "-I/etc", "-I", "--include-path=.",
     "-I/x/cuda/include/../../y",
     "-o", "-o/tmp/x", "--output-file=x", "--keep", "--keep-dir=/tmp", "-time=x", "--time=/tmp/x", "--pch",
     "--create-pch=/tmp/x", "--use-pch=/tmp/x", "--pch-dir=/tmp", "--options-file=x", "-optf",
     "--fdevice-time-trace=/tmp/x",
     "-Xcompiler=-B/tmp", "--compiler-options=-fplugin=x", "-Xlinker=x", "-ccbin=/tmp/x", "--use-local-env", "-L/tmp",
     "-lfoo", "-isystem=/x", "-DA=1 -include /etc/passwd", "-DA=1\n#include", "-DA=@x -I/etc", "-D@x", "-D",
     "-D1", "-UA=1",
     "--dump-callgraph"],
)  # fmt: skip
def test_options_about_files_are_refused_with_the_reason(option: str) -> None:
    with pytest.raises(
        RefusedOptionError, match=r"^error: the option .+(?:leave it out|into the source|-DNAME|no option has)"
    ):
        passed(option)


@pytest.mark.parametrize(
    "option", ["--bogus", "@file", "kernel.cu", "-fplugin=/tmp/x.so", "-wrapper", "-Xptxas=-o,/tmp/x",
               "-Xptxas=--options-file=x",
               "-arch=../x", "--diag-suppress=x", "-std=/x", "-B/tmp", "--", "-"],
)  # fmt: skip
def test_what_is_no_option_is_refused_as_nvrtc_does(option: str) -> None:
    with pytest.raises(UnknownOptionError, match="unrecognized option"):
        passed(option)
