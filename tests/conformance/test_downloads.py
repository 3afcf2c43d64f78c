"""Contents that are put into an array of the notebook's own: all of them, there and nowhere else, or CuPy's error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_backend.transport import copying
from gpu_backend.transport.copying import Bytes
from kernelproxy.calls import transfer
from kernelproxy.calls.transfer import CHUNK_BYTES
from kernelproxy.client import current
from tests.conformance.in_process import cost

CuPy = Callable[[str], Any]
#: Doubles: of an array that comes in one piece, and of one that comes in several, the last of which is shorter.
SIZES = [1_000, 6 * CHUNK_BYTES // 8 + 1]


@pytest.fixture(params=SIZES, ids=["small", "large"])
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def numbers(cp: CuPy, size: int) -> Any:
    return cp("asarray")(np.arange(size, dtype="<f8")) + 1


def test_what_is_given_is_filled_and_returned(cp: CuPy, size: int) -> None:
    around = np.full(size + 2, -1.0)
    into = around[1:-1]
    assert numbers(cp, size).get(out=into) is into
    np.testing.assert_array_equal(into, np.arange(1, size + 1))
    assert (around[0], around[-1]) == (-1, -1)


def test_it_waits_as_often_as_without(cp: CuPy, size: int) -> None:
    one, other, into = numbers(cp, size), numbers(cp, size), np.empty(size)
    assert cost(lambda: one.get(out=into)) == cost(other.get) == 1


def test_what_is_large_is_copied_once(cp: CuPy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy more takes as long as the whole way."""
    x, into, found = numbers(cp, SIZES[-1]), np.empty(SIZES[-1]), []
    read = transfer.read

    def noted(*args: Any) -> Any:
        found.append(read(*args))
        return found[-1]

    monkeypatch.setattr(transfer, "read", noted)
    monkeypatch.setattr(transfer, "fault_in", lambda memory: pytest.fail("memory that is in use is no new memory"))
    x.get(out=into)
    assert found[0] is into


def test_what_is_new_is_cleared_before_anything_is_put_there(cp: CuPy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "has_spare", lambda: True)
    monkeypatch.setattr(copying, "_NEW_BYTES", CHUNK_BYTES)
    monkeypatch.setattr(transfer, "_NEW_AT_A_TIME", 2 * CHUNK_BYTES)
    cleared: list[int] = []

    def noted(memory: Bytes) -> None:
        cleared.append(len(memory))
        copying.fault_in(memory)

    monkeypatch.setattr(transfer, "fault_in", noted)
    size = 9 * CHUNK_BYTES // 8 + 1
    np.testing.assert_array_equal(numbers(cp, size).get(), np.arange(1, size + 1))
    assert cleared == [2 * CHUNK_BYTES] * 3


@pytest.mark.parametrize(
    "make",
    [
        lambda size: np.empty((2, size)).T, lambda size: np.empty((size, 2)),
        lambda size: np.empty((size, 2)).view(np.recarray),
    ],
    ids=["in columns", "in rows", "of a class of its own"],
)  # fmt: skip
@pytest.mark.parametrize("order", ["C", "F"])
def test_both_may_lie_in_any_order(cp: CuPy, size: int, order: str, make: Callable[[int], Any]) -> None:
    want, into = np.arange(2.0 * size).reshape(size, 2), make(size)
    assert cp("array")(want, order=order).get(out=into) is into
    np.testing.assert_array_equal(np.asarray(into), want)


def test_more_than_bytes_is_set_of_a_masked_array(cp: CuPy, size: int) -> None:
    into = np.ma.masked_all(size)
    assert numbers(cp, size).get(out=into) is into
    assert not into.mask.any()
    np.testing.assert_array_equal(into.data, np.arange(1, size + 1))


def read_only(size: int) -> Any:
    made = np.empty(size)
    made.flags.writeable = False
    return made


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda size: [0.0] * size, TypeError, "Only numpy.ndarray"),
        (lambda size: np.empty(size, "f4"), TypeError, "float32 array cannot be obtained from float64"),
        (lambda size: np.empty(size, ">f8"), TypeError, "cannot be obtained from float64"),
        (lambda size: np.empty((1, size)), ValueError, "Shape mismatch"),
        (lambda size: np.empty(2 * size)[::2], RuntimeError, "non-contiguous"),
        (read_only, ValueError, "read-only"),
    ],
)
def test_what_cannot_take_it_is_refused_as_ever(
    cp: CuPy, size: int, make: Callable[[int], Any], error: type[Exception], words: str
) -> None:
    x = numbers(cp, size)
    with pytest.raises(error, match=words):
        x.get(out=make(size))
    assert float(x[1]) == 2.0


def test_a_failure_from_before_leaves_it_as_it_was(cp: CuPy, size: int) -> None:
    x, into = numbers(cp, size), np.full(size, 3.0)
    current().pipeline.record(".fail", ("by intention",), 0)
    with pytest.raises(TypeError, match="by intention"):
        x.get(out=into)
    assert (into == 3).all()
