"""Sources that would bring in files are refused, in whatever way they say it; others pass."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_backend.devices.compiling.headers import is_served
from gpu_backend.devices.compiling.sources import RefusedSourceError, check_source

_CONTENT = "int what_the_secret_file_holds;"


@pytest.mark.parametrize(
    "source",
    [
        "#include <cupy/complex.cuh>\nint x;",
        '#include "cupy/carray.cuh"',
        "# /* of CUDA */ include /**/ <cuda_fp16.h> // yes",
        "#include <cub/block/block_reduce.cuh>\r\n#include <cuda/std/mdspan>\r\n",
        "#include <curand_kernel.h>\n#include <type_traits>",
        '// #include "my.h"\nint x;',
        '/* once: #include "../my.h" */ int x;',
        'const char* s = "#include \\"x\\"";',
        "#ifdef __has_include\n#endif",
        "#if defined(__has_include) && __has_include(<cuda/std/complex>)\n#endif",
        "#ifndef __CUDACC_RTC__\n#include <cstdio>\n#endif",
        '#line 3 "kern.cu"\n#line 7\n#line 8 // eight\n',
        "#pragma unroll\n#define STR(x) #x\n#define CAT(a, b) a ## b",
        "x = a # 3;",
        "#error it's not here",
        "int a = 1'000'000; char c = 'x'; const char* r = R\"(raw)\";",
        "",
    ],
)
def test_sources_of_kernels_pass(source: str) -> None:
    check_source(source)


@pytest.mark.parametrize(
    "source",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        "#include <../x.h>",
        "#include <cuda/../../x>",
        "#include <cuda//x>",
        '#include "x.h"',
        '#include "x.h',
        '#\\\ninclude "x"',
        '#inc\\\nlude "x"',
        '#inc\\ \t\nlude "x"',
        '#inc\\\r\nlude "x"',
        '%:include "x"',
        '??=include "x"',
        '#def??/\nine A\n#include "x"',
        '#define X "y"\n#include X',
        '# /* \n */ include_next "a.h"',
        '#import "x"',
        '#embed "x"',
        '/* a */ #include "x"',
        'S(\n#include "secret.key"\n)',
        'R"(" \n#include "x"\n)"',
        'don\'t\n#include "x"',
        "int a = 1'0; /*'*/\n#include \"x\"",
        '// a \\ \n#include "x"',
        '#if __has_include("/etc/passwd")\n#endif',
        "#if __has_include_next(<x>)\n#endif",
        '#if __has_embed("x")\n#endif',
        "#define H __has_include\n",
        "#define N <x>\n#if __has_include(N)\n#endif",
        '_Pragma("GCC pch_preprocess \\"x\\"")',
        '#pragma GCC dependency "x"',
        '#pragma include_alias("a", "b")',
        'asm(".incbin \\"/x\\"");',
        'asm(".include \\"/x\\"");',
        '#line 5 "/etc/passwd"\n',
        '#line 5 "\\057etc\\057passwd"\n',
        '# 5 "/etc/passwd"\n',
        '#define L 5 "/etc/passwd"\n#line L\n',
        "#line 5 F\n",
        'int\0x;\n#include "x"',
    ],
)
def test_sources_that_bring_in_files_are_refused(source: str) -> None:
    with pytest.raises(RefusedSourceError, match="error: "):
        check_source(source)


def test_a_refusal_says_what_to_do_in_a_compilers_words() -> None:
    with pytest.raises(RefusedSourceError) as refused:
        check_source('#include "mine.h"\n')
    assert 'cannot open source file "mine.h"' in str(refused.value)
    assert "put the text of a header of your own into the source" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "served"),
    [("math.h", True), ("cuComplex.h", True), ("nvfunctional", True), ("unistd.h", False), ("fstream", False),
     ("/cuda.h", False), ("cuda.h/", False), ("", False), ("cupy/.hidden", False), ("./cuda.h", False),
     ("linux/x.h", False)],
)  # fmt: skip
def test_which_headers_are_served(name: str, served: bool) -> None:
    assert is_served(name) is served


_GAPS = st.lists(st.sampled_from([" ", "\t", "\\\n", "/**/", "/* * / */", "/*\n*/"]), max_size=4).map("".join)


@given(_GAPS, _GAPS, _GAPS, st.sampled_from(["#", "%:"]), st.sampled_from(["include", "import", "include_next"]))
def test_no_gap_hides_a_directive(before: str, within: str, behind: str, mark: str, word: str) -> None:
    with pytest.raises(RefusedSourceError):
        check_source(f'int a;\n{before}{mark}{within}{word}{behind}"secret.h"\n')


@given(st.integers(1, 6), st.sampled_from(["\\\n", "\\\r\n", "\\ \n"]))
def test_no_splice_within_a_word_hides_it(place: int, splice: str) -> None:
    word = "include"
    with pytest.raises(RefusedSourceError):
        check_source(f'#{word[:place]}{splice}{word[place:]} "secret.h"')


_PIECES = [
    '#include "secret.h"', "#", "include", '"secret.h"', "<secret.h>", "%:", "??=", "??/", "\n", "\n", "\n", " ",
    "\\\n", "\\ \n", "\r\n", "/*", "*/", "//", '"', "'", 'R"(', ')"', 'R"x(', ')x"', "\\", "1'0", "x", "#define X ",
    "X", "#if 0", "#endif", "#error don't", "L'", "##", "defined", "#include X", "#line 1", "_Pragma(", ")", "#import",
    "#include_next",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler to compare with")
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join), st.sampled_from(["c++17", "c++98", "gnu++98"]))
def test_no_compiler_reads_a_file_for_what_passes(tmp_path: Path, source: str, standard: str) -> None:
    try:
        check_source(source)
    except RefusedSourceError:
        return
    (tmp_path / "secret.h").write_text(_CONTENT)
    (tmp_path / "kernel.cpp").write_text(source, newline="")
    command = ["g++", "-E", f"-std={standard}", "-I", str(tmp_path), "kernel.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert _CONTENT not in done.stdout
