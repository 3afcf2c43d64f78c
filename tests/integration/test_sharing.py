"""Users share a device of a real pool: gates open and shut, and nothing that dies leaves one shut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from gpu_backend.arbiter import decisions
from gpu_backend.arbiter.events import OpenGate, Reported, SessionLeft, ShutGate
from gpu_backend.engine.detached import ProcessId, read_identity
from gpu_backend.gate import roster as rosters
from gpu_backend.gate.reports import GateReport, ReportView
from gpu_backend.node import launcher
from gpu_backend.pool import commands, shares
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from gpu_backend.transport.asking import ask
from gpu_backend.wire.control import AskUsage, CloseSession
from gpu_backend.wire.views import UsageView
from tests.integration.notebook_pool import cpu_pool, wait_until

HOG = """
import cupy as cp
x = cp.ones(20_000)
while True:
    for _ in range(200):
        x = x * 1.0
    float(x[0])
"""
#: Has more to do than the device can, always, however seldom the notebook is let have a processor.
ALWAYS = """
while True:
    for _ in range({ops}):
        x = cp.sin(x)
    float(x[0])
"""
PERSON = """
import time, cupy as cp
x = cp.ones(10)
print(float(x.sum()), flush=True)
while True:
    time.sleep(0.02)
    float(x[0])
"""
INTERRUPTED = """
import cupy as cp
print('here', flush=True)
try:
    float(cp.ones(3).sum())
except KeyboardInterrupt:
    print('interrupted', flush=True)
"""


#: A sum of booked parts may lie so much below what was used, seconds: each was rounded.
_ROUNDED = 1e-9


class Device:
    """The shared device of a pool, seen through its arbiter's files and its executors' pages."""

    def __init__(self, pool: PoolState) -> None:
        self.pool = pool
        self.directory = pool.runtime / "a" / "0"
        self.notebooks: list[subprocess.Popen[str]] = []

    def start(self, program: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", f"import kernelproxy; kernelproxy.activate()\n{program}"]
        notebook = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.notebooks.append(notebook)
        return notebook

    def executors(self) -> dict[str, Path]:
        """Return the directories of executors that serve, by session, in the order in which they came."""
        found = {}
        for directory in launcher.directories(str(self.pool.runtime)):
            order = launcher.assignment_in(directory)
            if order is not None and launcher.is_serving(directory):
                found[order.session] = directory
        return found

    def report(self, session: str) -> GateReport:
        """Return what an executor that runs wrote last, once it has written all of it."""
        whole: list[GateReport] = []

        def is_whole() -> bool:
            whole.extend(filter(None, [self.page(session)]))
            return bool(whole)

        wait_until(is_whole)
        return whole[0]

    def page(self, session: str) -> GateReport | None:
        """Return what an executor wrote last; None if it is at it, and may have been kept from the processor there."""
        directory = self.executors()[session]
        config, process = launcher.config_in(directory), launcher.process_in(directory)
        assert config is not None
        assert process is not None
        with closing(ReportView(process.pid, config.descriptors.report)) as page:
            return page.report()

    def stop(self, session: str) -> GateReport:
        """Stop an executor that has ops queued, and return what it wrote last: nothing follows that."""
        process = launcher.process_in(self.executors()[session])
        assert process is not None
        while True:
            os.kill(process.pid, signal.SIGSTOP)
            wait_until(lambda: _state(process.pid) == "T")
            last = self.page(session)  # none if it was just writing it
            if last is not None and last.queued_ops:
                return last
            os.kill(process.pid, signal.SIGCONT)
            self.wait_for_progress(session, 1)

    def gates(self) -> Iterator[frozenset[str]]:
        """Yield which sessions' gates were open, after each decision on record, the latest last."""
        is_open: set[str] = set()
        for decision in decisions.read(self.directory / decisions.CURRENT)[1]:
            for one in decision.instructions:
                (is_open.add if isinstance(one, OpenGate) else is_open.discard)(one.session.partition("/")[0])
            if isinstance(decision.event, SessionLeft):
                is_open.discard(decision.event.session.partition("/")[0])
            yield frozenset(is_open)

    def members(self) -> set[str]:
        if not self.directory.exists():
            return set()
        return {member.terms.session.partition("/")[0] for member in rosters.read_roster(self.directory).members}

    def arbiter(self) -> ProcessId | None:
        return read_identity(self.directory / rosters.PROCESS)

    def wait_for(self, count: int) -> list[str]:
        """Wait until so many sessions compute, and return them."""
        wait_until(lambda: len(self.executors()) == count and len(self.members()) == count)
        wait_until(lambda: all(self.report(session).ops_done for session in self.executors()))
        return list(self.executors())

    def wait_for_progress(self, session: str, ops: int = 50) -> None:
        before = self.report(session).ops_done
        wait_until(lambda: self.report(session).ops_done >= before + ops)

    def booked(self, session: str) -> float:
        """Return the GPU time on a session's account, seconds."""
        view = ask(commands.operator_door(self.pool), AskUsage(0, by="session"))
        assert isinstance(view, UsageView)
        return sum(row.gpu_seconds for row in view.rows if row.session == session)

    def clear(self) -> None:
        """End all notebooks and their sessions."""
        for notebook in self.notebooks:
            notebook.kill()
            notebook.communicate()
        self.notebooks.clear()
        for session in commands.status(self.pool).sessions:
            ask(commands.operator_door(self.pool), CloseSession(0, session.session))
        wait_until(lambda: not self.members() and not self.executors())


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def device(root: Path, **settings: object) -> Iterator[Device]:
    with cpu_pool(root, PoolSettings(devices="cpu", **settings)) as pool:  # type: ignore[arg-type]
        made = Device(pool)
        try:
            yield made
        finally:
            made.clear()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    with device(tmp_path_factory.mktemp("fair")) as made:
        yield made


