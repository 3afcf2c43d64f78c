"""The modules that CuPy's classes and functions say they are of, and the folder that CuPy is said to lie in."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.opstream import surface
from kernelproxy.namespace import finder
from kernelproxy.namespace.names import make

CLASSES = [name for name, entry in surface.load().items() if isinstance(entry, surface.Class)]


@pytest.fixture(autouse=True)
def imports() -> Iterator[None]:
    finder.install()
    try:
        yield
    finally:
        finder.uninstall()


@pytest.mark.parametrize("root", ["cupy", "cupyx"])
def test_the_module_of_each_class_is_imported_with_its_package(root: str) -> None:
    """cloudpickle takes a class to pieces whose module is not, and another process could not put it together."""
    importlib.import_module(root)
    kinds = [make(name) for name in CLASSES if name.startswith(f"{root}.")]
    ours = [kind for kind in kinds if kind.__module__.split(".")[0] == root]
    assert len(ours) > 10
    assert [kind for kind in ours if kind.__module__ not in sys.modules] == []


def test_a_method_is_pickled_by_the_name_of_its_class() -> None:
    importlib.import_module("cupy")
    cloudpickle = pytest.importorskip("cloudpickle")
    method = make("cupy.random.BitGenerator").random_raw
    for kind in (make("cupy.random.XORWOW"), make("cupy.cuda.MemoryPool")):
        assert pickle.loads(cloudpickle.dumps(kind)) is kind
        assert kind.__name__.encode() in cloudpickle.dumps(kind)
        assert len(cloudpickle.dumps(kind)) < 100, "its members are in the pickle"
    assert pickle.loads(cloudpickle.dumps(method)) == method


def test_programs_that_look_for_headers_find_none() -> None:
    """They would compile something of this machine's, which has none."""
    package = importlib.import_module("cupy")
    assert not (Path(package.__path__[0]) / "_core" / "include").exists()
