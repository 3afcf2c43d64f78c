"""Where CuPy's bits are not NumPy's: every device gives them, and so does a notebook that knows values itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from kernelproxy.client import current
from kernelproxy.mirror.host_mirror import HostMirror, Mode
from kernelproxy.namespace.names import make
from tests.conformance.in_process import InProcess, notebook_on


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    with notebook_on(open_device(request.param)) as executor:
        yield executor


@pytest.fixture(params=[Mode.ON, Mode.OFF])
def cp(device: InProcess, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Return names of CuPy."""
    monkeypatch.setattr(current().pipeline, "mirror", HostMirror(request.param))
    return lambda name: make(f"cupy.{name}")


def test_a_zero_loses_its_sign_where_memory_in_one_piece_is_filled(cp: Callable[[str], Any]) -> None:
    filled, stored, part, strided, full = (cp("asarray")(np.ones(6)) for _ in range(5))
    filled.fill(-0.0)
    stored[...] = -0.0
    part[2:4] = np.float64(-0.0)
    strided[::2] = -0.0
    cp("copyto")(full, -0.0)
    signs = [np.signbit(array.get()).tolist() for array in (filled, stored, part, strided, full)]
    assert signs == [[False] * 6, [False] * 6, [False] * 6, [True, False] * 3, [True] * 6]
    assert np.signbit(cp("full")(3, -0.0).get()).all()


@pytest.mark.parametrize("code", ["e", "f", "F", "D"])
def test_so_does_a_number_that_is_put_where_indices_say(cp: Callable[[str], Any], code: str) -> None:
    filled, masked, chosen = (cp("asarray")(np.ones(4, code)) for _ in range(3))
    filled[...] = -1e-330 if code == "D" else -1e-320  # a zero in their type
    masked[masked == 1] = -0.0
    chosen[cp("asarray")(np.array([0, 2]))] = -0.0
    for array in (filled, masked, chosen):
        assert not np.signbit(array.get().real).any()


def test_so_does_an_array_without_axes(cp: Callable[[str], Any]) -> None:
    made = [cp("array")(-0.0), cp("asarray")(np.float32(-0.0)), cp("asarray")(np.array(-0.0)), cp("array")(-0.0 + 0j)]
    assert not any(np.signbit(one.get().real) for one in made)
    kept = [cp("array")([-0.0]), cp("array")(-0.0, ndmin=1), cp("asarray")(np.array([-0.0]))]
    assert all(np.signbit(one.get()).all() for one in kept)


@pytest.mark.parametrize("index", [2**63 + 5, 2**64 - 1, 7], ids=str)
def test_an_unsigned_index_is_divided_as_such(cp: Callable[[str], Any], index: int) -> None:
    x, places = cp("asarray")(np.arange(3.0)), cp("asarray")(np.array([index, 1], np.uint64))
    assert x[places].get().tolist() == [float(index % 3), 1.0]
    x[places] = -1.0
    assert np.flatnonzero(x.get() < 0).tolist() == sorted({index % 3, 1})


def test_a_signed_index_counts_from_the_end(cp: Callable[[str], Any]) -> None:
    x, places = cp("asarray")(np.arange(3.0)), cp("asarray")(np.array([-1, -5, 7], np.int8))
    assert x[places].get().tolist() == [2.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("code", "number", "expected"),
    [("i8", np.uint64(2**63), -(2**63)), ("i1", np.uint8(200), -56), ("u4", np.int8(-1), 2**32 - 1)],
)
def test_an_integer_of_another_type_keeps_its_lowest_bits(
    cp: Callable[[str], Any], code: str, number: np.generic, expected: int
) -> None:
    filled, stored, part = (cp("zeros")(4, code) for _ in range(3))
    filled.fill(number)
    stored[...] = number
    part[1:] = number
    made = [filled, stored, part[1:], cp("full")(4, number, code), cp("full_like")(filled, number)]
    assert [set(array.get().tolist()) for array in made] == [{expected}] * 5
    with pytest.raises(OverflowError):  # as it is for Python's own
        filled.fill(2**70)