@pytest.fixture
def fair(lasting: Device) -> Iterator[Device]:
    """A device under fair_share on which nobody computes when a test begins, however the one before it ended."""
    yield lasting
    lasting.clear()


def test_two_hogs_take_turns_and_whatever_dies_no_gate_stays_shut(fair: Device) -> None:
    for _ in range(2):
        fair.start(HOG)
    first, second = fair.wait_for(2)
    # Turns: each is open while the other is shut, and both work.
    turns = {frozenset({first}), frozenset({second})}
    wait_until(lambda: turns <= set(fair.gates()))
    for session in (first, second):
        fair.wait_for_progress(session)

    # The arbiter is killed: another takes its place, and both work on.
    old = fair.arbiter()
    assert old is not None
    os.kill(old.pid, signal.SIGKILL)
    wait_until(lambda: fair.arbiter() not in (None, old))
    for session in (first, second):
        fair.wait_for_progress(session)
    wait_until(lambda: turns <= set(fair.gates()))  # a record of its own

    # An executor is killed: the other has the device to itself.
    last = fair.stop(first)
    assert last.used_ns > 0
    process = launcher.process_in(fair.executors()[first])
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: fair.booked(first) > last.used_ns / 1e9 - _ROUNDED)
    wait_until(lambda: fair.members() == {second})
    fair.wait_for_progress(second, 500)
    wait_until(lambda: list(fair.gates())[-1] == {second})
    assert commands.status(fair.pool).devices[0].policy == "fair_share"


def test_two_notebooks_of_one_user_that_want_the_device_have_equal_time(fair: Device) -> None:
    """Whatever their ops are: each has half within a twentieth, of five seconds or, as the machine lets them, of more.

    Who is kept from the processor is behind for a while. What five seconds hold is told in played time
    (`tests/unit/arbiter/test_played_device.py`).
    """
    for elements, ops in ((2_000_000, 3), (300_000, 40)):
        fair.start(f"import cupy as cp\nx = cp.ones({elements})\n{ALWAYS.format(ops=ops)}")
    first, second = fair.wait_for(2)

    def used() -> tuple[float, float]:
        return fair.report(first).used_ns / 1e9, fair.report(second).used_ns / 1e9

    alone = used()
    wait_until(lambda: sum(used()) >= sum(alone) + 1.0)  # whoever came first was alone for a while
    for _ in range(2):
        before = used()

        def is_even(before: tuple[float, float] = before) -> bool:
            one, other = (now - then for now, then in zip(used(), before, strict=True))
            return one + other >= 5.0 and abs(one - other) <= 0.05 * (one + other)

        wait_until(is_even)


