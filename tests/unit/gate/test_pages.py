"""The pages between an arbiter and an executor: whole values, one writer each, and nothing that can be taken away."""

from __future__ import annotations

import fcntl
import mmap
import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from math import inf
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from gpu_backend.arbiter.events import OpenGate, OpenLane
from gpu_backend.gate import reports, right_of_way
from gpu_backend.gate.orders import OrderPage, OrderView
from gpu_backend.gate.reports import GateReport, ReportPage, ReportView
from gpu_backend.transport.sealed import NotSealed

SECOND = 1_000_000_000
SEEN = 300


@pytest.fixture
def arbiter() -> Iterator[OrderPage]:
    page = OrderPage()
    yield page
    page.close()


@pytest.fixture
def executor(arbiter: OrderPage) -> Iterator[OrderView]:
    page = OrderView(arbiter.descriptor, patience_ns=SECOND)
    yield page
    page.close()


@pytest.fixture
def descriptor() -> Iterator[int]:
    made = reports.make()
    yield made
    os.close(made)


@pytest.fixture
def writer(descriptor: int) -> Iterator[ReportPage]:
    page = ReportPage(descriptor)
    yield page
    page.close()


@pytest.fixture
def reader(descriptor: int) -> Iterator[ReportView]:
    page = ReportView(os.getpid(), descriptor)
    yield page
    page.close()


