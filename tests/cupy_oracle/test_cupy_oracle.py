"""What the oracle says agrees with what is known of native CuPy."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.opstream.surface import Ufunc, load
from tests.cupy_oracle import prototypes, stand_ins
from tests.cupy_oracle.oracle import Answer, Oracle, OracleDied, Raised
from tests.cupy_oracle.prototypes import Parameter
from tests.cupy_suite.sources import CannotFetch

_REPOSITORY = Path(__file__).parents[2]
_CYTHON = """
cdef extern from 'some.h':
    ctypedef void* Handle 'someHandle_t'
    ctypedef int Mode 'someMode_t'  # an enumeration
    int cuSomeCreate(Handle* handle, const Handle* other)
    int cuSome_bufferSize(Handle handle, Mode mode, float alpha,
                          const double* a, float* b, size_t* size)  # in two lines
ctypedef int (*F_nvOther)(driver.Event* event, void** place, int* count) noexcept nogil

cpdef use():
    status = cuSomeCreate(&handle, NULL)
    return cuSomeCreate(<Handle*>place, NULL)
"""


def test_prototypes_say_where_an_answer_is_written(tmp_path: Path) -> None:
    (tmp_path / "some.pyx").write_text(_CYTHON)
    by_value, pointer = Parameter("long"), Parameter("long")
    assert prototypes.read([tmp_path / "some.pyx"]) == {
        "cuSomeCreate": (Parameter("long", "handle"), pointer),
        "cuSome_bufferSize": (
            *(by_value, by_value, Parameter("float"), pointer, pointer),
            Parameter("long", "size_t"),
        ),
        "nvOther": (pointer, Parameter("long", "handle"), Parameter("long", "int")),
    }


def test_stand_ins_succeed_and_answer() -> None:
    known = {"cuMake": (Parameter("long", "handle"),), "cudaGetDeviceCount": (Parameter("long", "int"),)}
    text = stand_ins.source(["cuMake_v2", "cudaGetDeviceCount", "cuUnknown"], known)
    assert "int cuMake_v2(long a0) { if (a0) *(void **)a0 = (void *)4096; return 0; }" in text
    assert "int cudaGetDeviceCount(long a0) { if (a0) *(int *)a0 = (int)1; return 0; }" in text
    assert "int cuUnknown(void) { return 0; }" in text
    assert "libsome.so.3 { global: one; two; };" in stand_ins.version_script(
        {"two": "libsome.so.3", "one": "libsome.so.3", "bare": ""}
    )


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    try:
        made = Oracle()
    except CannotFetch as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with made:
        yield made


def laid_out(answer: Answer) -> list[tuple[object, ...]]:
    assert answer.result, answer
    return [(one.shape, one.strides, one.dtype) for one in answer.result.items or (answer.result,)]


@pytest.mark.cupy_suite
@pytest.mark.timeout(900)
class TestNative:
    """What is asked of native CuPy itself."""

    def test_ufuncs_have_the_types_that_were_described(self, oracle: Oracle) -> None:
        """The description was made of a CuPy with its libraries."""
        surface = load()
        described = {
            name: entry for name in surface if isinstance(entry := surface[name], Ufunc) and name.startswith("cupy.")
        }
        names = [name for name in described if name.count(".") == 1]
        assert len(names) > 80
        answer = oracle.ask(f"str({{name: eval(name).types for name in {names}}})")
        assert answer.result
        said = ast.literal_eval(ast.literal_eval(answer.result.value or ""))
        # the rows of bfloat16 were not described
        told = {name: [row for row in types if "E" not in row] for name, types in said.items()}
        assert told == {name: list(described[name].types) for name in names}

    @pytest.mark.parametrize("name", ["add", "divide", "power", "arctan2", "equal", "logical_and", "floor_divide"])
    def test_results_have_the_dtype_that_the_types_say(self, oracle: Oracle, name: str) -> None:
        entry = load()[f"cupy.{name}"]
        assert isinstance(entry, Ufunc)
        for types in [row for row in entry.types if "V" not in row]:  # of structures
            given, result = types.split("->")
            arrays = ", ".join(f"cupy.ones((2, 3), {char!r})" for char in given)
            size = np.dtype(result).itemsize
            expected = [((2, 3), (3 * size, size), np.dtype(result).str)]
            assert laid_out(oracle.ask(f"cupy.{name}({arrays})")) == expected

    def test_refusals_are_in_its_own_words(self, oracle: Oracle) -> None:
        """As the table of refused host arrays has them, which was read off a GPU."""
        for text in ("cupy.fft.fft(numpy.ones(3))", "cupyx.scipy.fft.rfftn(numpy.ones(3))"):
            assert oracle.ask(text).error == Raised("builtins.TypeError", "The input array a must be a cupy.ndarray")
        words = "Unsupported type <class 'numpy.ndarray'>"
        assert oracle.ask("cupy.outer(numpy.ones(3), cupy.ones(3))").error == Raised("builtins.TypeError", words)
        words = "Index 5 is out of bounds for axis 0 with size 3"
        assert oracle.ask("cupy.zeros(3)[5]").error == Raised("builtins.IndexError", words)

    def test_libraries_of_nvidia_are_stood_in_for(self, oracle: Oracle) -> None:
        """cuSOLVER, cuBLAS, cuFFT, cuRAND, cuSPARSE, Thrust and CUB, as CuPy lays their results out."""
        asked = {
            "cupy.linalg.eigh(cupy.ones((3, 3), 'f'))": [((3,), (4,), "<f4"), ((3, 3), (4, 12), "<f4")],
            "cupy.ones((4, 2, 3)) @ cupy.ones((3, 5))": [((4, 2, 5), (80, 40, 8), "<f8")],
            "cupy.fft.rfft(cupy.ones((2, 5), 'f'))": [((2, 3), (24, 8), "<c8")],
            "cupy.random.default_rng().standard_normal((2, 3))": [((2, 3), (24, 8), "<f8")],
            "(cupyx.scipy.sparse.eye(3, format='csr') @ cupy.ones((3, 2)))": [((3, 2), (8, 24), "<f8")],
            "cupy.lexsort(cupy.ones((2, 3)))": [((3,), (8,), "<i8")],
            "cupy.ones((3, 4), 'h').sum(0)": [((4,), (8,), "<i8")],
        }
        assert {text: laid_out(oracle.ask(text)) for text in asked} == asked

    def test_inference_agrees_with_it(self, oracle: Oracle) -> None:
        names = ["cupy.reshape", "cupy.stack", "cupy.matmul", "cupy.linalg.norm", "cupy.fft.irfft2", "cupy.ndarray.sum"]
        words = ["--run", "-m", "tests.cupy_oracle.claims", *names]
        path = os.pathsep.join([str(_REPOSITORY), *sys.path])
        ended = subprocess.run(
            [sys.executable, "-m", "tests.cupy_oracle", *words],
            cwd=_REPOSITORY, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
        judged, rest = ended.stdout.split(" ", 1)
        assert rest == "judged, 0 not told, 0 wrong\n"
        assert int(judged) > 50

    def test_what_depends_on_values_is_marked(self, oracle: Oracle) -> None:
        assert oracle.ask("cupy.nonzero(cupy.ones(3))").reads
        assert "not native's" in str(oracle.ask("cupy.nonzero(cupy.ones(3))"))
        assert not oracle.ask("cupy.ones(3) + 1").reads

    def test_warnings_are_told(self, oracle: Oracle) -> None:
        assert "ComplexWarning" in oracle.ask("cupy.ones(3, 'D').astype('d')").warnings[0]

    def test_a_process_that_dies_is_replaced(self, oracle: Oracle) -> None:
        with pytest.raises(OracleDied, match=r"os\._exit"):
            oracle.ask("import os; os._exit(3)")
        assert oracle.ask("cupy.ones(3).dtype.str").result
