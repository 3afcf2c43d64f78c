"""``x[mask] = array`` waits for nobody where it is known how much the mask selects, and only as long as that is so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from kernelproxy.client import current
from kernelproxy.mirror import counts
from kernelproxy.mirror.entries import Counted
from kernelproxy.mirror.host_mirror import HostMirror, Mode
from kernelproxy.namespace.names import make
from tests.conformance.in_process import InProcess, notebook_on, trips

HOST = np.random.default_rng(4).random(20_000)
#: More than is ever read for the host's own sake: only what it has selected tells how much it selects.
MASK = HOST > 0.3
COUNT = int(MASK.sum())


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    with notebook_on(open_device(request.param)) as executor:
        yield executor


@pytest.fixture
def cp(device: InProcess, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Return names of CuPy, for a notebook that remembers."""
    monkeypatch.setattr(current().pipeline, "mirror", HostMirror(Mode.ON))
    return lambda name: make(f"cupy.{name}")


def mask_on(cp: Callable[[str], Any]) -> tuple[Any, Any]:
    """Return an array and a mask of it of which only the device knows how much it selects."""
    x = cp("asarray")(HOST)
    return x, x > 0.3


def test_what_has_selected_tells_how_much_fits(cp: Callable[[str], Any]) -> None:
    x, mask = mask_on(cp)
    assert x[mask].size == COUNT
    other, values = cp("zeros")(HOST.shape), cp("arange")(float(COUNT))
    before = trips()
    other[mask] = values
    other[mask] = values * 2
    assert trips() == before + 1, "none but that of the count itself"
    expected = np.zeros(HOST.shape)
    expected[MASK] = 2.0 * np.arange(COUNT)
    np.testing.assert_array_equal(other.get(), expected)


def test_other_axes_and_what_broadcasts(cp: Callable[[str], Any]) -> None:
    rows = cp("asarray")(HOST.reshape(-1, 2))
    mask = rows[:, 0] > 0.5
    count = int((HOST.reshape(-1, 2)[:, 0] > 0.5).sum())
    assert rows[mask].shape == (count, 2)
    before = trips()
    rows[mask] = cp("arange")(2.0 * count).reshape(count, 2)
    rows[mask] = cp("arange")(float(count))[:, None]
    assert trips() == before + 1
    expected = HOST.reshape(-1, 2).copy()
    expected[expected[:, 0] > 0.5] = np.arange(float(count))[:, None]
    np.testing.assert_array_equal(rows.get(), expected)


@pytest.mark.parametrize("count", [COUNT - 1, COUNT + 1, 2])
def test_what_does_not_fit_is_refused_as_the_device_refuses_it(cp: Callable[[str], Any], count: int) -> None:
    x, mask = mask_on(cp)
    values = cp("zeros")(count)
    with pytest.raises(ValueError, match="broadcast") as asked:
        x[mask] = values
    assert x[mask].size == COUNT
    with pytest.raises(ValueError, match="broadcast") as known:
        x[mask] = values
    assert (type(known.value), str(known.value)) == (type(asked.value), str(asked.value))
    np.testing.assert_array_equal(x.get(), HOST)


WRITES = [
    "mask[0] = ~mask[0]", "mask[::2] = False", "mask &= x > 0.9", "cp('logical_not')(mask, out=mask)",
    "mask[1:][:5].fill(False)", "cp('putmask')(mask, x > 0.5, False)", "cp('copyto')(mask, x > 0.7)",
    "mask.view('u1')[:9] ^= 1", "mask.put([0, 1], [False, False])", "mask.set(host)",
    "cp('ElementwiseKernel')('T x', 'bool m', 'm = x > 0.8', 'again')(x, mask)", "mask[x > 0.6] = False",
]  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
def test_a_mask_that_is_written_is_counted_no_more(cp: Callable[[str], Any], write: str) -> None:
    x, mask = mask_on(cp)
    assert x[mask].size == COUNT
    assert counts.count(current().pipeline.mirror, mask._ref) == COUNT
    exec(write, {"cp": cp, "x": x, "mask": mask, "host": HOST > 0.9})
    known = counts.count(current().pipeline.mirror, mask._ref)
    assert known is None or known == int(mask.sum())
    chosen = int(mask.get().sum())
    assert chosen != COUNT
    x[mask] = cp("arange")(float(chosen))
    expected = HOST.copy()
    expected[mask.get()] = np.arange(chosen)
    np.testing.assert_array_equal(x.get(), expected)


def test_a_count_that_comes_after_a_write_is_of_before(cp: Callable[[str], Any]) -> None:
    x, mask = mask_on(cp)
    chosen = x[mask]
    mask[:100] = False
    assert chosen.size == COUNT
    assert counts.count(current().pipeline.mirror, mask._ref) is None


def test_a_mask_that_the_notebook_knows_is_counted_by_it(cp: Callable[[str], Any]) -> None:
    host = np.array([True, False, True, True])
    mask, x = cp("asarray")(host), cp("zeros")(4)
    before = trips()
    x[mask] = cp("arange")(3.0)
    x[mask[::-1]] = cp("ones")(3)
    assert trips() == before + 1
    np.testing.assert_array_equal(x.get(), [1.0, 1.0, 1.0, 1.0])


def test_who_goes_through_a_mask_bit_by_bit_has_few_counts_remembered(cp: Callable[[str], Any]) -> None:
    x, mask = mask_on(cp)
    for start in range(2 * counts.MOST_COUNTS):
        assert x[start:][mask[start:]].size == int(MASK[start:].sum())
    entry = current().pipeline.mirror.known[mask._ref.handle]
    assert isinstance(entry, Counted)
    assert len(entry.counts) <= counts.MOST_COUNTS
    assert counts.count(current().pipeline.mirror, mask[start:]._ref) == int(MASK[start:].sum())


def test_views_of_one_memory_are_counted_apart(cp: Callable[[str], Any]) -> None:
    x, mask = mask_on(cp)
    half = len(HOST) // 2
    assert x[mask].size == COUNT
    assert x[:half][mask[:half]].size == int(MASK[:half].sum())
    mirror = current().pipeline.mirror
    assert counts.count(mirror, mask._ref) == COUNT
    assert counts.count(mirror, mask[:half]._ref) == int(MASK[:half].sum())
    assert counts.count(mirror, mask[half:]._ref) is None


def test_what_one_mask_chose_is_put_where_its_like_chooses_in_one_trip(cp: Callable[[str], Any]) -> None:
    x, _ = mask_on(cp)
    values, places = x[x > 0.3] * 2.0, x > 0.3
    before = trips()
    x[places] = values
    assert trips() == before + 2, "one, and that of the count itself"
    expected = np.where(MASK, HOST * 2.0, HOST)
    np.testing.assert_array_equal(x.get(), expected)
    with pytest.raises(ValueError, match="broadcast"):
        x[x > 1.0] = x[x > 0.3]
    np.testing.assert_array_equal(x.get(), expected)
