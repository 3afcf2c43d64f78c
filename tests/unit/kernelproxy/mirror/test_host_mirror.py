"""What is known is bounded, ends when it must, and is computed only while that pays."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.opstream.layout import Layout, contiguous
from gpu_backend.wire import values as wire
from gpu_backend.wire.errors import SessionLost
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Ref, Tuple, View
from kernelproxy.mirror.effects import Effect, effect_of
from kernelproxy.mirror.host_mirror import MOST_BYTES, HostMirror, Mode
from kernelproxy.mirror.worth import GRANT, MOST, Worth
from kernelproxy.stream import mirrored as mirrored_pipeline
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.recorder import Args, Kwargs
from tests.unit.kernelproxy.played import PlayedExecutor

FOUR = contiguous((4,), np.dtype("f8"))
NUMBERS = np.arange(4.0)


def kept(mirror: HostMirror, handle: int, layout: Layout = FOUR) -> None:
    mirror.keep(handle, layout, np.zeros(layout.shape, layout.dtype).tobytes())


def test_the_bytes_that_are_known_are_bounded() -> None:
    mirror, large = HostMirror(), contiguous((MOST_BYTES,), np.dtype("u1"))
    for handle in range(1, 1001):
        kept(mirror, handle, large)
    assert sum(one.layout.nbytes for one in mirror.known.values()) == 16 << 20
    assert min(mirror.known) == 1001 - 256, "the oldest went"
    for handle in range(2000, 12_000):
        kept(mirror, handle)
    assert len(mirror.known) == 4_096
    kept(mirror, 1, contiguous((MOST_BYTES + 1,), np.dtype("u1")))
    assert 1 not in mirror.known


def test_what_ends_is_forgotten() -> None:
    mirror = HostMirror()
    kept(mirror, 1)
    mirror.bar(View(1, 8, (1,), (8,), "<f8", ""))
    kept(mirror, 1)
    assert not mirror.known
    mirror.drop(1)
    assert not mirror.barred


@pytest.mark.parametrize(
    ("name", "between"), [(".store", ()), ("cupy.ndarray.__setitem__", (wire.Ellipsis(),)), ("cupy.copyto", ())]
)
def test_bytes_that_are_stored_into_themselves_by_another_type_are_not_known(
    name: str, between: tuple[wire.Value, ...]
) -> None:
    """CuPy passes over them, and NumPy does not."""
    for dtype, is_known in (("<i8", False), ("<f8", True)):
        mirror = HostMirror()
        mirror.worth.note_trip()
        mirror.keep(1, FOUR, NUMBERS.tobytes())
        itself = View(1, 0, (4,), (8,), dtype, "")
        if (found := mirror.note(name, (Ref(1), *between, itself), None, 0, 0, None, 1)) is not None:
            mirror.publish(*found)
        assert (mirror.read(Ref(1), FOUR) is not None) is is_known


def test_an_array_written_while_it_is_fetched_is_not_known() -> None:
    mirror = HostMirror()
    awaited = mirror.await_(1, FOUR)
    assert mirror.read(Ref(1), FOUR) is None
    assert mirror.note("cupy.ndarray.fill", (Ref(1), 3.0), None, 0, 0, None, 1) is None
    mirror.note_fetched(1, awaited, NUMBERS, was_asked=False)
    assert mirror.read(Ref(1), FOUR) is None
    awaited = mirror.await_(2, FOUR)
    mirror.note_fetched(2, awaited, NUMBERS, was_asked=False)
    assert mirror.read(Ref(2), FOUR).tolist() == [0, 1, 2, 3]  # type: ignore[union-attr]


def test_what_was_fetched_in_vain_is_not_fetched_again() -> None:
    mirror = HostMirror()
    assert not mirror.should_fetch(1, FOUR, is_whole=False)
    assert mirror.should_fetch(1, FOUR, is_whole=False)
    mirror.note_fetched(1, mirror.await_(1, FOUR), NUMBERS, was_asked=False)
    mirror.note(".launch", (Ref(9), Ref(1)), None, 0, 0, None, 5)
    assert mirror.uncertain == 5
    assert not mirror.should_fetch(1, FOUR, is_whole=False)


def is_told(mirror: HostMirror, handle: int) -> bool:
    """Read all of an array; return whether what came is kept."""
    if not mirror.should_fetch(handle, FOUR, is_whole=True):
        return False
    mirror.note_told(handle, mirror.await_(handle, FOUR), NUMBERS.tobytes())
    return True


def test_where_arrays_are_read_but_once_few_are_kept() -> None:
    mirror = HostMirror()
    are_kept = [is_told(mirror, handle) for handle in range(1, 1001)]
    assert all(are_kept[:16])
    assert 30 <= sum(are_kept[16:]) <= 33
    assert {place % 2 for place, is_kept in enumerate(are_kept[16:]) if is_kept} == {0, 1}, "either one of a pair"


def test_as_soon_as_one_is_wanted_again_all_are_kept() -> None:
    mirror = HostMirror()
    for handle in range(1, 101):
        is_told(mirror, handle)
    number = next(handle for handle in range(101, 200) if is_told(mirror, handle))
    assert not is_told(mirror, number + 1)
    assert mirror.read(Ref(number), FOUR) is not None
    assert all(is_told(mirror, number + 2 + one) for one in range(16))


def test_what_is_read_twice_is_kept_the_second_time() -> None:
    mirror = HostMirror()
    for handle in range(1, 101):
        is_told(mirror, handle)
    assert not is_told(mirror, 101)
    assert is_told(mirror, 101)
    assert mirror.read(Ref(101), FOUR) is not None
    assert is_told(mirror, 102)


def test_a_view_that_believes_the_array_to_lie_otherwise_is_not_answered() -> None:
    mirror, layout = HostMirror(), contiguous((2, 2), np.dtype("f8"), "F")
    mirror.keep(1, layout, NUMBERS.tobytes())
    row = contiguous((2,), np.dtype("f8"))
    assert mirror.read(View(1, 0, (2,), (8,), "<f8", "C"), row) is None
    mirror.keep(2, layout, NUMBERS.tobytes())
    assert mirror.read(View(2, 0, (2,), (8,), "<f8", "F"), row).tolist() == [0, 1]  # type: ignore[union-attr]
    assert mirror.read(View(2, 24, (2,), (8,), "<f8", "F"), row) is None, "it leads out of the memory"


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("cupy.add", Effect.READS),
        ("cupy.sum", Effect.READS),
        ("cupyx.scipy.special.erf", Effect.READS),
        ("cupy.ndarray.__setitem__", Effect.WRITES),
        ("cupy.add.at", Effect.WRITES),
        (".launch", Effect.RUNS_CODE),
        (".window", Effect.KEEPS),
        (".getattr", Effect.KEEPS),
        ("cupy.median", Effect.KEEPS),
        ("cupy.whatever_comes_next", Effect.KEEPS),
    ],
)
def test_who_is_not_known_to_let_go_is_taken_to_keep(name: str, effect: Effect) -> None:
    assert effect_of(name) is effect


def test_computing_goes_on_as_long_as_it_pays() -> None:
    worth = Worth()
    assert worth.budget == 0
    worth.note_trip()
    assert worth.budget == GRANT
    for _ in range(GRANT):
        worth.note_saved()
    assert worth.budget == MOST
    while worth.budget:
        worth.spend(0)
    for granted in (GRANT >> 1, GRANT >> 2, GRANT >> 3, GRANT >> 4, 0, 0):
        worth.note_trip()
        assert worth.budget == granted
        while worth.budget:
            worth.spend(1 << 16)
    for _ in range(256):
        worth.note_trip()
    assert worth.budget >= GRANT, "it is tried again"


def mirrored() -> tuple[PlayedExecutor, MirroredPipeline]:
    executor = PlayedExecutor()
    pipeline = MirroredPipeline(executor.connect(), executor.renew)
    pipeline.mirror = HostMirror()
    pipeline.mirror.keep(1, FOUR, NUMBERS.tobytes())
    return executor, pipeline


def test_a_read_waits_for_what_may_fail() -> None:
    _, pipeline = mirrored()
    assert pipeline.known(Ref(1), FOUR) is not None
    pipeline.record(".launch", ("kernel",), 0)
    assert pipeline.known(Ref(1), FOUR) is None
    pipeline.call("op", ("wait",), Want.CONTENTS)
    assert pipeline.known(Ref(1), FOUR) is not None


def test_a_number_is_answered_where_an_array_is() -> None:
    _, pipeline = mirrored()
    view, number = View(1, 8, (), (), "<f8", ""), contiguous((), np.dtype("f8"))
    assert pipeline.known(view, number, as_number=True) == 1.0
    pipeline.record(".launch", ("kernel",), 0)
    assert pipeline.known(view, number, as_number=True) is None
    pipeline.call("op", ("wait",), Want.CONTENTS)
    assert pipeline.known(view, number, as_number=True) == 1.0
    pipeline.record("fail", ("it",), 0)
    asked = pipeline.ask("op", ("later",), Want.CONTENTS)
    while pipeline.inbox.seen(asked) is None:
        pipeline.read(0.01)
    with pytest.raises(ValueError, match="it failed"):
        pipeline.known(view, number, as_number=True)
    pipeline.connection.link.is_cut = True  # type: ignore[attr-defined]
    assert pipeline.known(view, number, as_number=True) is None


def test_a_failure_that_was_heard_of_is_told_at_the_next_read() -> None:
    _, pipeline = mirrored()
    pipeline.record("fail", ("it",), 0)
    number = pipeline.ask("op", ("later",), Want.CONTENTS)
    while pipeline.inbox.seen(number) is None:
        pipeline.read(0.01)
    with pytest.raises(ValueError, match="it failed"):
        pipeline.known(Ref(1), FOUR)
    assert pipeline.known(Ref(1), FOUR) is not None, "told once"


def test_who_only_reads_what_is_known_hears_of_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    executor, pipeline = mirrored()
    monkeypatch.setattr(mirrored_pipeline, "_LOOK_SECONDS", -1.0)
    pipeline.record("fail", ("it",), 0)
    pipeline.flush()
    executor.live()
    with pytest.raises(ValueError, match="it failed"):
        pipeline.known(Ref(1), FOUR)
    pipeline.connection.link.is_cut = True  # type: ignore[attr-defined]
    assert pipeline.known(Ref(1), FOUR) is None


def test_nothing_is_known_of_what_is_dropped_lost_or_closed() -> None:
    _, pipeline = mirrored()
    pipeline.cancel_pending()
    assert not pipeline.mirror.known
    executor, pipeline = mirrored()
    executor.restart()
    pipeline.connection.link.cut()  # type: ignore[attr-defined]
    with pytest.raises(SessionLost):
        pipeline.call("op", ("more",), Want.CONTENTS)
    assert not pipeline.mirror.known
    _, pipeline = mirrored()
    pipeline.end(SessionLost("closed"))
    pipeline.mirror.keep(2, FOUR, NUMBERS.tobytes())
    assert not pipeline.mirror.known


def test_a_captured_stream_ends_it() -> None:
    _, pipeline = mirrored()
    pipeline.mirror.note_asked(".method", (Ref(7), "begin_capture"), None)
    pipeline.mirror.keep(2, FOUR, NUMBERS.tobytes())
    assert not pipeline.mirror.known


def test_a_mirror_that_is_off_knows_nothing() -> None:
    mirror = HostMirror(Mode.OFF)
    kept(mirror, 1)
    assert mirror.note("cupy.zeros", ((4,),), None, 1, 5, FOUR, 1) is None
    assert not mirror.should_fetch(1, FOUR, is_whole=True)
    assert not mirror.known


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("cupy.divmod", (Ref(2), Ref(3), None, Ref(1)), None),
        ("cupy.divmod", (Ref(2), Ref(3)), {"out": Tuple((None, Ref(1)))}),
        ("cupy.add", (1.0, 2.0, Ref(1)), None),
        ("cupy.clip", (Ref(1), 0, 1), {"out": Ref(1)}),
    ],
)
def test_what_an_op_is_told_to_write_is_known_no_more(name: str, args: Args, kwargs: Kwargs) -> None:
    """Also where the op was waited for, of whose arguments nothing is proved."""
    _, pipeline = mirrored()
    pipeline.mirror.note_asked(name, args, kwargs)
    assert pipeline.known(Ref(1), FOUR) is None


def test_what_is_only_read_stays_known() -> None:
    _, pipeline = mirrored()
    pipeline.mirror.note_asked("cupy.sum", (Ref(1),), None)
    assert pipeline.known(Ref(1), FOUR) is not None
