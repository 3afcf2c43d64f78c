"""Copies between devices that have an executor each: recorded, right whichever way they take, and told if they fail."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gpu_backend.wire.channels import RECEIVE, SEND
from gpu_backend.wire.errors import NotCopied, OpCancelled
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref
from kernelproxy.calls import interruption, transfer
from kernelproxy.calls.array_core import window_of_bytes
from kernelproxy.calls.channels import Channels
from kernelproxy.client import Client, current
from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.in_process import InProcess, cost, notebook_on_two


@pytest.fixture(scope="module", autouse=True)
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with notebook_on_two("apart", tmp_path_factory.mktemp("kernels")) as one:
        yield one


@pytest.fixture(autouse=True)
def on_the_first() -> Iterator[None]:
    yield
    cp.cuda.Device(0).use()


def _no_channels(client: Client) -> Channels:
    found = Channels(client)
    found.name = lambda source, target: ""  # type: ignore[method-assign]
    return found


@pytest.fixture(params=["channel", "notebook"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How copies pass from one executor to the other."""
    if request.param == "notebook":
        monkeypatch.setitem(current().first._parts, Channels, _no_channels(current()))
    return str(request.param)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("how", ["asarray", "copyto", "store", "window"])
def test_what_is_large_passes_in_pieces(how: str, order: Any, way: str) -> None:
    before = current().pipeline.counters.direct_bytes
    host = np.asarray(np.random.default_rng(1).normal(size=(3, transfer.CHUNK_BYTES // 10)), order=order)
    assert host.nbytes > 2 * transfer.CHUNK_BYTES
    there = cp.asarray(host)
    with cp.cuda.Device(1):
        if how == "asarray":
            here = cp.asarray(there)
            assert (here.flags.c_contiguous, here.flags.f_contiguous) == (order == "C", order == "F")
        elif how == "window":
            here = cp.empty((5, *host.shape[1:]))
            here[1:4] = there if order == "C" else cp.asarray(there, order="C")
            here = here[1:4]
        else:
            here = cp.empty_like(there)
            if how == "copyto":
                cp.copyto(here, there)
            elif order == "C":
                here[...] = there
            else:
                with pytest.raises(ValueError, match="Peer access is unavailable"):
                    here[...] = there  # CuPy looks for C's order alone
                return
    there *= 0  # a copy is its own
    np.testing.assert_array_equal(here.get(), host)
    is_direct = way == "channel" and (how, order) != ("window", "F")  # which is laid out anew on its way
    assert current().pipeline.counters.direct_bytes - before == (host.nbytes if is_direct else 0)


def _unknown(size: int) -> Any:
    """Return an array on the first device that the notebook knows nothing of."""
    return cp.cos(cp.zeros(size))


def test_copies_are_recorded_and_none_is_waited_for() -> None:
    there = _unknown(1000)
    with cp.cuda.Device(1):
        here = cp.asarray(there)  # the channel is there from now on

        def copies() -> None:
            for _ in range(20):
                here[...] = there

        assert cost(copies) == 0
        assert here.get().tolist() == [1.0] * 1000


def test_what_an_interrupt_dropped_before_it_was_sent_is_told_on_the_other_device() -> None:
    there = _unknown(1000)
    with cp.cuda.Device(1):
        here = cp.asarray(there)
        here.get()
        here[...] = _on_the_first(lambda: there + 1)
        _drop_what_is_under_way()
        with pytest.raises(NotCopied, match="was cancelled"):
            here.get()
        here[...] = cp.asarray(_on_the_first(lambda: _unknown(1000)))
        assert here.get().tolist() == [1.0] * 1000


def test_what_could_not_be_computed_is_told_on_both_devices() -> None:
    there = _unknown(1000)
    with cp.cuda.Device(1):
        here = cp.asarray(there)
        here.get()
        failed = _on_the_first(lambda: there + 1)
        _drop_what_is_under_way()
        here[...] = failed
        with pytest.raises(NotCopied, match="failed"):
            here.get()
    with pytest.raises(OpCancelled):
        failed.get()


def test_a_channel_that_was_lost_is_told_once_and_opened_again(executor: InProcess) -> None:
    there = _unknown(1000)
    with cp.cuda.Device(1):
        here = cp.asarray(there)
        here.get()
        for channel in executor.channels._all():  # type: ignore[attr-defined]
            channel.lose("a cable was pulled")
        here[...] = there
        with pytest.raises(NotCopied, match="Run the cell again"):
            here.get()
        here[...] = there
        assert here.get().tolist() == [1.0] * 1000


def _drop_what_is_under_way() -> None:
    """Have the first executor drop what it has not begun."""
    current().first.pipeline.cancel_pending()
    _on_the_first(lambda: current().session.synchronize())


def _on_the_first(make: Any) -> Any:
    with cp.cuda.Device(0):
        return make()


def test_what_the_receiver_drops_leaves_the_sender_room() -> None:
    """Many pieces, of which none is asked for any more: the next copies pass all the same."""
    there = _unknown(8 * transfer.CHUNK_BYTES)
    with cp.cuda.Device(1):
        here = cp.empty_like(there)
        for _ in range(2):
            here[...] = there
            current().pipeline.cancel_pending()
        small = cp.asarray(_on_the_first(lambda: _unknown(1000)))
        assert small.get().tolist() == [1.0] * 1000
    assert float(there[-1]) == 1.0


def test_an_unrelated_failure_changes_no_channel() -> None:
    there = _unknown(1000)
    channels = current().first.part(Channels)
    with cp.cuda.Device(1):
        here = cp.asarray(there)
        here.get()
        before = dict(channels._known)
        here[...] = there
        current().pipeline.record(".fail", ("nothing of this",), 0)
        with pytest.raises(TypeError, match="nothing of this"):
            here.get()
        here[...] = _on_the_first(lambda: there + 1)
        assert here.get().tolist() == [2.0] * 1000
    assert {both: known.name for both, known in channels._known.items()} == {
        both: known.name for both, known in before.items()
    }


def test_what_a_dropped_copy_changes_is_its_target() -> None:
    assert list(interruption._changed_by(Op(RECEIVE, 0, (Ref(7), 0, "n", 1)))) == [7]
    assert list(interruption._changed_by(Op(SEND, 0, (Ref(7), "n", 1)))) == []


def test_copied_arrays_stay_their_own(executor: InProcess) -> None:
    """Nothing else refers to their memory: it is used again."""
    there = _unknown(1000)
    with cp.cuda.Device(1):
        here = cp.asarray(there)
        here.get()
    there.get()
    assert there._ref.handle in executor.stream.heap.ownership.alone


@pytest.mark.parametrize("where", ["sending", "flushing"])
def test_an_interrupt_in_the_midst_of_a_copy_leaves_nothing_in_the_way(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = _unknown(4 * transfer.CHUNK_BYTES)
    pipeline = current().pipeline
    with cp.cuda.Device(1):
        here = cp.asarray(_on_the_first(lambda: _unknown(1000)))
        large = cp.empty_like(there)
        for _ in range(6):
            with monkeypatch.context() as patch:
                if where == "flushing":
                    patch.setattr(type(pipeline), "flush", _interrupt)
                else:
                    patch.setattr("kernelproxy.calls.channels.window_of_bytes", _second_is_interrupted())
                with pytest.raises(KeyboardInterrupt):
                    large[...] = there
            pipeline.flush()
        here[...] = _on_the_first(lambda: _unknown(1000) + 1)
        assert here.get().tolist() == [2.0] * 1000


def _interrupt(*of: object) -> None:
    raise KeyboardInterrupt


def _second_is_interrupted() -> Any:
    called: list[int] = []

    def window(array: Any, offset: int, length: int) -> Any:
        called.append(offset)
        if len(called) == 2:
            raise KeyboardInterrupt
        return window_of_bytes(array, offset, length)

    return window


def test_where_there_is_none_one_is_asked_for_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [1000.0], []
    members = current().members
    channels = Channels(members[0])
    monkeypatch.setattr("kernelproxy.calls.channels.monotonic", lambda: now[0])
    monkeypatch.setattr("kernelproxy.calls.channels._opened", lambda *of: asked.append(now[0]) or "")
    for _ in range(3000):
        assert channels.name(members[0], members[1]) == ""
        now[0] += 1.0
    pauses = [round(two - one) for one, two in pairwise(asked)]
    assert pauses[:7] == [30, 60, 120, 240, 480, 600, 600]


def test_a_child_of_a_process_has_locks_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    channels = Channels(current())
    held = channels.turn
    held.acquire()
    assert channels.of_this_process().turn is held
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert not channels.of_this_process().turn.locked()
    held.release()
