"""What the ledger of the pool is told of a session stands where its executor cannot write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpu_backend.engine.detached import ProcessId
from gpu_backend.gate import verdicts
from gpu_backend.gate.roster import name_of
from gpu_backend.gate.tally import Booked, Tally, booked
from gpu_backend.gate.terms import SessionTerms
from gpu_backend.node.executor import Executor
from gpu_backend.node.places import Place, Places
from gpu_backend.node.usage import UsageOf
from gpu_backend.wire import control, orders
from gpu_backend.wire.figures import can_be


def test_what_an_executor_says_of_itself_is_not_on_the_arbiters_books(tmp_path: Path) -> None:
    me = ProcessId.mine()
    usage = UsageOf(me, 9_999, tmp_path, None)  # it has no page
    try:
        assert usage.booked() == control.Booked()
        usage.read(control.Usage(gpu_seconds=1e9))
        assert usage.booked() == control.Booked()
        tally = Tally(tmp_path, name_of(me.pid, me.start_time, 9_999))
        tally.note(3_000_000_000, 0, 2_000_000_000, 7)
        tally.look(5_000_000_000, 6_000_000_000, 8_000_000_000)
        tally.look(0, 1_000_000_000, 9_000_000_000)
        tally.close()
        usage.read(control.Usage(gpu_seconds=1e9))
        assert usage.booked() == control.Booked(2.0, 5.0, 9.0, 7.0)
    finally:
        usage.close()


def test_a_successor_goes_on_in_the_same_books(tmp_path: Path) -> None:
    for _ in range(2):
        tally = Tally(tmp_path, "one")
        tally.look(1_000_000_000, 2_000_000_000, 4_000_000_000)
        tally.close()
    assert booked(tmp_path, "one") == Booked(0.0, 2.0, 4.0, 4.0)
    tally = Tally(tmp_path, "one")
    tally.look(0, -5_000_000_000, 5_000_000_000)  # it was used: that was only not known
    tally.close()
    assert booked(tmp_path, "one").unused_seconds == 0.0
    assert booked(tmp_path, "nobody") == Booked(0.0, 0.0, 0.0, 0.0)
    os.truncate(tmp_path / "counted" / "one", 8)
    assert booked(tmp_path, "one") == Booked(0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("figure", [-1, 1 << 60, 1 << 63])
@pytest.mark.parametrize("parts", [(), (0.0,), (1e308,) * 4, (1e308,) * 40, (float("nan"),) * 4, (-1.0,) * 4])
def test_what_cannot_be_is_not_passed_on(tmp_path: Path, figure: int, parts: tuple[float, ...]) -> None:
    """Its node would be refused its whole report for it, and all others on that node theirs."""
    usage = UsageOf(ProcessId.mine(), 9_999, tmp_path, None)
    try:
        for seconds in (1.0, float("inf"), float("nan"), -1.0, 1e300):
            read = usage.read(control.Usage(seconds, figure, figure, figure, parts))
            told = (read.gpu_seconds, read.peak_bytes, read.received_bytes, read.sent_bytes, *read.by_class)
            assert all(map(can_be, told)), told
    finally:
        usage.close()


@pytest.mark.parametrize("said", [float("nan"), float("inf"), -5.0])
def test_how_long_a_notebook_was_not_heard_is_a_time(tmp_path: Path, said: float) -> None:
    executor = Executor(tmp_path, ProcessId(1, 1), [Place(0, tmp_path)])
    executor._changed = lambda _: None
    executor._take_in(orders.Report(orders.Phase.SERVING, "s", 1, 1, -1, 1 << 60, said))
    assert can_be(executor.idle_seconds)


def test_an_executor_with_two_devices_is_on_the_books_of_both(tmp_path: Path) -> None:
    me, first, second = ProcessId.mine(), tmp_path / "0", tmp_path / "1"
    places = Places(me, [Place(4, first), Place(7, second)], [9_998, 9_999])
    try:
        for directory, report, used in ((first, 9_998, 2), (second, 9_999, 3)):
            directory.mkdir()
            tally = Tally(directory, name_of(me.pid, me.start_time, report))
            tally.note(used * 1_000_000_000, 0, used * 1_000_000_000, 7)
            tally.close()
        assert [one.used_seconds for one in places.booked()] == [2.0, 3.0]
        used = places.usage(control.Usage(gpu_seconds=1e9, peak_bytes=5, received_bytes=6, sent_bytes=7))
        assert used.gpu_seconds == 5.0, "what it says of all of them together is said of none"
        assert (used.peak_bytes, used.received_bytes, used.sent_bytes) == (5, 6, 7)
        member = places.member(7, SessionTerms(session="s/1", user="ada"), "control")
        assert (member.report, member.device) == (9_999, 1)
        assert places.verdict() == ""
        verdicts.note(second, name_of(me.pid, me.start_time, 9_999), "it computed behind a shut gate")
        assert places.verdict() == "it computed behind a shut gate"
    finally:
        places.forget()
    assert [booked(directory, name_of(me.pid, me.start_time, 9_999)) for directory in (first, second)] == [
        Booked(0, 0, 0, 0)
    ] * 2
