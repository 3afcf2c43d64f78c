"""The page between an arbiter and an executor: whole values, one writer each, open when the arbiter is gone."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from gpu_backend.arbiter.events import OpenGate
from gpu_backend.arbiter.gate import ArbiterPage, ExecutorPage, GateReport, NotAGate, create

SECOND = 1_000_000_000
WRITES = 3_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create(tmp_path / "gate")
    return tmp_path / "gate"


@pytest.fixture
def arbiter(path: Path) -> Iterator[ArbiterPage]:
    page = ArbiterPage(path)
    yield page
    page.close()


@pytest.fixture
def executor(path: Path) -> Iterator[ExecutorPage]:
    page = ExecutorPage(path, patience_ns=SECOND)
    yield page
    page.close()


def test_an_order_arrives_whole(arbiter: ArbiterPage, executor: ExecutorPage) -> None:
    arbiter.open(OpenGate("s", 2.5, 8, 0.25, 0.5), 7 * SECOND, origin_ns=5 * SECOND)
    order = executor.order(7 * SECOND)
    assert (order.open_until_ns, order.window_ops, order.use_until_ns) == (7_500_000_000, 8, SECOND // 4)
    assert order.duty == 0.5
    assert executor.may_launch(7_400_000_000)
    assert not executor.may_launch(7_600_000_000)


def test_a_shut_gate_stays_shut_while_the_arbiter_lives(arbiter: ArbiterPage, executor: ExecutorPage) -> None:
    arbiter.open(OpenGate("s", inf, 0, inf, 1.0), SECOND)
    assert executor.may_launch(SECOND)
    arbiter.shut(SECOND)
    for now in range(SECOND, 20 * SECOND, SECOND // 2):
        arbiter.beat(now)
        assert not executor.may_launch(now)


def test_a_dead_arbiters_gate_opens_itself(arbiter: ArbiterPage, executor: ExecutorPage) -> None:
    arbiter.shut(5 * SECOND)
    assert not executor.may_launch(6 * SECOND)
    assert executor.may_launch(6 * SECOND + 1)
    assert executor.order(6 * SECOND + 1).duty == 1.0
    arbiter.beat(7 * SECOND)  # another one took over
    assert not executor.may_launch(7 * SECOND)


def test_a_fresh_page_is_shut_until_its_arbiter_is_heard_or_patience_ends(
    arbiter: ArbiterPage, executor: ExecutorPage
) -> None:
    assert not executor.may_launch(50 * SECOND)  # however long ago it was made: patience begins now
    assert executor.order(51 * SECOND).open_until_ns == 0
    assert executor.may_launch(51 * SECOND + 1)
    arbiter.shut(52 * SECOND)
    assert not executor.may_launch(52 * SECOND)
    arbiter.abandon()
    assert executor.may_launch(52 * SECOND)


def test_a_report_arrives_whole(arbiter: ArbiterPage, executor: ExecutorPage) -> None:
    assert arbiter.report() == GateReport()
    written = GateReport(1, 2, 3, 4, True, 2**40)
    executor.write(written)
    assert arbiter.report() == written


def test_who_died_while_writing_is_noticed_and_replaced(arbiter: ArbiterPage, executor: ExecutorPage) -> None:
    executor._words[24] = 1  # as a writer leaves it half-way
    assert arbiter.report() is None
    executor.write(GateReport(5))
    assert arbiter.report() == GateReport(5)
    arbiter._words[8] |= 1
    assert executor.order(0).open_until_ns > 2**62


def test_what_is_no_page_is_refused(tmp_path: Path, path: Path) -> None:
    (tmp_path / "short").write_bytes(b"1")
    (tmp_path / "other").write_bytes(bytes(320))
    for name in ("short", "other"):
        with pytest.raises(NotAGate, match=name):
            ArbiterPage(tmp_path / name)
    with pytest.raises(FileExistsError):
        create(path)
    assert path.stat().st_mode & 0o777 == 0o600


def write_many(path: str) -> None:
    page = ExecutorPage(Path(path))
    for number in range(1, WRITES + 1):
        page.write(GateReport(number, number, number, number, False, number))
    page.close()


def test_two_processes_never_see_a_torn_report(path: Path, arbiter: ArbiterPage) -> None:
    writer = multiprocessing.get_context("spawn").Process(target=write_many, args=(str(path),))
    writer.start()
    last, seen = 0, set()
    while last < WRITES:
        report = arbiter.report()
        if report is None:  # the writer was descheduled in the middle of a write
            continue
        values = {report.used_ns, report.ops_done, report.queued_ops, report.in_flight_ops, report.memory_bytes}
        assert len(values) == 1
        assert report.used_ns >= last
        last = report.used_ns
        seen.add(last)
    writer.join(30)
    assert writer.exitcode == 0
    assert len(seen) > 1
