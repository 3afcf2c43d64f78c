"""What an executor and all that it started have used is seen soon, whoever else is on the machine and however busy."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpu_backend.metering import meters
from gpu_backend.metering.audit import Conduct
from gpu_backend.metering.meters import Processes, ProcessorMeter
from gpu_backend.metering.watch import Watch
from tests.integration.notebook_pool import wait_until
from tests.unit.metering.played_processes import PlayedProcesses

EXECUTOR, CHILD, FIRST = 100, 200, 1_000
#: How often an arbiter looks while others want the device, seconds.
LOOK = 0.09


@pytest.fixture
def host() -> PlayedProcesses:
    made = PlayedProcesses()
    for pid in range(1, 60):
        made.start(pid, 1)
    made.start(EXECUTOR, EXECUTOR)
    return made


def burnt_at_its_end(host: PlayedProcesses, meter: ProcessorMeter, pids: list[int], part: float) -> float:
    """Have processes compute behind a shut gate for ``part`` of the time, in turns; return what they used by then."""
    used, conduct = 0.0, Conduct(most_burnt=meter.most_burnt)
    watch = Watch(meter, EXECUTOR, int(host.now * 1e9))
    for number in range(1_000):
        began = host.now
        host.now += LOOK
        host.burn(pids[number % len(pids)], part * LOOK)
        used += part * LOOK
        if conduct.offence(watch.look(int(host.now * 1e9), False, 0, 0)):
            return used
        stalled = part * (host.now - began - LOOK)  # it goes on while the arbiter is held up
        host.burn(pids[number % len(pids)], stalled)
        used += stalled
    raise AssertionError("It went on for ever.")


@pytest.mark.parametrize("stall", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("part", [0.3, 0.6, 1.0])
def test_who_has_a_child_compute_is_ended_within_a_second_of_its_time(
    host: PlayedProcesses, part: float, stall: float
) -> None:
    """However long each look is held up: others want the processors too."""
    host.stall = stall
    meter = host.meter()
    assert meter.seen(EXECUTOR) == 0
    host.start(CHILD, EXECUTOR)
    assert 0.4 <= burnt_at_its_end(host, meter, [CHILD], part) <= 1.0


def test_where_many_processes_run_a_child_is_found_as_soon(host: PlayedProcesses) -> None:
    for pid in range(FIRST, FIRST + 2_000):
        host.start(pid, 1)
    meter = host.meter()
    assert meter.seen(EXECUTOR) == 0
    host.read.clear()
    host.start(CHILD, EXECUTOR)
    assert 0.4 <= burnt_at_its_end(host, meter, [CHILD], 1.0) <= 1.0
    assert set(host.read) == {CHILD}, "an executor's own time is read off its clock"


def test_many_children_count_together(host: PlayedProcesses) -> None:
    meter = host.meter()
    assert meter.seen(EXECUTOR) == 0
    children = list(range(FIRST, FIRST + 100))
    for pid in children:
        host.start(pid, EXECUTOR)
    assert 0.4 <= burnt_at_its_end(host, meter, children, 1.0) <= 1.0


def test_who_starts_more_than_can_be_followed_counts_as_computing(host: PlayedProcesses) -> None:
    meter = host.meter()
    assert meter.seen(EXECUTOR) == 0
    children = list(range(FIRST, FIRST + 400))
    for pid in children:
        host.start(pid, EXECUTOR)
    assert 0.4 <= burnt_at_its_end(host, meter, children[-1:], 1.0) <= 1.0
    for pid in children[:-1]:
        host.end(pid)
    before = meter.seen(EXECUTOR)
    assert before is not None
    for _ in range(2):  # those that found no room are not forgotten
        host.now += 1.0
        meter.seen(EXECUTOR)
    host.burn(children[-1], 0.5)
    assert meter.seen(EXECUTOR) == pytest.approx(before + host.used[children[-1]], abs=0.02)


def test_who_ended_is_still_counted_and_a_number_used_again_is_not(host: PlayedProcesses) -> None:
    meter = host.meter()
    meter.seen(EXECUTOR)
    host.start(CHILD, EXECUTOR)
    host.burn(CHILD, 0.3)
    host.now += 1.0
    assert meter.seen(EXECUTOR) == pytest.approx(0.3)
    host.end(CHILD)
    host.start(CHILD, 1)
    host.burn(CHILD, 9.0)
    host.now += 1.0
    assert meter.seen(EXECUTOR) == pytest.approx(0.3)
    host.end(EXECUTOR)
    assert meter.seen(EXECUTOR) is None


def test_who_was_there_before_its_leader_was_looked_at_counts_too(host: PlayedProcesses) -> None:
    meter = host.meter()
    meter.seen(1)
    host.start(CHILD, EXECUTOR)
    host.now += 1.0
    meter.seen(1)
    meter.seen(EXECUTOR)
    host.burn(CHILD, 0.2)
    assert meter.seen(EXECUTOR) == pytest.approx(0.2)


def test_a_real_child_is_seen_and_a_process_that_is_not_there_is_not() -> None:
    program = "import os, signal\nif os.fork(): signal.pause()\nwhile True: sum(range(100_000))"
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as leader:
        try:
            meter = ProcessorMeter()
            wait_until(lambda: (meter.seen(leader.pid) or 0.0) - (own_seconds(leader.pid)) >= 0.1)
        finally:
            os.killpg(leader.pid, signal.SIGKILL)
    assert meter.seen(leader.pid) is None


def test_a_clock_tells_what_the_list_of_processes_tells() -> None:
    processes, own = Processes(), os.getpid()
    while time.process_time() < 0.05:
        pass
    before, told, after = processes.ticks(own), processes.seconds(own), processes.ticks(own)
    assert before is not None
    assert told is not None
    assert after is not None
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert before[1] * tick - 2 * tick <= told <= after[1] * tick + 2 * tick
    with subprocess.Popen(["true"]) as gone:
        pass
    assert processes.seconds(gone.pid) is None


def test_where_nobody_is_shown_anothers_clock_the_list_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(clock: int) -> float:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(meters, "clock_gettime", hidden)
    found = Processes().ticks(os.getpid())
    told = Processes().seconds(os.getpid())
    assert found is not None
    assert told is not None
    assert told >= found[1] / os.sysconf("SC_CLK_TCK")


def own_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
