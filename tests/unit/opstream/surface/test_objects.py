"""What is described of classes: their members, and what is added by hand."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gpu_backend.opstream import surface
from gpu_backend.opstream.surface import objects
from gpu_backend.opstream.surface.describe import held_attributes
from gpu_backend.opstream.surface.objects import ClassDescription, classes_called, describe_class

BY_HAND = tomllib.loads(Path(objects.__file__).with_name("objects.toml").read_text())


def described(name: str) -> ClassDescription:
    found = describe_class(name)
    assert found is not None
    return found


def test_a_public_class_has_the_members_of_its_entries() -> None:
    matrix = described("cupyx.scipy.sparse.csr_matrix")
    assert {"toarray", "__matmul__", "__getitem__", "__repr__"} <= matrix.methods
    assert {"shape", "data", "indptr"} <= matrix.attributes
    assert {"data", "indptr"} <= matrix.settable
    assert not matrix.is_callable
    assert described("cupy.RawKernel").is_callable


@pytest.mark.parametrize("name", [name for name, entry in surface.load().items() if isinstance(entry, surface.Class)])
def test_nothing_that_leads_out_of_an_object_is_a_member(name: str) -> None:
    found = describe_class(name)
    if found is None:
        return
    members = found.methods | found.attributes | found.settable
    assert all(surface.is_public_attribute(member) for member in members)
    assert not found.methods & found.attributes
    assert not members & found.refused.keys()
    assert not {"tofile", "dump", "dumps"} & members


def test_what_is_local_says_why_it_is_not_there() -> None:
    assert "tofile" in described("cupy.ndarray").refused["tofile"]


@pytest.mark.parametrize(
    "name", ["cupy", "cupy.add", "cupy.cuda.runtime.CUDARuntimeError", "builtins.object", "", "os"]
)
def test_other_things_are_not_described(name: str) -> None:
    assert describe_class(name) is None


@pytest.mark.parametrize("table", ["settable", "held"])
def test_what_is_added_is_added_to_classes_that_there_are(table: str) -> None:
    for name, members in BY_HAND[table].items():
        assert isinstance(surface.load()[name], surface.Class)
        found = described(name)
        assert set(members.split()) <= found.attributes


def test_nothing_that_may_be_set_is_an_address() -> None:
    settable = " ".join(
        [*BY_HAND["settable"].values(), *(one.get("settable", "") for one in BY_HAND["private"].values())]
    )
    assert not {"ptr", "mem", "handle", "device_id", "size"} & set(settable.split())


def test_private_classes_have_private_names_and_reasons() -> None:
    for name, entry in BY_HAND["private"].items():
        assert name not in surface.load()
        assert entry["reason"]
        assert described(name).name == name
        assert name in classes_called(name.rpartition(".")[2])


def test_a_class_with_several_described_ancestors_has_the_members_of_all() -> None:
    both = described("cupyx.scipy.signal.TransferFunction").with_members_of([described("cupyx.scipy.signal.lti")])
    assert both.name == "cupyx.scipy.signal.TransferFunction"
    assert {"to_ss", "impulse", "bode"} <= both.methods
    assert {"num", "poles"} <= both.attributes


class Holder:
    kept = 1

    def __init__(self) -> None:
        self.first = self._private = 1
        self.second: int = 2
        for self.third in range(2):
            other = Holder
            other.kept = 2


def test_attributes_that_methods_give_are_read_off_the_source() -> None:
    assert held_attributes(Holder) == {"first", "second", "third"}
    assert held_attributes(int) == set()
