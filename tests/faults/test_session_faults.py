"""What a notebook is told when something behind it dies, and that its neighbour notices nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import commands, state
from gpu_backend.pool.settings import PoolSettings
from tests.integration.conftest import until
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[state.PoolState]:
    settings = PoolSettings(devices="cpu", lease_seconds=15.0)  # more than a neighbour is kept from the processor
    with cpu_pool(tmp_path_factory.mktemp("p"), settings) as own:
        yield own


class Program:
    """A program with remote CuPy that speaks with the test line by line."""

    def __init__(self, code: str) -> None:
        command = [sys.executable, "-u", "-c", "import kernelproxy\nkernelproxy.activate()\n" + textwrap.dedent(code)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> str:
        out, err = self.process.communicate(timeout=200)
        assert self.process.returncode == 0, err
        return out

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.communicate()


NEIGHBOUR = """
    import cupy as cp
    print("ready", float(cp.zeros(3).sum()))
    x, steps = cp.zeros(100), 0
    import select, sys
    while not select.select([sys.stdin], [], [], 0)[0]:
        x += 1
        steps += 1
        if steps % 50 == 0:
            assert float(x[7]) == steps
    print("undisturbed" if float(x.sum()) == 100 * steps else "wrong")
"""


@pytest.fixture
def neighbour(pool: state.PoolState) -> Iterator[None]:
    """Another session, computing all the while; at the end its numbers are right."""
    with Program(NEIGHBOUR) as other:
        assert other.line() == "ready 0.0"
        yield
        other.go()
        assert other.end().strip() == "undisturbed"


def executor_pid() -> str:
    return """
    import kernelproxy, tests.executor_of
    def executor():
        return tests.executor_of.pid_of(kernelproxy.current_session().ticket)
    """


@pytest.mark.usefixtures("neighbour")
def test_a_killed_executor_is_told_once_and_a_fresh_one_takes_over() -> None:
    code = (
        executor_pid()
        + """
    import cupy as cp, os, signal
    from gpu_backend.wire.errors import SessionLost
    old = cp.arange(10.0)
    print(float(old.sum()))
    for _ in range(5000):
        old = old + 1
    os.kill(executor(), signal.SIGKILL)
    try:
        print(float(old.sum()))
    except SessionLost as lost:
        print("lost:", lost)
    print(float((cp.arange(3) + 1).sum()), kernelproxy.current_session().epoch)
    try:
        print(float(old.sum()))
    except SessionLost as lost:
        print("gone:", lost)
    """
    )
    with Program(code) as program:
        out = program.end().splitlines()
    assert out[0] == "45.0"
    assert out[1].startswith("lost:")
    assert "arrays" in out[1]
    assert out[2] == "6.0 2"
    assert out[3].startswith("gone:")


@pytest.mark.usefixtures("neighbour")
@pytest.mark.parametrize("name", ["agent", "gateway"])
def test_a_killed_agent_or_gateway_is_not_noticed_by_a_running_notebook(pool: state.PoolState, name: str) -> None:
    code = """
    import cupy as cp
    x = cp.zeros(5)
    print(float(x.sum()), flush=True)
    input()
    for _ in range(3000):
        x += 1
    print(float(x.sum()))
    """
    with Program(code) as program:
        assert program.line() == "0.0"
        old = read_identity(pool.process_file(name))
        assert old is not None
        os.kill(old.pid, signal.SIGKILL)
        program.go()
        assert program.end().strip() == "15000.0"
    wait_until(lambda: read_identity(pool.process_file(name)) not in (None, old))
    until(lambda: commands.status(pool).devices != ())  # it runs before it is heard
    with Program("import cupy as cp\nprint(float(cp.ones(4).sum()))") as later:
        assert later.end().strip() == "4.0"


@pytest.mark.usefixtures("neighbour")
def test_the_session_of_a_stopped_notebook_ends_with_its_lease(pool: state.PoolState) -> None:
    with Program("import cupy as cp\nprint(float(cp.ones(1000).sum()))\ninput()") as program:
        assert program.line() == "1000.0"
        held = len(sessions(pool))
        program.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: len(sessions(pool)) < held)


@pytest.mark.usefixtures("neighbour")
def test_an_interrupt_drops_the_queue_and_the_session_goes_on_at_once() -> None:
    code = """
    import cupy as cp, signal, threading, os
    kept = cp.arange(5.0)
    big = cp.ones((800, 800))
    float(kept.sum())
    try:
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        y = big
        for _ in range(100_000):
            y = y @ big
        print(float(y[0, 0]))
    except KeyboardInterrupt:
        kernelproxy.current_session().cancel_pending()  # as the kernel does after an interrupted cell
        print(float(kept.sum()))  # all that was queued would take half an hour
    """
    with Program(code) as program:
        assert program.end() == "10.0\n"


@pytest.mark.usefixtures("neighbour")
def test_ten_gigabytes_of_a_limit_of_one_are_refused_at_their_own_line() -> None:
    code = """
    import cupy as cp
    cp.get_default_memory_pool().set_limit(size=1 << 30)
    kept = cp.ones(1000)
    try:
        cp.zeros(10 * (1 << 30), cp.uint8)
    except cp.cuda.memory.OutOfMemoryError as error:
        print(error)
    print(float(kept.sum()))
    """
    with Program(code) as program:
        refusal, kept = program.end().splitlines()
    assert "Out of memory allocating 10,737,418,240 bytes" in refusal
    assert "1,073,741,824" in refusal
    assert kept == "1000.0"
