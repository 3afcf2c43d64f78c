"""Every public class of CuPy, as programs find it here: its members, its name, its signature; without a session."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from gpu_backend.opstream import surface
from gpu_backend.opstream.surface.objects import describe_class
from kernelproxy.calls.remote_object import RemoteObject, remote_class
from kernelproxy.namespace import finder
from kernelproxy.namespace.names import make

described = surface.load()
CLASSES = {name: entry for name, entry in described.items() if isinstance(entry, surface.Class) and not entry.exception}
#: Members of our own that have no underscore, by class.
OURS = {
    "cupy.cuda.PinnedMemoryPointer": set(dir(bytearray)),  # memory of this process, which NumPy takes as a buffer
    "cupy.ufunc": {"binary", "unary", "inplace", "description", "ntypes"},
    "cupyx.scipy.sparse.spmatrix": {"get"},
    "cupyx.scipy.sparse.sparray": {"get"},
}
#: Special methods that CuPy has for older Python, for Cython's pickles, or only to warn.
NOT_OF_PROTOCOLS = {"__div__", "__idiv__", "__rdiv__", "__nonzero__", "__hex__", "__oct__", "__setstate__"}


@pytest.fixture
def imports() -> Iterator[None]:
    finder.install()
    try:
        yield
    finally:
        finder.uninstall()


def of_instances(name: str) -> set[str]:
    """Return what instances of the class hold and the class itself has not."""
    members = described.below(name)
    constants = {one for one in members if isinstance(described[f"{name}.{one}"], surface.Constant)}
    if name == "cupy.cuda.PinnedMemoryPointer":
        return {"mem", "ptr"}
    return set(CLASSES[name].held) - constants


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_class_has_the_members_that_cupys_has(name: str) -> None:
    found = make(name)
    assert isinstance(found, type)
    members = {one for one in described.below(name) if not one.startswith("_")}
    lacking = {one for one in members - of_instances(name) if not hasattr(found, one)}
    assert not lacking
    assert members - of_instances(name) <= set(dir(found))


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_class_has_the_special_methods_that_cupys_has(name: str) -> None:
    known = describe_class(name)
    served = known.methods if known is not None else frozenset()
    special = {one for one in described.below(name) if one.startswith("__")} & served
    assert {one for one in special - NOT_OF_PROTOCOLS if not hasattr(make(name), one)} == set()


@pytest.mark.parametrize("name", [name for name, entry in CLASSES.items() if not entry.local])
def test_a_class_has_nothing_public_that_cupys_has_not(name: str) -> None:
    public = {one for one in dir(make(name)) if not one.startswith("_")}
    known = describe_class(name)
    held = known.attributes if known is not None else frozenset()
    assert public - set(described.below(name)) - held <= OURS.get(name, set())


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_class_says_that_it_is_where_cupys_is(name: str, imports: None) -> None:
    entry, found = CLASSES[name], make(name)
    assert found.__module__ == (entry.home or name.rpartition(".")[0])
    assert found.__name__ == found.__qualname__ == (entry.called or name.rpartition(".")[2])
    assert pickle.loads(pickle.dumps(found)) is found


def test_functions_say_that_they_are_where_cupys_are() -> None:
    told = {}
    for name, entry in described.items():
        if isinstance(entry, surface.Function) and not entry.local and not name.startswith("cupyx.jit."):
            found = make(name)
            module = entry.home or name.rpartition(".")[0]
            if (found.__module__, found.__name__) != (module, entry.called or name.rpartition(".")[2]):
                told[name] = found.__module__
    assert set(told.values()) <= {"numpy"}, told  # which CuPy hands on


@pytest.mark.parametrize("name", [name for name in sorted(CLASSES) if issubclass(make(name), RemoteObject)])
def test_methods_have_cupys_signatures(name: str) -> None:
    for one in described.below(name):
        entry = described[f"{name}.{one}"]
        if not isinstance(entry, surface.Method) or one.startswith("_") or not entry.signature:
            continue
        shown = inspect.signature(getattr(make(name), one))
        expected = surface.signature_of(entry) if entry.binding else surface.signature_with_self(entry)
        if one in vars(make(name)).get("_generated", ()):
            assert str(shown) == str(expected), one
        assert getattr(make(name), one).__name__ == one


@pytest.mark.parametrize("name", [name for name in sorted(CLASSES) if issubclass(make(name), RemoteObject)])
def test_a_class_has_the_signature_of_cupys_constructor(name: str) -> None:
    expected = surface.signature_of(CLASSES[name])
    if expected is not None and "__init__" in vars(make(name)).get("_generated", ()):
        assert str(inspect.signature(make(name))) == str(expected)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_class_is_below_those_that_cupys_is_below(name: str) -> None:
    for ancestor in CLASSES[name].mro:
        if ancestor in CLASSES:
            assert issubclass(make(name), make(ancestor)), ancestor


def test_what_instances_hold_is_listed_by_them_alone() -> None:
    matrix = object.__new__(remote_class("cupyx.scipy.sparse.csr_matrix"))
    assert {"data", "indices", "indptr", "toarray", "nnz"} <= set(dir(matrix))
    assert not {"data", "indices", "indptr"} & set(dir(type(matrix)))


def test_members_are_what_inspect_takes_them_for() -> None:
    kind = remote_class("cupyx.scipy.sparse.csr_matrix")
    assert "toarray" in dict(inspect.getmembers(kind, inspect.isroutine))
    assert "shape" in dict(inspect.getmembers(kind, lambda one: isinstance(one, property)))
    assert inspect.ismethod(object.__new__(kind).toarray)
    assert inspect.isdatadescriptor(kind.nnz)
    with pytest.raises(TypeError, match="unhashable"):
        hash(object.__new__(kind))


@pytest.mark.parametrize("name", ["toarray", "from_spline"])
def test_members_have_names_and_texts_without_a_session(name: str) -> None:
    owner = "cupyx.scipy.sparse.csr_matrix" if name == "toarray" else "cupyx.scipy.interpolate.PPoly"
    member: Any = getattr(remote_class(owner), name)
    assert name in repr(member)
    assert owner in member.__doc__  # which says why there is no text


def test_a_module_of_cupys_own_has_what_lives_there_and_no_more(imports: None) -> None:
    import cupyx.scipy.sparse._csr as home  # type: ignore[import-not-found, unused-ignore]

    assert home.csr_matrix is make("cupyx.scipy.sparse.csr_matrix")
    assert not hasattr(home, "coo_matrix")
    with pytest.raises(ImportError):
        import cupyx.scipy.sparse._nothing  # type: ignore[import-not-found, unused-ignore]  # noqa: F401


@pytest.mark.parametrize("name", ["cupy.cuda.ManagedMemory", "cupy.cuda.PythonFunctionAllocator"])
def test_what_nobody_can_have_is_a_class_all_the_same(name: str) -> None:
    kind = make(name)
    assert not isinstance(1, kind)
    with pytest.raises(RuntimeError, match="session of a shared GPU"):
        kind(1)
    with pytest.raises(RuntimeError, match="session of a shared GPU"):
        type("Mine", (kind,), {})(1)


def test_the_current_device_has_no_handles_of_libraries() -> None:
    device = make("cupy.cuda.Device")(0)
    assert (device.id, int(device), device == make("cupy.cuda.Device")()) == (0, 0, True)
    assert sorted([device, make("cupy.cuda.Device")(1)])[0] is device
    with pytest.raises(RuntimeError, match="out of reach"):
        device.cublas_handle  # noqa: B018
    with pytest.raises(TypeError, match="unhashable"):
        hash(device)


@pytest.mark.parametrize("name", ["cupy.random.RandomState", "cupy.random.Generator", "cupy.cuda.Stream"])
def test_a_constructor_is_pickled_by_its_class(name: str, imports: None) -> None:
    """cloudpickle takes a class of a program apart, and its bases' members with it."""
    constructor = make(name).__init__
    assert pickle.loads(pickle.dumps(constructor)) is constructor
