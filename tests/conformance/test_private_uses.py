"""The list of what programs use beyond CuPy's documentation is true of the running surface, and of its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.cpu.device import CpuDevice
from gpu_backend.opstream import surface
from kernelproxy.namespace import bindings
from kernelproxy.namespace.module import RemoteModule
from kernelproxy.namespace.names import make
from kernelproxy.namespace.private_names import MODULES
from kernelproxy.namespace.private_uses import Use, absence, private_uses
from tests.conformance.in_process import notebook_on
from tests.published_uses.count import is_beyond_the_surface, uses

_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "private-names.md"


@pytest.fixture(scope="module", autouse=True)
def notebook() -> Iterator[None]:
    with notebook_on(CpuDevice()):
        yield


def find(qualname: str) -> Any:
    """Return what programs get under ``qualname``; the modules need not be those that `import` finds."""
    parts = qualname.split(".")
    described = surface.load()
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        name = bindings._PUBLIC.get(name, name)
        if name in bindings._PACKAGES and count < len(parts):
            return bindings._below(name, parts[count])
        if isinstance(described.get(name), surface.Module) or name in MODULES:
            found: Any = RemoteModule(name)
            for part in parts[count:]:
                found = getattr(found, part)
            return found
    raise AttributeError(qualname)


def matrix(form: str = "csr") -> Any:
    return make(f"cupyx.scipy.sparse.{form}_matrix")(make("cupy.array")(np.diag([1.0, 2.0, 0.0])))


def array() -> Any:
    return make("cupy.arange")(6.0).reshape(2, 3)


def memoize() -> None:
    calls: list[int] = []

    @find("cupy._util.memoize")()  # type: ignore[untyped-decorator]
    def kept(n: int) -> int:
        calls.append(n)
        return n

    assert (kept(1), kept(1), calls) == (1, 1, [1])


def elementwise_copy() -> None:
    target = make("cupy.zeros")((2, 3), "i4")
    find("cupy._core.elementwise_copy")(array(), target)
    assert target.get().tolist() == [[0, 1, 2], [3, 4, 5]]


def seed_seq() -> None:
    for name in ("XORWOW", "MRG32k3a", "Philox4x3210"):
        kind, rng = make(f"cupy.random.{name}"), make("cupy.random.default_rng")
        bits = kind(5)
        assert bits._seed_seq.entropy == 5
        assert kind.__module__ == "cupy.random._bit_generator"  # whence dask takes the package to compute with
        parts = [kind(seeds) for seeds in bits._seed_seq.spawn(2)]
        assert [part._seed_seq.spawn_key for part in parts] == [(0,), (1,)]
        drawn = [rng(part).random(3).get() for part in parts]
        assert not np.array_equal(*drawn)
        again = rng(kind(np.random.SeedSequence(5, spawn_key=(1,)))).random(3).get()
        assert np.array_equal(drawn[1], again)
    generator = rng(7)
    assert generator.bit_generator._seed_seq.entropy == 7
    generator.bit_generator = bits
    assert generator.bit_generator is bits
    assert rng(generator) is generator
    assert len({rng().bit_generator._seed_seq.entropy for _ in range(3)}) == 3


def setting(which: str) -> Callable[[], None]:
    def call() -> None:
        set_them, get_them = find(f"cupy._core.set_{which}_accelerators"), find(f"cupy._core.get_{which}_accelerators")
        before = get_them()
        set_them([])
        assert get_them() == []
        set_them(before)
        assert get_them() == before

    return call


def tril() -> None:
    full = make("cupy.ones")((3, 3))
    assert find("cupy.linalg._util._tril")(full, -1) is full
    assert full.get().tolist() == np.tril(np.ones((3, 3)), -1).tolist()
    stack = make("cupy.ones")((2, 3, 3))
    assert find("cupy.linalg._util._triu")(stack).get().tolist() == np.triu(np.ones((2, 3, 3))).tolist()


def flags() -> None:
    assert type(array().flags) is find("cupy._core.flags.Flags")


def contiguous() -> None:
    x = array()
    assert (x._c_contiguous, x._f_contiguous, x.T._c_contiguous, x.T._f_contiguous) == (True, False, False, True)


def set_shape_and_strides() -> None:
    x = array()
    window = x[1:].view()
    window._set_shape_and_strides((2, 2), (8, 8), True, True)
    assert window.get().tolist() == [[3, 4], [4, 5]]
    window._set_shape_and_strides((2,), (-24,), True, True)
    assert window.get().tolist() == [3, 0]
    for shape, strides in (((7,), (8,)), ((2,), (24,)), ((3,), (-24,)), ((2,), (1 << 62,)), ((2, 2), (8,))):
        with pytest.raises(ValueError, match=r"lead out of the 48 bytes|len\(shape\) != len\(strides\)"):
            window._set_shape_and_strides(shape, strides, True, True)
    assert window.get().tolist() == [3, 0]
    x._set_shape_and_strides((3,), (16,), True, True)
    assert x.get().tolist() == [0, 2, 4]
    with pytest.raises(TypeError):
        x._set_shape_and_strides((3,), (16,))  # CuPy's compiled method has no defaults


def argwhere() -> None:
    assert find("cupy._core._routines_indexing._ndarray_argwhere")(array() > 3).get().tolist() == [[1, 1], [1, 2]]


def result_of_a_measurement() -> None:
    made = find("cupyx.profiler._time._PerfCaseResult")("sum", np.array([[1e-3, 3e-3], [2e-3, 2e-3]]), (0,))
    assert made.cpu_times.tolist() == [1e-3, 3e-3]
    assert made.gpu_times.shape == (1, 2)
    assert str(made).startswith("sum                 :    CPU:  2000.000 us   +/- 1000.000 (min:  1000.000")
    assert "    GPU-0:  2000.000 us" in repr(made)


def swap() -> None:
    assert matrix()._swap(1, 2) == (1, 2) == matrix("csc")._swap(2, 1)
    assert not hasattr(matrix("coo"), "_swap")


def prepare_indices() -> None:
    i, j, rows, columns = matrix()._prepare_indices([0, -1], 2)
    assert (i.get().tolist(), j.get().tolist(), rows, columns) == ([0, -1], [2], 3, 3)
    for bad, words in ((3, r"index \(3\) out of range \(>= 3\)"), (-4, r"index \(-4\) out of range \(< -3\)")):
        with pytest.raises(IndexError, match=words):
            matrix()._prepare_indices(bad, 0)


@pytest.mark.filterwarnings("error")
def insert_many() -> None:
    for form, place in (("csr", (2, 1)), ("csc", (1, 2))):
        one = matrix(form)
        make_array = make("cupy.array")
        one._insert_many(make_array([2]), make_array([1]), make_array([9.0]))
        assert one.toarray().get()[place] == 9
        assert one.nnz == 3


def set_many() -> None:
    for form, place in (("csr", (1, 1)), ("csc", (1, 1))):
        one = matrix(form)
        one._set_many([1, 0], [1, 0], [7.0, 8.0])
        assert one.toarray().get()[place] == 7
        assert one.nnz == 2


def same(name: str, public: str) -> Callable[[], None]:
    def call() -> None:
        assert find(name) is make(public)

    return call


#: What is really called, of each name that the list says is served.
CALLS: dict[str, Callable[[], None]] = {
    "cupy._default_memory_pool": lambda: find("cupy._default_memory_pool").free_all_blocks(),
    "cupy._util.memoize": memoize,
    "cupy._core.elementwise_copy": elementwise_copy,
    "cupy.random.BitGenerator._seed_seq": seed_seq,
    "cupy._core._scalar.get_typename": lambda: _equal(find("cupy._core._scalar.get_typename")("f4"), "float"),
    "cupy._core.set_reduction_accelerators": setting("reduction"),
    "cupy._core.set_routine_accelerators": setting("routine"),
    "cupy._core.get_routine_accelerators": setting("routine"),
    "cupy_backends.cuda.api.runtime": lambda: _equal(find("cupy_backends.cuda.api.runtime").is_hip, False),
    "cupy._core.ElementwiseKernel": same("cupy._core.ElementwiseKernel", "cupy.ElementwiseKernel"),
    "cupy._core.core.ndarray": same("cupy._core.core.ndarray", "cupy.ndarray"),
    "cupy._core.flags.Flags": flags,
    "cupy._util.PerformanceWarning": lambda: _equal(find("cupy._util.PerformanceWarning").__mro__[1], RuntimeWarning),
    "cupy_backends.cuda.libs.cublas.CUBLAS_FILL_MODE_LOWER": lambda: _equal(
        find("cupy_backends.cuda.libs.cublas.CUBLAS_FILL_MODE_LOWER"), 0
    ),
    "cupy._core._accelerator.ACCELERATOR_CUB": lambda: _equal(find("cupy._core._accelerator.ACCELERATOR_CUB"), 1),
    "cupy._core._routines_indexing._ndarray_argwhere": argwhere,
    "cupy._core.internal._normalize_axis_index": lambda: _equal(
        find("cupy._core.internal._normalize_axis_index")(-1, 3), 2
    ),
    "cupy._core.internal._normalize_axis_indices": lambda: _equal(
        find("cupy._core.internal._normalize_axis_indices")((2, -3), 3), (0, 2)
    ),
    "cupy.linalg._util._tril": tril,
    "cupy.ndarray._c_contiguous": contiguous,
    "cupy.ndarray._f_contiguous": contiguous,
    "cupy.ndarray._set_shape_and_strides": set_shape_and_strides,
    "cupyx._runtime.get_runtime_info": same("cupyx._runtime.get_runtime_info", "cupyx.get_runtime_info"),
    "cupyx.profiler._time._PerfCaseResult": result_of_a_measurement,
    "cupyx.scipy.sparse._csr.csr_matrix": same("cupyx.scipy.sparse._csr.csr_matrix", "cupyx.scipy.sparse.csr_matrix"),
    "cupyx.scipy.sparse.csr_matrix._swap": swap,
    "cupyx.scipy.sparse.csr_matrix._prepare_indices": prepare_indices,
    "cupyx.scipy.sparse.csr_matrix._insert_many": insert_many,
    "cupyx.scipy.sparse.csr_matrix._set_many": set_many,
}


def _equal(found: Any, wanted: Any) -> None:
    assert found == wanted


def now(word: str) -> list[Use]:
    return [one for one in private_uses() if one.now == word]


def test_all_that_is_served_is_called() -> None:
    assert {one.name for one in now("served")} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_served_does_what_cupys_does(name: str) -> None:
    CALLS[name]()


@pytest.mark.parametrize("use", now("refused"), ids=lambda use: use.name)
def test_what_is_refused_says_why(use: Use) -> None:
    with pytest.raises(AttributeError) as refused:
        find(use.name)()
    assert use.why in str(refused.value) or "is not served: it takes a library's handle" in str(refused.value)


@pytest.mark.parametrize("use", now("gone"), ids=lambda use: use.name)
def test_what_cupy_has_no_more_is_not_here_either(use: Use) -> None:
    assert not surface.load().is_public(use.name)
    with pytest.raises(AttributeError, match="has none: "):
        find(use.name)


def test_other_names_are_just_not_there() -> None:
    assert absence("cupy._core.nothing") == "module 'cupy._core' has no attribute 'nothing'"


def test_the_list_has_each_name_once_with_counts_that_can_be() -> None:
    names = [one.name for one in private_uses()]
    assert len(names) == len(set(names))
    for one in private_uses():
        assert one.repositories <= one.uses
        assert bool(one.repositories) == bool(one.uses)
        assert not surface.load().is_public(one.name), "it is documented"


def test_the_page_has_the_whole_list() -> None:
    page = _PAGE.read_text(encoding="utf-8")
    rows = [f"| `{one.name}` | {one.uses} | {one.repositories} | {one.now} | {one.why} |" for one in private_uses()]
    table = [line for line in page.splitlines() if line.startswith("| `")]
    assert table == rows


def test_uses_are_counted_by_what_names_stand_for() -> None:
    text = (
        "import cupy\nimport cupy as xp, numpy\nfrom cupy import _core as inner\nfrom cupy._util import memoize\n"
        "inner.core.ndarray; xp.linalg._util._tril(xp.zeros(3)); numpy._core.x; bits._seed_seq.spawn(2); cp.int\n"
        "x._shape; cupy.add.reduce; xp.__version__\n"
    )
    found = sorted(filter(is_beyond_the_surface, uses(text)))
    assert found == [
        "_seed_seq", "cupy._core", "cupy._core.core.ndarray", "cupy._util.memoize", "cupy.int",
        "cupy.linalg._util._tril",
    ]  # fmt: skip
    assert list(uses("print 'Python 2'")) == []
