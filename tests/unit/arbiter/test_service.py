"""The arbiter around the core: pages and rosters in, gates out; deaths on either side lose no time and shut no gate."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic_ns

import pytest

from gpu_backend.arbiter import decisions, replay, service
from gpu_backend.arbiter.decisions import CURRENT
from gpu_backend.arbiter.service import Arbiter
from gpu_backend.engine.detached import ProcessId
from gpu_backend.gate import reports
from gpu_backend.gate import roster as rosters
from gpu_backend.gate.orders import OrderView
from gpu_backend.gate.reports import GateReport, ReportPage
from gpu_backend.gate.roster import ArbiterConfig, Member, Roster
from gpu_backend.gate.terms import SessionTerms

MILLISECOND = 1_000_000


class Pages:
    """An executor's side: its report page, and the orders of the arbiter that it heard last."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.page = ReportPage(descriptor)
        self.write = self.page.write
        self.orders = OrderView(None)

    def take(self, descriptor: int) -> None:
        """Obey another arbiter."""
        self.orders.close()
        self.orders = OrderView(descriptor)

    def close(self) -> None:
        self.page.close()
        self.orders.close()
        os.close(self.descriptor)


class Bench:
    """An arbiter whose time the test moves, and executors' sides of pages."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.members: dict[str, Member] = {}
        self.pages: dict[str, Pages] = {}
        self.inherited = reports.make()  # by another process than ours
        self.heard: dict[str, object] = {}  # the seat whose orders each obeys
        self.processes: list[subprocess.Popen[bytes]] = []
        self.start("fair_share")

    def restart(self, policy: str) -> None:
        """Put another arbiter in the place of one that was killed."""
        self.arbiter.close()
        self.start(policy)

    def start(self, policy: str) -> None:
        self.arbiter = Arbiter(self.directory, ArbiterConfig(policy=policy))
        self.now = monotonic_ns()

    def join(self, session: str, user: str, pid: int = 0, **terms: object) -> Pages:
        process = ProcessId.of(pid) if pid else ProcessId.mine()
        assert process is not None
        own = SessionTerms(session=session, user=user, **terms)  # type: ignore[arg-type]
        page = self.pages[session] = Pages(self.inherited if pid else reports.make())
        nobody = str(self.directory / "nobody")
        self.members[session] = Member(own, process.pid, process.start_time, nobody, page.descriptor)
        self.publish()
        return page

    def publish(self) -> None:
        rosters.write(self.directory / rosters.ROSTER, Roster(tuple(self.members.values())))
        self.pass_time(50)

    def pass_time(self, milliseconds: float) -> None:
        self.now += int(milliseconds * MILLISECOND)
        self.arbiter.step(self.now, list(self.members))
        for session, seat in self.arbiter._seats.items():
            if self.heard.get(session) is not seat:
                self.heard[session] = seat
                self.pages[session].take(seat.orders.descriptor)

    def say(self, session: str, used_ms: float = 0, queued: int = 0, urgent: bool = False, flying: int = 0) -> None:
        """Write a report and ring."""
        self.pages[session].write(GateReport(int(used_ms * MILLISECOND), int(used_ms * 10), queued, flying, urgent))
        self.pass_time(0.05)

    def open(self) -> set[str]:
        return {session for session, page in self.pages.items() if page.orders.may_launch(self.now)}

    def close(self) -> None:
        self.arbiter.close()
        for page in self.pages.values():
            page.close()
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


@pytest.fixture
def sleeper(bench: Bench) -> Callable[[], subprocess.Popen[bytes]]:
    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[bench.inherited])
        bench.processes.append(process)
        return process

    return start


def test_idle_sessions_find_their_gates_open_and_waiting_ones_take_turns(bench: Bench) -> None:
    for session in ("a", "b", "c"):
        bench.join(session, session)
    assert bench.open() == {"a", "b", "c"}
    for session in ("a", "b"):
        bench.say(session, queued=1_000)
    held: dict[str, int] = {"a": 0, "b": 0}
    used = {"a": 0.0, "b": 0.0}
    for _ in range(200):
        (holder,) = bench.open()  # who comes now asks first
        held[holder] += 1
        used[holder] += 5
        bench.pass_time(5)
        bench.say(holder, used[holder], queued=1_000)
    assert held["a"] == pytest.approx(held["b"], abs=8)
    for session in ("a", "b"):
        bench.say(session, used[session])
    bench.pass_time(1_050)
    assert bench.open() == {"a", "b", "c"}


def test_an_urgent_op_shuts_the_hogs_gate_at_once_and_opens_it_again(bench: Bench) -> None:
    bench.join("hog", "h")
    bench.join("person", "p")
    bench.say("hog", used_ms=50, queued=1_000)
    assert "hog" in bench.open()
    bench.say("person", queued=1, urgent=True)
    assert bench.open() == {"person"}
    bench.say("person", used_ms=0.1)
    assert bench.open() == {"hog"}


def test_the_end_of_a_turn_is_not_waited_for_in_whole_milliseconds(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.join("a", "a")
    bench.join("b", "b")
    for session in ("a", "b"):
        bench.say(session, queued=1_000)
    bench.pass_time(18.9)  # of a turn of 20 ms
    waited: list[float] = []

    def wait(readers: object, writers: object, others: object, seconds: float) -> tuple[()]:
        waited.append(seconds)
        return ()

    monkeypatch.setattr(service, "monotonic_ns", lambda: bench.now)
    monkeypatch.setattr(service.select, "select", wait)
    due = bench.arbiter._decides_at() - bench.arbiter._seconds(bench.now)
    assert 0 < due < 1e-3
    assert not bench.arbiter._wait()
    assert waited == [due]


def test_who_is_alone_need_not_ring_and_others_must(bench: Bench) -> None:
    bench.join("a", "a")
    bench.join("b", "b")
    assert [bench.pages[s].orders.state & 1 for s in "ab"] == [1, 1]
    bench.say("a", queued=5)
    assert [bench.pages[s].orders.state & 1 for s in "ab"] == [0, 1]
    bench.say("b", queued=5)
    assert [bench.pages[s].orders.state & 1 for s in "ab"] == [1, 1]
    bench.say("a")
    for _ in range(4):
        bench.pass_time(50)
    assert [bench.pages[s].orders.state & 1 for s in "ab"] == [1, 0]


@pytest.mark.parametrize("policy", ["reef", "paella", "gemini", "tgs", "fifo"])
def test_who_is_alone_behind_a_shut_gate_must_ring(bench: Bench, policy: str) -> None:
    bench.restart(policy)
    page = bench.join("a", "a")
    bench.say("a", queued=1)
    assert bench.open() == {"a"}
    for used in range(1, 4):
        bench.say("a", used, queued=0)
        bench.pass_time(0.05)
        assert (bench.open() == {"a"}) != (page.orders.state & 1 == 1)  # who has no open gate rings
        bench.say("a", used, queued=1)
        assert bench.open() == {"a"}
        assert page.orders.state & 1 == 0


def test_who_queues_before_it_hears_that_it_is_to_ring_is_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.restart("reef")
    page = bench.join("a", "a")
    bench.say("a", queued=1)
    orders = bench.arbiter._seats["a"].orders
    told = orders.set_contended

    def set_contended(is_contended: bool) -> None:
        if is_contended:  # the executor reads the page just before this, believes itself alone, and rings nobody
            page.write(GateReport(int(MILLISECOND), 10, 1, 0, False))
        told(is_contended)

    monkeypatch.setattr(orders, "set_contended", set_contended)
    page.write(GateReport(int(MILLISECOND), 10, 0, 0, False))
    bench.arbiter.step(bench.now + 1, ["a"])
    assert bench.open() == {"a"}


def test_what_was_used_without_an_arbiter_is_counted_by_the_next(bench: Bench) -> None:
    bench.join("a", "ada")
    bench.say("a", used_ms=30, queued=5)
    bench.pages["a"].write(GateReport(70 * MILLISECOND, 700, 5))  # while it is gone
    bench.restart("fair_share")
    bench.pass_time(0)
    assert bench.arbiter._scheduler.used_by_user == {"ada": pytest.approx(0.040)}
    assert bench.open() == {"a"}


def test_a_killed_executor_leaves_at_once_and_what_it_used_is_counted(
    bench: Bench, sleeper: Callable[[], subprocess.Popen[bytes]]
) -> None:
    process = sleeper()
    bench.join("dead", "ada", process.pid)
    bench.join("other", "bob")
    bench.say("dead", used_ms=10, queued=1_000)
    bench.say("other", queued=1_000)
    bench.pages["dead"].write(GateReport(15 * MILLISECOND, 150, 1_000, 10))
    process.kill()
    process.wait()
    for _ in range(2):  # before its agent says anything
        bench.pass_time(50)
    used = bench.arbiter._scheduler.used_by_user["ada"]
    assert 0.015 <= used <= 0.016 + 0.001
    assert set(bench.arbiter._scheduler.sessions) == {"other"}
    assert "other" in bench.open()


def test_terms_and_departures_come_with_the_roster(bench: Bench) -> None:
    bench.join("a", "ada")
    bench.join("b", "bob")
    bench.members["a"] = Member(
        SessionTerms(session="a", user="ada", user_weight=4.0),
        *(getattr(bench.members["a"], field) for field in ("pid", "start_time", "control", "report")),
    )
    del bench.members["b"]
    bench.publish()
    sessions = bench.arbiter._scheduler.sessions
    assert list(sessions) == ["a"]
    assert sessions["a"].terms.user_weight == 4.0


def test_every_decision_on_record_comes_out_again(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    test_idle_sessions_find_their_gates_open_and_waiting_ones_take_turns(bench)
    bench.arbiter._log.flush()
    assert replay.main([str(bench.directory / CURRENT)]) == 0
    shown = capsys.readouterr().out
    assert int(shown.split()[0]) > 200
    assert "fair_share" in shown
    (bench.directory / CURRENT).write_bytes(b"x")
    assert replay.main([str(bench.directory / CURRENT)]) == 1


def test_a_record_can_be_read_as_soon_as_it_has_begun(bench: Bench) -> None:
    bench.join("a", "a")
    bench.arbiter._log.flush()
    before = decisions.read(bench.directory / CURRENT)
    assert before[1]
    bench.restart("fifo")  # it has not stepped, and flushed nothing since
    assert decisions.read(bench.directory / CURRENT) == ("fifo", [])
    assert decisions.read(bench.directory / decisions.FORMER) == before


def test_who_ends_opens_all_gates(bench: Bench) -> None:
    bench.join("a", "a")
    bench.join("b", "b")
    for session in "ab":
        bench.say(session, queued=9)
    assert len(bench.open()) == 1
    bench.arbiter.is_stopped = True
    bench.arbiter.run()
    assert bench.open() == {"a", "b"}


def test_an_arbiter_without_an_agent_ends_and_opens_all_gates(bench: Bench) -> None:
    bench.join("a", "a")
    bench.join("b", "b")
    for session in "ab":
        bench.say(session, queued=9)
    bench.arbiter._config = ArbiterConfig(policy="fair_share", orphan_seconds=0.0)
    bench.arbiter.run()
    assert bench.open() == {"a", "b"}


def test_a_log_that_has_grown_long_begins_anew_at_a_pause(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.join("a", "a")
    bench.arbiter._log._longest = 200
    bench.say("a", used_ms=1, queued=9)
    bench.say("a", used_ms=2)
    for _ in range(70):  # at rest for long
        bench.pass_time(250)
    bench.say("a", used_ms=3, queued=9)
    bench.arbiter._log.flush()
    for name in (CURRENT, "decisions.1"):
        assert replay.main([str(bench.directory / name)]) == 0
    assert bench.open() == {"a"}
    capsys.readouterr()
