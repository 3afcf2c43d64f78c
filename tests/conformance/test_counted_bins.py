"""``bincount`` waits once to hear how many bins there are, and again only when somebody has written what it counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelproxy.client import current
from kernelproxy.mirror import counts
from tests.conformance.in_process import cost

#: More than is ever read for the host's own sake.
HOST = np.random.default_rng(3).integers(0, 40, 20_000)
WEIGHTS = np.random.default_rng(4).integers(0, 9, 20_000).astype("f8")


def same(found: Any, expected: np.ndarray[Any, Any]) -> None:
    host = found.get()
    assert (host.dtype, host.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(host, expected)


def test_what_was_counted_once_is_counted_again_without_a_wait(cp: Callable[[str], Any]) -> None:
    x, weights = cp("asarray")(HOST), cp("asarray")(WEIGHTS)
    found: list[Any] = []
    assert cost(lambda: found.append(cp("bincount")(x))) == 1
    ways: list[Callable[[], Any]] = [
        lambda: cp("bincount")(x),
        lambda: cp("bincount")(x, weights),
        lambda: cp("bincount")(x, weights=weights, minlength=64),
        lambda: cp("bincount")(x, None, 3),
    ]
    for way in ways:
        assert cost(lambda way=way: found.append(way())) == 0  # type: ignore[misc]
        assert cost(lambda: found[-1].shape) == 0
    expected = [(HOST,), (HOST,), (HOST, WEIGHTS), (HOST, WEIGHTS, 64), (HOST, None, 3)]
    for one, given in zip(found, expected, strict=True):
        same(one, np.bincount(*given))


def test_enough_bins_tell_that_no_more_are_needed_and_not_how_many_are(cp: Callable[[str], Any]) -> None:
    x = cp("asarray")(HOST)
    found: list[Any] = []

    def counted(*leasts: int) -> Callable[[], None]:
        return lambda: found.extend([cp("bincount")(x, minlength=least) for least in leasts])

    assert cost(counted(64)) == 1
    assert cost(counted(64, 99)) == 0
    assert cost(counted(63)) == 1
    assert cost(lambda: found.append(cp("bincount")(x))) == 1
    assert cost(counted(0, 39, 40, 41, 63)) == 0
    for one, least in zip(found, (64, 64, 99, 63, 0, 0, 39, 40, 41, 63), strict=True):
        same(one, np.bincount(HOST, minlength=least))


@pytest.mark.parametrize(
    "write",
    [
        lambda x, cp: x.__setitem__(5, 99),
        lambda x, cp: x.__iadd__(3),
        lambda x, cp: x[::2].fill(70),
        lambda x, cp: cp("add")(x, 1, out=x),
        lambda x, cp: x.set(HOST[::-1] + 7),
        lambda x, cp: cp("ElementwiseKernel")("", "raw T x", "x[i] = 80", "hundred")(x, size=100),
        lambda x, cp: cp("random.shuffle")(x),
    ],
)
def test_whoever_writes_it_has_it_counted_anew(
    cp: Callable[[str], Any], write: Callable[[Any, Callable[[str], Any]], object]
) -> None:
    x = cp("asarray")(HOST)
    view = x[10:]
    for one in (x, view):
        cp("bincount")(one)
    try:
        write(x, cp)
    except (NotImplementedError, RuntimeError) as error:
        pytest.skip(f"not on this device: {error}")
    for one in (x, view):
        same(cp("bincount")(one), np.bincount(one.get()))


def test_views_are_known_each_by_itself(cp: Callable[[str], Any]) -> None:
    x = cp("asarray")(np.sort(HOST))
    parts = [x[:100], x[100:], x[::-3]]
    found: list[Any] = []

    def count() -> None:
        found[:] = [cp("bincount")(part) for part in parts]

    assert (cost(count), cost(count)) == (3, 0)
    for part, one in zip((slice(100), slice(100, None), slice(None, None, -3)), found, strict=True):
        same(one, np.bincount(np.sort(HOST)[part]))


def test_of_what_the_notebook_has_made_itself_it_need_not_hear(cp: Callable[[str], Any]) -> None:
    x = cp("asarray")(np.array([3, 1, 4, 1, 5], "i4"))
    found: list[Any] = []
    assert cost(lambda: found.extend([cp("bincount")(x), cp("bincount")(x[:2], minlength=9)])) == 0
    same(found[0], np.bincount([3, 1, 4, 1, 5]))
    same(found[1], np.bincount([3, 1], minlength=9))


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (lambda cp: (cp("asarray")(np.array([1, -1])),), ValueError),
        (lambda cp: (cp("asarray")(HOST - 1),), ValueError),
        (lambda cp: (cp("asarray")(WEIGHTS),), TypeError),
        (lambda cp: (cp("asarray")(HOST.reshape(2, -1)),), ValueError),
        (lambda cp: (cp("asarray")(HOST), cp("asarray")(WEIGHTS[1:])), ValueError),
        (lambda cp: (cp("asarray")(HOST), None, -1), ValueError),
    ],
)
def test_what_cannot_be_counted_is_refused_each_time(
    cp: Callable[[str], Any], args: Callable[[Callable[[str], Any]], tuple[Any, ...]], error: type[Exception]
) -> None:
    given = args(cp)
    for _ in range(2):
        with pytest.raises(error):
            cp("bincount")(*given)
    counted = cp("asarray")(HOST)
    cp("bincount")(counted)
    with pytest.raises(ValueError, match="length"):
        cp("bincount")(counted, cp("asarray")(WEIGHTS[1:]))


@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "u8"])
def test_integers_of_all_kinds(cp: Callable[[str], Any], dtype: str) -> None:
    x = cp("asarray")(HOST.astype(dtype))
    for _ in range(3):
        same(cp("bincount")(x), np.bincount(HOST))
        same(cp("bincount")(x, minlength=300), np.bincount(HOST, minlength=300))


def test_nothing_of_it_is_known_of_an_array_that_is_empty(cp: Callable[[str], Any]) -> None:
    x = cp("zeros")(0, dtype="i8")
    for least in (0, 3):
        same(cp("bincount")(x, minlength=least), np.bincount(np.zeros(0, "i8"), minlength=least))


def test_what_is_remembered_of_one_array_is_bounded(cp: Callable[[str], Any]) -> None:
    x = cp("asarray")(HOST)
    for start in range(counts.MOST_COUNTS + 10):
        cp("bincount")(x[start:])
    entry = current().pipeline.mirror.known[x._ref.handle]
    assert len(entry.bins) == counts.MOST_COUNTS
    same(cp("bincount")(x), np.bincount(HOST))


def test_another_threads_op_in_between_has_it_asked_again(
    cp: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = cp("asarray")(HOST)
    cp("bincount")(x)
    from kernelproxy.calls import dispatch

    run_proved, other = dispatch.run_proved, cp("asarray")(WEIGHTS)

    def disturbed(*given: Any) -> Any:
        monkeypatch.setattr(dispatch, "run_proved", run_proved)
        x[0] = 77
        other.fill(1.0)
        return run_proved(*given)

    monkeypatch.setattr(dispatch, "run_proved", disturbed)
    found = cp("bincount")(x)
    assert found.shape == (78,)
    same(found, np.bincount(x.get()))
    a = cp("arange")(40.0)
    same(a + a, 2.0 * np.arange(40))  # is not computed into what was thrown away, and is longer than was believed
