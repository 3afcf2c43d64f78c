"""What arrives on the device is what lay in the notebook at the call, whatever is done to it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.opstream.entry import Entry
from gpu_backend.opstream.marks import Marks
from gpu_backend.transport.shared_frames import BLOCKS
from gpu_backend.wire.errors import PoolUnreachable
from gpu_backend.wire.values import SMALL_BYTES
from kernelproxy.calls.transfer import CHUNK_BYTES
from kernelproxy.client import current
from kernelproxy.session.connection import Connection
from kernelproxy.stream.counters import Way
from kernelproxy.stream.pipeline import Pipeline
from tests.conformance.asked_of_views import REMOTE
from tests.conformance.in_process import InProcess, notebook_on

SMALL, LARGE = 1_000, 3 * CHUNK_BYTES + 5
AT_THE_CALL, LATER = 1, 7


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def executor(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    with notebook_on(open_device(request.param)) as made:
        yield made


def host_array(size: int) -> np.ndarray[Any, Any]:
    return np.full(size, AT_THE_CALL, np.uint8)


def while_it_waits(executor: InProcess, do: Callable[[], None]) -> None:
    """Have ``do`` done once, when the notebook waits for the executor next."""
    live = executor.live

    def once() -> None:
        executor.live = live  # type: ignore[method-assign]
        do()

    executor.live = once  # type: ignore[method-assign]


def cut(executor: InProcess) -> None:
    assert executor.link is not None
    executor.link.cut()


def values(array: Any) -> set[int]:
    return {int(one) for one in np.unique(array.get())}


def by_asarray(host: np.ndarray[Any, Any]) -> Any:
    return REMOTE.asarray(host)


def by_set(host: np.ndarray[Any, Any]) -> Any:
    there = REMOTE.zeros(host.shape, host.dtype)
    there.set(host)
    return there


@pytest.mark.parametrize("upload", [by_asarray, by_set])
@pytest.mark.parametrize("size", [SMALL, CHUNK_BYTES, LARGE])
def test_the_array_is_changed_and_then_the_connection_is_cut(
    executor: InProcess, upload: Callable[[Any], Any], size: int
) -> None:
    host = host_array(size)
    there = upload(host)
    host[:] = LATER
    cut(executor)
    assert values(there) == {AT_THE_CALL}
    assert executor.connections == 2


@pytest.mark.parametrize("upload", [by_asarray, by_set])
def test_the_connection_is_cut_in_the_middle_of_it(executor: InProcess, upload: Callable[[Any], Any]) -> None:
    host = host_array(LARGE)
    while_it_waits(executor, lambda: cut(executor))
    there = upload(host)
    host[:] = LATER
    assert values(there) == {AT_THE_CALL}
    assert executor.connections == 2


@pytest.mark.parametrize("is_cut", [False, True])
def test_an_upload_is_interrupted_and_what_was_recorded_is_of_the_call(executor: InProcess, is_cut: bool) -> None:
    host, there = host_array(LARGE), REMOTE.zeros(LARGE, np.uint8)

    def interrupt() -> None:
        raise KeyboardInterrupt

    while_it_waits(executor, interrupt)
    with pytest.raises(KeyboardInterrupt):
        there.set(host)
    host[:] = LATER
    if is_cut:
        cut(executor)
    assert values(there) == {AT_THE_CALL}, "all of it was recorded, and is still done"


def test_the_pool_is_away_in_the_middle_of_it_and_comes_back(
    executor: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, there = host_array(LARGE), REMOTE.zeros(LARGE, np.uint8)
    pipeline = current().pipeline
    renew = pipeline._renew

    def away(pipeline: Pipeline) -> Connection:
        pipeline.connection.close()
        raise PoolUnreachable("The network is down.")

    monkeypatch.setattr(pipeline, "_renew", away)
    cut(executor)
    with pytest.raises(PoolUnreachable):
        there.set(host)
    host[:] = LATER
    monkeypatch.setattr(pipeline, "_renew", renew)
    assert LATER not in values(there)
    assert there[:CHUNK_BYTES].get().all(), "its first piece was recorded"


def test_what_is_kept_when_it_is_done_is_of_the_call(executor: InProcess) -> None:
    pipeline = current().pipeline

    def never(marks: Marks) -> int:
        return 0

    pipeline.inbox._retention = never
    host = host_array(LARGE)
    there = by_asarray(host)
    host[:] = LATER
    kept = [frame for one in pipeline.journal.held() for frame in one.frames]
    assert sum(map(len, kept)) == LARGE
    assert all(bytes(frame).count(AT_THE_CALL) == len(frame) for frame in kept)
    assert values(there) == {AT_THE_CALL}


WIDE = np.arange(240_000.0).reshape(300, 800)
LAYOUTS = {
    "rows": WIDE,
    "columns": np.asfortranarray(WIDE),
    "a window": WIDE[3:, 5:600],
    "reversed": WIDE[::-1, ::-2],
    "axes exchanged": WIDE.reshape(20, 30, 400).transpose(1, 0, 2),
    "booleans": WIDE > 1_000,
    "big-endian": WIDE.astype(">f4"),
    "a class of the user's": WIDE.view(type("Own", (np.ndarray,), {})),
    "complex": WIDE[:, :300] * 1j,
}


@pytest.mark.usefixtures("executor")
@pytest.mark.parametrize("host", LAYOUTS.values(), ids=LAYOUTS)
def test_arrays_of_any_layout_arrive_as_they_are(host: np.ndarray[Any, Any]) -> None:
    """These are filled in where they are sent from."""
    there = REMOTE.asarray(host)
    assert there.shape == host.shape
    np.testing.assert_array_equal(there.get(), host)
    for order in ("C", "F"):
        other = REMOTE.zeros(host.shape, there.dtype, order=order)
        other.set(np.asarray(host, there.dtype))
        np.testing.assert_array_equal(other.get(), host)


@pytest.mark.usefixtures("executor")
def test_what_lies_scattered_comes_back_however_much_it_is() -> None:
    """The executor sends it in pieces; of one row that is shown many times there is more than it holds."""
    row = np.arange(1_000, dtype=np.uint8)
    rows = REMOTE.broadcast_to(REMOTE.asarray(row), (LARGE // row.size, row.size))
    assert (rows.get() == row).all()
    assert (REMOTE.asarray(np.tile(row, (LARGE // 500, 1)))[:, ::2].get() == row[::2]).all()


@pytest.mark.usefixtures("executor")
def test_more_arrays_than_memory_to_fill_arrive() -> None:
    """None of them is confirmed before the last is recorded."""
    there = [REMOTE.asarray(np.full(100_000, number, np.uint8)) for number in range(3 * BLOCKS)]
    assert [values(one) for one in there] == [{number} for number in range(3 * BLOCKS)]


@pytest.mark.parametrize("upload", [by_asarray, by_set])
def test_nothing_is_kept_of_a_large_upload_that_is_done(
    executor: InProcess, upload: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is copied, for the user may change it; and an executor says seldom by itself what the device did."""
    copied: list[int] = []
    monkeypatch.setattr(Entry, "own", lambda entry: copied.extend(map(len, entry.frames)))
    executor.is_quick = False
    for order in ("C", "F"):
        host = np.asarray(host_array(LARGE + 1).reshape(2, -1), order=order)
        there = upload(host)
        assert not copied
        assert values(there) == {AT_THE_CALL}


@pytest.mark.parametrize(("size", "way"), [(1, Way.INLINE), (SMALL_BYTES, Way.INLINE), (SMALL_BYTES + 1, Way.NETWORK)])
def test_what_is_small_travels_within_its_op(executor: InProcess, size: int, way: Way) -> None:
    pipeline = current().pipeline
    before = dict(pipeline.counters.sent_bytes)
    there = by_asarray(host_array(size))
    assert pipeline.counters.sent_bytes == before | {way: before.get(way, 0) + size}
    assert bool(pipeline.open_batch.frames) == (way is not Way.INLINE)
    assert values(there) == {AT_THE_CALL}
