"""The arbiter looks at executors from outside, and ends who computes behind a shut gate: on a played machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from signal import SIGKILL

import pytest

from gpu_backend.gate import roster as rosters
from gpu_backend.gate import verdicts
from gpu_backend.gate.reports import GateReport
from gpu_backend.gate.roster import ArbiterConfig
from gpu_backend.metering.meters import NoMeter
from gpu_backend.wire.op_classes import OP_CLASSES, OpClass
from tests.unit.arbiter.test_service import Bench, bench
from tests.unit.metering.played_processes import PlayedProcesses

__all__ = ["bench"]

CHILD = 2**22 + 1  # nobody's


@pytest.fixture
def hostile(bench: Bench) -> subprocess.Popen[bytes]:
    """A process of ours that the arbiter may end."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[bench.inherited])
    bench.processes.append(process)
    return process


@pytest.fixture
def host(bench: Bench, hostile: subprocess.Popen[bytes]) -> PlayedProcesses:
    made = PlayedProcesses()
    bench.arbiter._meter = made.meter()
    for pid in (os.getpid(), hostile.pid):
        made.start(pid, pid)
    return made


@pytest.mark.parametrize("stall", [0.0, 0.03])
@pytest.mark.parametrize("part", [0.4, 1.0])
@pytest.mark.parametrize("is_child", [False, True])
def test_who_computes_behind_a_shut_gate_is_ended_within_a_second_of_its_time(
    bench: Bench, host: PlayedProcesses, hostile: subprocess.Popen[bytes], is_child: bool, part: float, stall: float
) -> None:
    host.stall = stall
    bench.join("hog", "h")
    bench.join("bad", "b", hostile.pid)
    bench.say("hog", queued=1_000)
    assert bench.open() == {"hog"}
    for _ in range(10):  # it obeys for a while
        pass_time(bench, host)
    who = hostile.pid
    if is_child:
        who = CHILD
        host.start(CHILD, hostile.pid)
    while not bench.arbiter._seats["bad"]._is_ended:
        before = host.now
        pass_time(bench, host)
        host.burn(who, part * (host.now - before))
        assert host.used[who] <= 1.0
    assert hostile.wait() == -SIGKILL
    bench.pass_time(50)
    assert set(bench.arbiter._scheduler.sessions) == {"hog"}
    assert "kept the device busy while its gate was shut" in verdicts.noted(bench.directory, bench.members["bad"].name)


def test_copies_excuse_others_as_far_as_they_were_charged(bench: Bench) -> None:
    """What is said on a page costs nothing, and may go up and down."""
    bench.join("one", "a")
    bench.join("two", "b")
    copying = OP_CLASSES.index(OpClass.MEMORY)

    def say(used_ms: int, copied_ms: int) -> float:
        classes = [0] * len(OP_CLASSES)
        classes[copying] = copied_ms * 1_000_000
        bench.pages["one"].write(GateReport(used_ms * 1_000_000, 0, 0, 0, False, 0, tuple(classes)))
        bench.pass_time(1)
        return bench.arbiter._copied

    bench.pass_time(100)
    assert say(10, 8) == pytest.approx(0.008)
    assert say(20, 1_000) == pytest.approx(0.018), "ten were charged"
    for _ in range(5):
        say(20, 0)
        assert say(20, 5_000) == pytest.approx(0.018)
    assert bench.arbiter._seats["one"].copied == bench.arbiter._copied


def pass_time(bench: Bench, host: PlayedProcesses) -> None:
    """Let the arbiter make another step, while the hog computes."""
    before = host.now
    host.now += 0.045
    bench.say("hog", used_ms=(host.now - 1_000) * 1_000, queued=1_000)
    bench.pass_time((host.now - before) * 1_000)


class Instants(dict[str, int]):
    """When each session was looked at; counts how many of them are gone through."""

    gone_through = 0

    def __getitem__(self, session: str) -> int:
        self.gone_through += 1
        return super().__getitem__(session)

    def items(self) -> Iterator[tuple[str, int]]:  # type: ignore[override]
        for each in super().items():
            self.gone_through += 1
            yield each


def test_who_was_looked_at_of_late_costs_nothing_until_it_is_due(bench: Bench, host: PlayedProcesses) -> None:
    """Sixty-four are looked at one after another, each four times a second, and not all of them asked at each step."""
    sessions = [f"s{number}" for number in range(64)]
    for session in sessions:
        bench.join(session, session)
    for session in sessions:
        bench.say(session, queued=1_000)
    arbiter = bench.arbiter
    arbiter._looked_at = instants = Instants(arbiter._looked_at)
    looks, steps = dict.fromkeys(sessions, 0), 50
    for _ in range(steps):
        before = dict(instants)
        bench.pass_time(41)
        after = dict(instants)
        for session in sessions:
            looks[session] += after[session] != before[session]
    assert set(looks.values()) <= {7, 8}, "each is looked at as soon as it is due: 256 ms after the last time"
    assert instants.gone_through <= sum(looks.values()) + steps


def test_who_alone_wants_the_device_is_looked_at_from_afar_and_the_others_closely(
    bench: Bench, host: PlayedProcesses
) -> None:
    for session in ("hog", "idle"):
        bench.join(session, session)
    bench.say("hog", queued=1_000)
    looked_at = bench.arbiter._looked_at
    instants: dict[str, set[int]] = {"hog": set(), "idle": set()}
    for _ in range(100):
        bench.pass_time(41)
        for session, seen in instants.items():
            seen.add(looked_at[session])
    assert len(instants["hog"]) <= 3
    assert len(instants["idle"]) >= 30


def test_who_claims_hours_is_booked_the_time_that_passed_and_nobody_else_anything(
    bench: Bench, host: PlayedProcesses, hostile: subprocess.Popen[bytes]
) -> None:
    bench.join("hog", "h")
    bench.join("bad", "b", hostile.pid)
    began = host.now
    for hours in range(1, 100):
        bench.say("bad", used_ms=hours * 3_600_000, queued=1)
        pass_time(bench, host)
    booked = bench.arbiter._scheduler.used_by_user
    assert booked["b"] <= host.now - began + 1.1
    assert booked["h"] == pytest.approx(host.now - 1_000)  # what it said


def test_that_nobody_is_seen_from_outside_is_noted_for_the_agent_as_long_as_it_is_so(
    bench: Bench, host: PlayedProcesses
) -> None:
    bench.arbiter._config = ArbiterConfig(policy="fair_share", device_kind="cuda")
    rosters.note_unseen(bench.directory, "the one before saw nothing")
    bench.pass_time(250)
    assert rosters.unseen(bench.directory) == ""
    bench.arbiter._meter = NoMeter("NVML does not answer any more")
    bench.pass_time(250)
    assert rosters.unseen(bench.directory) == "NVML does not answer any more"
