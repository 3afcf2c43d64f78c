"""What programs annotate their functions with."""

from __future__ import annotations

import importlib
import typing
from collections.abc import Iterator
from types import GenericAlias, ModuleType

import numpy as np
import numpy.typing as npt
import pytest

from kernelproxy.array.remote_array import ndarray
from kernelproxy.namespace import finder


@pytest.fixture
def module() -> Iterator[ModuleType]:
    finder.install()
    try:
        yield importlib.import_module("cupy.typing")
    finally:
        finder.uninstall()


def test_an_array_of_a_type_is_an_alias_of_our_class(module: ModuleType) -> None:
    of_singles = module.NDArray[np.float32]
    assert type(of_singles) is GenericAlias
    assert typing.get_origin(of_singles) is typing.get_origin(module.NDArray) is ndarray
    assert typing.get_args(of_singles) == (typing.Any, np.dtype[np.float32])
    assert repr(of_singles) == "cupy.ndarray[typing.Any, numpy.dtype[numpy.float32]]"


def test_the_rest_is_numpys(module: ModuleType) -> None:
    assert {"ArrayLike", "DTypeLike", "NBitBase", "NDArray"} <= set(dir(module))
    for name in ("ArrayLike", "DTypeLike", "NBitBase"):
        assert getattr(module, name) is getattr(npt, name)


def test_functions_are_annotated_with_it(module: ModuleType) -> None:
    def scaled(x: module.ArrayLike, dtype: module.DTypeLike = None) -> module.NDArray[np.float64]: ...  # type: ignore[name-defined]

    hints = typing.get_type_hints(scaled, {}, {"module": module, "np": np})
    assert hints["return"] == module.NDArray[np.float64]
    assert typing.get_args(module.NDArray | None)[1] is type(None)
