"""Two devices in one notebook: a real pool with two CPU devices, and an executor that holds both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.gate import roster as rosters
from gpu_backend.gate import tally
from gpu_backend.node import arbiter as arbiters
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until

RUN = (sys.executable, "-m", "workbench", "run")
#: Computes on all devices, copies between them, and tells what came of it.
PROGRAM = """
import json, threading
import numpy as np
import cupy as cp

found = {"count": cp.cuda.runtime.getDeviceCount()}
host = np.arange(300_000, dtype="f8")
halves = []
for number in range(found["count"]):
    with cp.cuda.Device(number):
        halves.append(cp.asarray(np.array_split(host, found["count"])[number]) * (number + 1))
found["devices"] = [half.device.id for half in halves]
for _ in range(20):
    for number, half in enumerate(halves):
        with cp.cuda.Device(number):
            half += 1
sums = []
for number, half in enumerate(halves):
    with cp.cuda.Device(number):
        sums.append(half.sum())
found["sum"] = float(sum(cp.asarray(one) for one in sums))
with cp.cuda.Device(found["count"] - 1):
    found["moved"] = float(cp.asarray(halves[0])[-1])
    found["free"] = cp.cuda.runtime.memGetInfo()[0] > 0
results = {}
def work(number):
    with cp.cuda.Device(number):
        x = cp.full(1000, number + 1.0)
        for _ in range(50):
            x = x * 1.5 - 0.5 * x
        results[number] = (float(x.sum()), x.device.id)
threads = [threading.Thread(target=work, args=(number,)) for number in range(found["count"])]
[one.start() for one in threads], [one.join() for one in threads]
found["threads"] = [results[number] for number in range(found["count"])]
print(json.dumps(found))
"""
PROGRAMS_RESULT = {
    "count": 2, "devices": [0, 1], "sum": sum(range(150_000)) + 2 * sum(range(150_000, 300_000)) + 20 * 300_000,
    "moved": 149_999 + 20.0, "free": True, "threads": [[1000.0, 0], [2000.0, 1]],
}  # fmt: skip


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with cpu_pool(tmp_path_factory.mktemp("two"), PoolSettings(devices="cpu", cpu_devices=2)) as own:
        yield own


def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *words], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **more}
    )


def test_a_program_with_two_devices(pool: PoolState) -> None:
    done = run("--devices", "2", "-c", PROGRAM)
    assert done.stderr == ""
    assert json.loads(done.stdout) == PROGRAMS_RESULT
    wait_until(lambda: sessions(pool) == ())


def test_a_program_that_asks_for_none_has_one(pool: PoolState) -> None:
    done = run("-c", "import cupy as cp; print(cp.cuda.runtime.getDeviceCount()); cp.cuda.Device(1).use()")
    assert done.stdout == "1\n"
    assert done.stderr.rstrip().endswith("cudaErrorInvalidDevice: invalid device ordinal")
    wait_until(lambda: sessions(pool) == ())


def test_more_than_a_node_has_are_refused_with_what_could_be_had(pool: PoolState) -> None:
    done = run("-c", "import cupy as cp; cp.zeros(1)", GPU_WORKBENCH_DEVICES="3")
    assert "3 devices of one node were asked for; no node of this pool has more than 2 that can serve." in done.stderr
    assert sessions(pool) == ()


_AT_REST = """
import json
import cupy as cp
from gpu_backend.wire.messages import Ack
from kernelproxy.client import current

parts = []
for number in range(2):
    with cp.cuda.Device(number):
        parts.append(cp.zeros(1000))
        parts[number] += 1
cp.cuda.Device(0).synchronize()  # what comes for the first time takes long enough to be told of at once
pipeline = current().pipeline
note, told = pipeline.inbox.note, []

def listen(message, buffers):
    if isinstance(message, Ack):
        told.append((message.applied, message.done))
    return note(message, buffers)

pipeline.inbox.note = listen
for turn in range(6):
    with cp.cuda.Device(turn % 2):
        parts[turn % 2] += 1
pipeline.flush()
marks = pipeline.journal.marks
last = marks.recorded
while marks.done < last:
    with pipeline._io:
        pipeline._pump(0.1)
print(json.dumps([[applied, done] for applied, done in told if applied >= last]))
"""


def test_an_executor_says_what_all_its_devices_have_done_before_it_sleeps(pool: PoolState) -> None:
    """Or who may be ahead by no more waits until it wakes, which is a second."""
    done = run("--devices", "2", "-c", _AT_REST)
    assert done.stderr == ""
    applied, through = json.loads(done.stdout)[0]
    assert through == applied
    wait_until(lambda: sessions(pool) == ())


_MAGIC = """
import time
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
import cupy as cp

from kernelproxy import settings

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "workbench")

def take(words):
    try:
        shell.run_line_magic("gpu", f"devices {words}")
    except UsageError as error:
        return str(error)
    return cp.cuda.runtime.getDeviceCount()