def test_the_hogs_gate_shuts_when_somebody_waits_for_a_short_op(fair: Device) -> None:
    fair.start(HOG)
    (session,) = fair.wait_for(1)
    fair.wait_for_progress(session)
    wait_until(lambda: list(fair.gates())[-1] == {session})

    def hog_is_shut() -> bool:
        """Tell whether the record has it: seen from here it lasts too short a time."""
        _, logged = decisions.read(fair.directory / decisions.CURRENT)
        return any(
            isinstance(decision.event, Reported)
            and decision.event.is_urgent
            and any(one.session.startswith(session) for one in decision.instructions if isinstance(one, ShutGate))
            for decision in logged
            if not getattr(decision.event, "session", session).startswith(session)
        )

    while not hog_is_shut():  # each new person rings with their first op; the hog may just be kept from the processor
        person = fair.start(PERSON)
        assert person.stdout is not None
        assert person.stdout.readline() == "10.0\n"
        person.kill()
        person.wait()
    fair.wait_for_progress(session)


def test_a_share_that_the_operator_changes_reaches_the_arbiter(fair: Device) -> None:
    fair.start(HOG)
    fair.wait_for(1)
    (member,) = rosters.read_roster(fair.directory).members
    assert member.terms.user_weight == 1.0
    shares.set_shares(fair.pool, "user", member.terms.user, {"weight": "3"})
    wait_until(lambda: rosters.read_roster(fair.directory).members[0].terms.user_weight == 3.0)
    shares.set_shares(fair.pool, "user", member.terms.user, {"weight": "1"})


def test_the_agent_dies_and_the_next_one_adopts_the_arbiter(fair: Device) -> None:
    arbiter = fair.arbiter()
    agent = read_identity(fair.pool.process_file("agent"))
    assert agent is not None
    os.kill(agent.pid, signal.SIGKILL)
    wait_until(lambda: read_identity(fair.pool.process_file("agent")) not in (None, agent))
    fair.start(HOG)
    (session,) = fair.wait_for(1)
    fair.wait_for_progress(session)
    assert fair.arbiter() == arbiter


def test_behind_a_shut_gate_a_cell_can_be_interrupted(tmp_path: Path) -> None:
    """Under ``fifo`` the first to come holds the device; who waits is still heard, and lets go when told to."""
    with device(tmp_path, policy="fifo", stop_seconds=0.5) as fifo:
        fifo.start(HOG)
        (holder,) = fifo.wait_for(1)
        fifo.wait_for_progress(holder)
        fifo.stop(holder)  # else its queue might run dry, where its notebook is kept from the processor
        waiting = fifo.start(INTERRUPTED)
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "here\n"
        wait_until(lambda: len(fifo.members()) == 2)
        (late,) = fifo.members() - {holder}
        wait_until(lambda: late in fifo.executors() and fifo.report(late).queued_ops > 0)
        assert fifo.report(late).ops_done == 0  # not even the first, before the arbiter had heard of it
        waiting.send_signal(signal.SIGINT)
        assert waiting.stdout.readline() == "interrupted\n"
        assert commands.status(fifo.pool).devices[0].policy == "fifo"


def test_where_the_driver_shares_there_is_no_arbiter_and_use_is_measured_all_the_same(tmp_path: Path) -> None:
    with device(tmp_path, policy="fifo", device_policies={0: "driver"}) as plain:
        plain.start(HOG)
        wait_until(lambda: len(plain.executors()) == 1)
        (session,) = plain.executors()
        plain.wait_for_progress(session)
        assert plain.report(session).used_ns > 0
        assert not plain.directory.exists()
        assert commands.status(plain.pool).devices[0].policy == "driver"


def test_an_unknown_policy_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="no policy 'fairest'; installed are fair_share"):
        PoolSettings(policy="fairest")
    with pytest.raises(ValueError, match="no policy 'best'"):
        PoolSettings(device_policies={1: "best"})
    assert msgspec.json.decode(PoolSettings(device_policies={1: "tgs"}).model_dump_json())["device_policies"]
