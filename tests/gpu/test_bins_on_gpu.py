"""``bincount`` on a GPU by kernels of our own is what CuPy gives, and says what CuPy says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices.bin_source import FEW_BINS, MOST_BLOCKS, THREADS

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

SIZES = [1, 31, THREADS, THREADS + 1, 2049, 100_000, MOST_BLOCKS * 2048 + 7]


@pytest.fixture(scope="module")
def bincount() -> Callable[..., Any]:
    from gpu_backend.devices.cuda import CudaDevice

    found: Callable[..., Any] = CudaDevice().resolve("cupy.bincount")  # type: ignore[assignment]
    return found


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of what was counted by kernels of our own, as it goes on."""
    from gpu_backend.devices import cuda_bins

    found: list[int] = []
    count = cuda_bins.Bins.count

    def noted(self: Any, numbers: Any, bins: int) -> Any:
        found.append(numbers.size)
        return count(self, numbers, bins)

    monkeypatch.setattr(cuda_bins.Bins, "count", noted)
    return found


def same(found: Any, expected: Any) -> None:
    assert (found.dtype, found.shape, found.strides) == (expected.dtype, expected.shape, expected.strides)
    assert found.get().tobytes() == expected.get().tobytes()


@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q"])
def test_counts(bincount: Callable[..., Any], looked: list[int], dtype: str) -> None:
    import cupy

    most = {"?": 2, "b": 128, "B": 256}.get(dtype, FEW_BINS)
    for size in SIZES:
        for bins in (min(most, 7), most):
            host = np.random.default_rng(size).integers(0, bins, size + 1).astype(dtype)
            x = cupy.asarray(host)[1:]  # it begins one element behind where memory does
            for least in (None, 0, 3, FEW_BINS):
                same(bincount(x, minlength=least), cupy.bincount(x, minlength=least))
    assert len(looked) == len(SIZES) * 2 * 4


@pytest.mark.parametrize("bins", [FEW_BINS - 1, FEW_BINS, FEW_BINS + 1])
def test_as_many_bins_as_a_block_has_for_itself(bincount: Callable[..., Any], looked: list[int], bins: int) -> None:
    import cupy

    x = cupy.arange(3 * bins) % bins
    same(bincount(x), cupy.bincount(x))
    same(bincount(x[:5], minlength=bins), cupy.bincount(x[:5], minlength=bins))
    assert len(looked) == (2 if bins <= FEW_BINS else 0)


def test_numbers_without_a_bin_are_passed_over(bincount: Callable[..., Any]) -> None:
    """So what another stream writes between the look and the count cannot lead out of the result."""
    import cupy

    from gpu_backend.devices import cuda_bins

    x = cupy.asarray([0, 1, 1, 5, 1 << 40, -3])
    assert cuda_bins._bins().count(x, 3).get().tolist() == [1, 2, 0]


def test_it_has_cupys_documentation(bincount: Callable[..., Any]) -> None:
    import cupy

    assert bincount.__doc__ == cupy.bincount.__doc__


@pytest.mark.parametrize("dtype", ["?", "i", "l", "e", "f", "d"])
def test_weights(bincount: Callable[..., Any], dtype: str) -> None:
    import cupy

    x = cupy.asarray(np.random.default_rng(2).integers(0, 50, 10_000))
    weights = cupy.asarray(np.random.default_rng(3).integers(0, 9, 10_000).astype(dtype))  # in any order the same sums
    try:
        expected = cupy.bincount(x, weights, 60)
    except Exception as error:
        with pytest.raises(type(error)):
            bincount(x, weights, 60)
        return
    same(bincount(x, weights, 60), expected)
    same(bincount(x, weights=weights), cupy.bincount(x, weights))


@pytest.mark.parametrize(
    "given",
    [
        lambda cupy: (cupy.asarray([3, -1]),),
        lambda cupy: (cupy.asarray([[1, 2]]),),
        lambda cupy: (cupy.asarray(3),),
        lambda cupy: (cupy.asarray([1.0]),),
        lambda cupy: (cupy.asarray([1, 2]), None, -1),
        lambda cupy: (cupy.asarray([1, 2]), cupy.ones(3)),
        lambda cupy: (cupy.asarray([1, 2]), None, "some"),
        lambda cupy: (cupy.asarray([1, 1 << 61]),),
        lambda cupy: (cupy.asarray([1, (1 << 64) - 1], "u8"),),
    ],
)
def test_what_cannot_be_counted_is_refused_as_by_cupy(
    bincount: Callable[..., Any], looked: list[int], given: Callable[[Any], tuple[Any, ...]]
) -> None:
    import cupy

    with pytest.raises(Exception) as theirs:
        cupy.bincount(*given(cupy))
    with pytest.raises(Exception) as ours:
        bincount(*given(cupy))
    assert (type(ours.value), str(ours.value)) == (type(theirs.value), str(theirs.value))
    assert not looked


def test_what_does_not_lie_in_a_row_or_is_empty_goes_cupys_way(bincount: Callable[..., Any], looked: list[int]) -> None:
    import cupy

    x = cupy.arange(100) % 7
    for given in (x[::2], x[::-1], x[:0]):
        same(bincount(given), cupy.bincount(given))
    assert not looked


def test_in_another_stream(bincount: Callable[..., Any], looked: list[int]) -> None:
    import cupy

    x = cupy.arange(1_000) % 7
    with cupy.cuda.Stream():
        found = bincount(x)
    cupy.cuda.Device().synchronize()
    same(found, cupy.bincount(x))
    assert not looked