def connect(words):
    try:
        return str(shell.run_line_magic("gpu", f"connect {words}").problem)
    except UsageError as error:
        return str(error)

print(take("3"))
print({take("many"), take("0"), take("9" * 20), take("9" * 5000)})
print(take("2"))
x = cp.arange(3)
print(take("2"), int(x[2]))
print("2 devices, each" in str(shell.run_line_magic("gpu", "status")))
with cp.cuda.Device(1):
    y = cp.ones(1 << 20, "u1")
    y.sum().get()
until = time.monotonic() + 60  # an executor that is not heard at once is not asked
while (used := shell.run_line_magic("gpu", "status").memory["used_bytes"]) < 1 << 20 and time.monotonic() < until:
    pass
print(used >= 1 << 20)
print(take("1").partition(" with its arrays")[2])
print(take("9 --drop-arrays"), int(x[2]))
print(connect("nonsense --drop-arrays"), int(x[2]))
print(take("1 --drop-arrays"))
known = settings.load()
print(connect(f"{known.gateway} --server-key='{known.server_key}' --drop-arrays"))
"""


def test_the_magic_takes_devices_or_says_how_many_there_are(pool: PoolState) -> None:
    done = run("-c", _MAGIC)
    assert done.stderr == ""
    refused, unclear, *rest = done.stdout.splitlines()
    assert "3 devices of one node were asked for; no node of this pool has more than 2 that can serve." in refused
    assert unclear == "{'Say how many, 1 to 64: %gpu devices 2'}"
    assert rest == [
        "2", "2 2", "True", "True", ". Add --drop-arrays to leave it.",
        "9 devices were asked for, and this pool gives a notebook 2 at most. This notebook keeps the session that it "
        "has. 2",
        "'nonsense' is no pool's address: write it like tcp://gpu.example.org:7733. 2", "1", "",
    ]  # fmt: skip
    wait_until(lambda: sessions(pool) == ())


_TURNS = """
import sys, time
import cupy as cp

count, seconds = cp.cuda.runtime.getDeviceCount(), float(sys.argv[1])
held = []
for number in range(count):
    with cp.cuda.Device(number):
        held.append(cp.zeros(200_000))
rounds, until = 0, time.monotonic() + seconds
while time.monotonic() < until:
    for number in range(count):
        with cp.cuda.Device(number):
            for _ in range(10):
                held[number] += 1
    rounds += 1
    if rounds % 7 == 0:
        cp.cuda.Device(count - 1).synchronize()
print(rounds == 0 or [float(cp.asarray(one).sum()) == 200_000 * 10.0 * rounds for one in held])
sys.stdin.read()
"""


def test_sessions_with_several_devices_take_turns_on_each(pool: PoolState) -> None:
    """Nobody waits for ever or is taken for a traitor, and each device's arbiter has on its books what ran there."""
    command = [*RUN, "--devices"]
    started = [
        subprocess.Popen(
            [*command, devices, "-c", _TURNS, "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for devices in ("2", "2", "1")
    ]
    try:
        told = [_first_line(one) for one in started]
        assert told == ["[True, True]", "[True, True]", "[True]"]
        booked = _booked(pool)
        assert sorted(len(devices) for devices in booked.values()) == [1, 2, 2]
        wait_until(lambda: all(seconds > 0 for devices in _booked(pool).values() for seconds in devices.values()))
    finally:
        for one in started:
            one.communicate("", timeout=60)
    assert [one.returncode for one in started] == [0, 0, 0]
    wait_until(lambda: sessions(pool) == ())


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _booked(pool: PoolState) -> dict[str, dict[int, float]]:
    """Return the seconds that each device's arbiter has on its books, by session and device."""
    found: dict[str, dict[int, float]] = {}
    for ordinal in (0, 1):
        directory = arbiters.directory_of(str(pool.runtime), ordinal)
        for member in rosters.read_roster(directory).members:
            seconds = tally.booked(directory, member.name).used_seconds
            found.setdefault(member.terms.session, {})[ordinal] = seconds
    return found


def test_another_agent_finds_an_executor_on_both_of_its_devices(pool: PoolState) -> None:
    command = [*RUN, "--devices", "2", "-c", _TURNS, "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert _first_line(process) == "[True, True]"
        former = read_identity(pool.process_file("agent"))
        assert former is not None
        for ordinal in (0, 1):  # whoever comes writes these anew
            (arbiters.directory_of(str(pool.runtime), ordinal) / rosters.ROSTER).unlink()
        os.kill(former.pid, signal.SIGKILL)
        wait_until(lambda: [sorted(devices) for devices in _booked(pool).values()] == [[0, 1]])
        assert read_identity(pool.process_file("agent")) != former
        process.communicate("", timeout=60)
    assert process.returncode == 0
    wait_until(lambda: sessions(pool) == ())