def test_an_order_arrives_whole(arbiter: OrderPage, executor: OrderView) -> None:
    arbiter.open(OpenGate("s", 2.5, 8, 0.25, 0.5), 7 * SECOND, origin_ns=5 * SECOND)
    order = executor.order(7 * SECOND)
    assert (order.open_until_ns, order.window_ops, order.use_until_ns) == (7_500_000_000, 8, SECOND // 4)
    assert order.duty == 0.5
    assert executor.may_launch(7_400_000_000)
    assert not executor.may_launch(7_600_000_000)


def test_an_order_may_come_before_it_holds(arbiter: OrderPage, executor: OrderView) -> None:
    tenth = SECOND // 10
    arbiter.open(OpenGate("s", 1.4, 0, inf, 1.0), SECOND, from_ns=12 * tenth)
    assert [executor.may_launch(now * tenth) for now in (10, 11, 12, 13, 14)] == [False, False, True, True, False]
    arbiter.open(OpenGate("s", 1.6, 0, inf, 1.0), 13 * tenth, from_ns=14 * tenth)  # it is open: it stays so
    assert executor.order(13 * tenth).open_from_ns == 0
    arbiter.shut(13 * tenth, at_ns=15 * tenth)
    order = executor.order(13 * tenth)
    assert order.open_until_ns == arbiter.open_until_ns == 15 * tenth
    assert order.short_until_ns == 15 * tenth - 250_000
    arbiter.shut(13 * tenth, at_ns=12 * tenth)  # that was a moment ago
    assert executor.order(13 * tenth).open_until_ns == arbiter.open_until_ns == 0


@pytest.mark.parametrize("from_ns", [0, SECOND + 400_000], ids=["at once", "ahead"])
def test_of_an_opening_of_a_moment_half_is_for_launching(arbiter: OrderPage, executor: OrderView, from_ns: int) -> None:
    begins = from_ns or SECOND
    arbiter.open(OpenGate("s", 0.2e-3, 0, inf, 1.0), SECOND, origin_ns=begins, from_ns=from_ns)
    arbiter.shut(begins, at_ns=begins + 200_000)
    order = executor.order(begins)
    assert (order.short_until_ns, order.open_until_ns) == (begins + 100_000, begins + 200_000)


def test_a_gate_that_is_shut_needs_no_moment_to_shut(arbiter: OrderPage, executor: OrderView) -> None:
    arbiter.open_lane(OpenLane("s", 1.0), SECOND)
    arbiter.shut(SECOND, at_ns=2 * SECOND)
    order = executor.order(SECOND)
    assert (order.open_until_ns, order.lane_until_ns) == (0, 0)


def test_a_shut_gate_stays_shut_while_the_arbiter_lives(arbiter: OrderPage, executor: OrderView) -> None:
    arbiter.open(OpenGate("s", inf, 0, inf, 1.0), SECOND)
    assert executor.may_launch(SECOND)
    arbiter.shut(SECOND)
    for now in range(SECOND, 20 * SECOND, SECOND // 2):
        arbiter.beat(now)
        assert not executor.may_launch(now)


def test_a_heartbeat_is_one_word_and_leaves_the_order_as_it_is(arbiter: OrderPage, executor: OrderView) -> None:
    arbiter.open(OpenGate("s", 2.5, 8, 0.25, 0.5), SECOND)
    order, before = executor.order(SECOND), list(executor.words)
    arbiter.beat(2 * SECOND)
    changed = [place for place, word in enumerate(executor.words) if word != before[place]]
    assert len(changed) == 1
    assert executor.words[changed[0]] == 2 * SECOND
    assert executor.order(2 * SECOND) == order


def test_a_dead_arbiters_gate_opens_itself(arbiter: OrderPage, executor: OrderView) -> None:
    arbiter.shut(5 * SECOND)
    assert not executor.may_launch(6 * SECOND)
    assert executor.may_launch(6 * SECOND + 1)
    assert executor.order(6 * SECOND + 1).duty == 1.0
    arbiter.beat(7 * SECOND)  # another one took over
    assert not executor.may_launch(7 * SECOND)


def test_a_fresh_page_is_shut_until_its_arbiter_is_heard_or_patience_ends(
    arbiter: OrderPage, executor: OrderView
) -> None:
    assert not executor.may_launch(50 * SECOND)  # however long ago it was made: patience begins now
    assert executor.order(51 * SECOND).open_until_ns == 0
    assert executor.may_launch(51 * SECOND + 1)
    arbiter.shut(52 * SECOND)
    assert not executor.may_launch(52 * SECOND)
    arbiter.abandon()
    assert executor.may_launch(52 * SECOND)


def test_a_report_arrives_whole(writer: ReportPage, reader: ReportView) -> None:
    assert reader.report() == GateReport()
    written = GateReport(1, 2, 3, 4, True, 2**40)
    assert not reader.has_news
    writer.write(written)
    assert reader.has_news
    assert reader.report() == written


def test_who_died_while_writing_is_noticed_and_replaced(writer: ReportPage, reader: ReportView) -> None:
    writer.words[8] = 1  # as a writer leaves it half-way
    assert reader.report() is None
    writer.write(GateReport(5))
    assert reader.report() == GateReport(5)


def test_nonsense_is_read_as_what_is_nearest_to_sense(writer: ReportPage, reader: ReportView) -> None:
    assert reader.is_possible
    writer.write(GateReport(-5, -1, 2**62, -7, True, -1, (-1, -2, 3, 4, 5, 6)))
    assert reader.report() == GateReport(0, 0, 1 << 24, 0, True, 0, (0, 0, 3, 4, 5, 6))
    assert not reader.is_possible


@pytest.mark.parametrize("later", [GateReport(9, 5), GateReport(10, 4), GateReport(10, 5, 1 << 25)])
def test_a_report_that_cannot_be_is_known_for_one(writer: ReportPage, reader: ReportView, later: GateReport) -> None:
    for report in (GateReport(10, 5, 3, 1), GateReport(10, 5), GateReport(11, 5), GateReport(11, 6, 1 << 20)):
        writer.write(report)
        reader.report()
        assert reader.is_possible
    writer.write(later)
    reader.report()
    assert not reader.is_possible


# --- what an executor cannot do to its arbiter ------------------------------------------------------------------------


def test_an_order_page_can_be_written_by_its_arbiter_only(arbiter: OrderPage, executor: OrderView) -> None:
    given = os.dup(arbiter.descriptor)
    with pytest.raises(PermissionError):
        mmap.mmap(given, 128)
    with pytest.raises(PermissionError):
        os.pwrite(given, b"x", 0)
    again = os.open(f"/proc/self/fd/{given}", os.O_RDWR)
    with pytest.raises(PermissionError):
        mmap.mmap(again, 128)
    with pytest.raises(PermissionError):
        os.pwrite(again, b"x", 0)
    with pytest.raises(TypeError):
        executor.words[9] = 1
    with pytest.raises(PermissionError):
        os.ftruncate(given, 0)
    with pytest.raises(PermissionError):
        fcntl.fcntl(given, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    for one in (given, again):
        os.close(one)
    arbiter.open(OpenGate("s", inf, 0, inf, 1.0), SECOND)  # it goes on
    assert executor.may_launch(SECOND)


@pytest.mark.parametrize("make", [reports.make, right_of_way.make])
@pytest.mark.parametrize("size", [0, 1 << 20])
def test_what_an_executor_can_write_keeps_its_size(make: object, size: int) -> None:
    made = make()  # type: ignore[operator]
    with pytest.raises(PermissionError):
        os.ftruncate(made, size)
    with pytest.raises(PermissionError):
        fcntl.fcntl(made, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    os.close(made)


def test_a_reader_can_not_write(reader: ReportView) -> None:
    with pytest.raises(TypeError):
        reader._page.words[9] = 1


def unsealed(size: int) -> int:
    made = os.memfd_create("page", os.MFD_ALLOW_SEALING)
    os.ftruncate(made, size)
    return made


def no_page(kind: str, path: Path) -> int:
    """Return a descriptor of what an executor might put into the place of its page."""
    if kind == "pipe":
        reading, writing = os.pipe()
        os.close(writing)
        return reading
    if kind == "socket":
        return socket.socket(socket.AF_UNIX).detach()
    if kind == "file":
        path.write_bytes(bytes(192))
        return os.open(path, os.O_RDWR)
    if kind == "fifo":
        os.mkfifo(path)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK)
    if kind == "leased":
        path.write_bytes(bytes(192))
        leased = os.open(path, os.O_RDWR)
        fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_WRLCK)  # whoever opens it is to wait for 45 s
        return leased
    if kind == "other":
        return right_of_way.make()
    return unsealed(192)


@pytest.mark.parametrize("kind", ["pipe", "socket", "file", "fifo", "leased", "other", "unsealed"])
def test_what_is_no_page_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    signal.signal(signal.SIGIO, signal.SIG_IGN)  # by which the holder of a lease hears of who opens
    put = no_page(kind, tmp_path / "put")
    with pytest.raises(OSError):  # of many kinds: whatever the system says of what it is
        ReportView(os.getpid(), put)
    for take in (OrderView, ReportPage):
        with pytest.raises((OSError, NotSealed)):
            take(put)
    os.close(put)
    with pytest.raises(FileNotFoundError):
        ReportView(os.getpid(), put)


def write_many(descriptor: int, is_enough: Event) -> None:
    page, number = ReportPage(descriptor), 0
    while not is_enough.is_set():
        number += 1
        page.write(GateReport(number, number, number, number, False, number))
    page.close()


def test_two_processes_never_see_a_torn_report(descriptor: int, reader: ReportView) -> None:
    context = multiprocessing.get_context("fork")
    is_enough = context.Event()
    process = context.Process(target=write_many, args=(descriptor, is_enough))
    process.start()
    last, seen = 0, set()
    while len(seen) < SEEN:  # however seldom both run at a time
        report = reader.report()
        if report is None:  # the writer was descheduled in the middle of a write
            continue
        values = {report.used_ns, report.ops_done, report.queued_ops, report.in_flight_ops, report.memory_bytes}
        assert len(values) == 1
        assert report.used_ns >= last
        last = report.used_ns
        seen.add(last)
    is_enough.set()
    process.join()
    assert process.exitcode == 0
