"""The description that lies in the package, and what is read from it."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.opstream import surface
from gpu_backend.opstream.surface import describe
from gpu_backend.opstream.surface.signatures import default_text, signature_text
from tests.calls import calls_of

described = surface.load()


def test_it_loads_in_one_go_however_many_names_there_are() -> None:
    """Which takes milliseconds (5 where it was measured)."""

    def load() -> None:
        surface.load.cache_clear()
        surface.load()

    load()
    assert calls_of(load) < 100 < len(described)


@pytest.mark.parametrize(
    "name",
    ["cupy.add", "cupy.linalg.svd", "cupy.ndarray.sum", "cupy.ndarray.__getitem__", "cupy.cuda.Stream", "cupy.r_",
     "cupyx.scipy.ndimage.gaussian_filter", "cupy.cuda.stream.Stream.use", "cupy.random.RandomState.normal",
     "cupyx.scipy.sparse.csr_matrix", "cupy.cuda.memory.OutOfMemoryError", "cupy.cuda.driver"],
)  # fmt: skip
def test_public_names(name: str) -> None:
    assert described.is_public(name)
    assert described.is_remote(name)


@pytest.mark.parametrize(
    "name",
    ["", "cupy", "cupy.linalg._util", "cupy._core.core.ndarray", "os.system", "cupy.os", "cupy.cuda.compiler.os",
     "cupy.ndarray.__class__", "cupy.ndarray._astype", "cupy.add.__class__", "cupy.geomspace", "cupy.numpy"],
)  # fmt: skip
def test_names_that_are_not(name: str) -> None:
    assert name == "cupy" or not described.is_public(name)
    assert name == "cupy" or not described.is_remote(name)


@pytest.mark.parametrize(
    "name",
    ["cupy.load", "cupy.save", "cupy.ndarray.tofile", "cupy.ndarray.dumps", "cupy.DataSource", "cupy.bool_",
     "cupy.vectorize", "cupy.fuse", "cupy.ndarray.__reduce__", "cupy.ndarray.__array_function__",
     "cupy.RawKernel.__setstate__"],
)  # fmt: skip
def test_names_on_the_callers_files_and_functions_are_not_remote(name: str) -> None:
    assert described.is_public(name)
    assert not described.is_remote(name)


def test_ufuncs_are_complete() -> None:
    ufuncs = [name for name, entry in described.items() if isinstance(entry, surface.Ufunc)]
    direct = [name for name in ufuncs if name.startswith("cupy.")]
    assert len(ufuncs) == 180
    assert len(direct) > 80
    add = described.resolved("cupy.add")
    assert isinstance(add, surface.Ufunc)
    assert add.types[0] == "??->?"
    assert add.types[-1] == "DD->D"
    for name in ufuncs:
        entry = described[name]
        assert isinstance(entry, surface.Ufunc)
        for types in entry.types:
            given, _, made = types.partition("->")
            assert (len(given), len(made)) == (entry.nin, entry.nout), name


def test_refused_loops_keep_their_words() -> None:
    subtract = described["cupy.subtract"]
    assert isinstance(subtract, surface.Ufunc)
    assert "bitwise_xor" in subtract.refused["??->?"]


def test_aliases_lead_to_what_is_described() -> None:
    assert described.canonical("cupy.abs") == "cupy.absolute"
    assert described.canonical("cupy.cuda.stream.Event.record") == "cupy.cuda.Event.record"
    for name, entry in described.items():
        if isinstance(entry, surface.Alias):
            assert not isinstance(described[entry.target], surface.Alias), name


def test_every_signature_is_python() -> None:
    known = 0
    for name, entry in described.items():
        if isinstance(entry, (surface.Function, surface.Method, surface.Class)) and entry.signature:
            assert surface.signature_of(entry) is not None, name
            known += 1
    assert known > 2000


def test_a_signature_shows_as_in_cupy() -> None:
    entry = described["cupy.array"]
    assert isinstance(entry, surface.Function)
    signature = surface.signature_of(entry)
    assert str(signature) == "(obj, dtype=None, copy=True, order='K', subok=False, ndmin=0, *, blocking=False)"


def test_constants_have_values() -> None:
    values = {name: entry.value for name, entry in described.items() if isinstance(entry, surface.Constant)}
    runtime = [name for name in values if name.rpartition(".")[0] == "cupy.cuda.runtime"]
    assert len(runtime) == 212
    assert values["cupy.pi"] == np.pi
    assert values["cupy.inf"] == np.inf
    assert values["cupy.newaxis"] is None


def test_numpy_names_exist_in_numpy() -> None:
    missing = []
    for name, entry in described.items():
        if isinstance(entry, surface.NumpyName):
            module, _, last = entry.target.rpartition(".")
            thing = __import__(module, fromlist=[last])
            if not hasattr(thing, last):
                missing.append(name)
    assert missing == []


def test_the_array_class() -> None:
    members = described.below("cupy.ndarray")
    assert len([name for name in members if not name.startswith("_")]) == 74
    assert "__index__" not in members
    assert isinstance(described["cupy.ndarray.shape"], surface.Property)


def test_every_cupy_function_is_classified() -> None:
    for module in ("cupy", "cupy.linalg", "cupy.fft", "cupy.random", "cupyx.scipy.ndimage", "cupyx.scipy.signal"):
        for name in described.below(module):
            entry = described[f"{module}.{name}"]
            if isinstance(entry, surface.Function):
                assert entry.returns is not surface.Returns.UNKNOWN, name


def test_returns_file_names_only_what_exists() -> None:
    path = Path(surface.__file__).with_name("returns.toml")
    tables = tomllib.loads(path.read_text())
    for owner, table in tables.items():
        assert described.is_public(owner), owner
        for kind, names in table.items():
            if kind != "default":
                unknown = [n for n in names if n != "*" and not described.is_public(f"{owner}.{n}") and n[0] != "_"]
                assert unknown == [], (owner, kind)


@pytest.mark.parametrize("name", ["shape", "T", "__getitem__", "__iadd__", "indptr"])
def test_open_attributes(name: str) -> None:
    assert surface.is_public_attribute(name)


@pytest.mark.parametrize("name", ["_data", "__class__", "__globals__", "__reduce__", "__dict__", "a.b", "", "__init__"])
def test_closed_attributes(name: str) -> None:
    assert not surface.is_public_attribute(name)


def test_signatures_of_python_functions() -> None:
    def function(a, /, b, *rest, c=np.float32, d=float("nan"), **more):  # type: ignore[no-untyped-def]
        """Nothing."""

    assert signature_text(function) == "(a, /, b, *rest, c=numpy.float32, d=nan, **more)"


def test_signatures_from_cython_docstrings() -> None:
    class Fake:
        __name__ = "memcpy"
        __doc__ = (
            "Runtime.memcpy(self, intptr_t dst, bint copy=True, tuple shape=(1, 2), *, str mode='a,b') -> int\n\nX."
        )

    assert signature_text(Fake(), drop_self=True) == "(dst, copy=True, shape=(1, 2), *, mode='a,b')"


def test_defaults_that_are_not_python() -> None:
    assert default_text(object()) == "object"
    assert default_text(int) == "int"


def test_describing_a_module_finds_its_names() -> None:
    """The walk over modules, on a stand-in package with everything that must be left out."""
    package = _stand_in()
    entries = describe.describe({"cupy": package})
    assert set(entries) == {
        "cupy",
        "cupy.f",
        "cupy.g",
        "cupy.C",
        "cupy.C.m",
        "cupy.C.p",
        "cupy.C.k",
        "cupy.pi",
        "cupy.single",
    }
    assert entries["cupy.f"] == surface.Function("(a, b=1)", surface.Returns.ARRAY, home="cupy._inside")
    assert entries["cupy.g"] == surface.Alias("cupy.f")
    assert entries["cupy.C.m"] == surface.Method("(x)", surface.Returns.UNKNOWN)
    assert entries["cupy.single"] == surface.NumpyName("numpy.float32")
    described_class = entries["cupy.C"]
    assert isinstance(described_class, surface.Class)
    assert (described_class.home, described_class.extensible) == ("cupy._inside", True)


def _stand_in() -> inspect.types.ModuleType:  # type: ignore[name-defined]
    package = inspect.types.ModuleType("cupy")  # type: ignore[attr-defined]
    package.__path__ = []
    source = """
import os, sys
from __future__ import annotations
def f(a, b=1): ...
g = f
class C:
    k = 3
    def m(self, x): ...
    def _n(self): ...
    @property
    def p(self): ...
pi = 3.14
_private = 1
"""
    exec(source.replace("from __future__ import annotations\n", ""), vars(package))
    for thing in (package.f, package.C):
        thing.__module__ = "cupy._inside"
    package.single = np.float32
    return package
