"""Calls that have to wait for a place in a real pool, that are refused one, and those of processes that end."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

import kernelproxy
import workbench
from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.errors import PoolFull, PoolRefusal
from kernelproxy.client import current
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until


def own_session() -> str:
    """Return the session of whoever calls."""
    return current().session.ticket.session


def waiting(pool: PoolState) -> list[str]:
    return [one.label for one in commands.status(pool).waiting]


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    """Have a pool with room for one session."""
    with cpu_pool(tmp_path_factory.mktemp("narrow"), PoolSettings(devices="cpu", sessions_per_device=1)) as own:
        yield own
        kernelproxy.deactivate()


@contextmanager
def occupied(narrow: PoolState) -> Iterator[Future[Any]]:
    """Have the only place taken by a call, until the block is over."""
    is_over = threading.Event()

    @workbench.function
    def hold() -> str:
        is_over.wait(60)
        return own_session()

    future = hold()
    try:
        wait_until(lambda: [one.label for one in sessions(narrow)] == ["function hold"])
        yield future
    finally:
        is_over.set()
        future.result()
    wait_until(lambda: sessions(narrow) == ())


@pytest.fixture
def where() -> Any:
    @workbench.function
    def where() -> str:
        return own_session()

    return where


def test_in_a_full_pool_a_call_waits_until_there_is_a_place(narrow: PoolState, where: Any) -> None:
    with occupied(narrow) as first:
        second = where()
        wait_until(lambda: waiting(narrow) == ["function where"])
        assert not second.running()
        assert len(sessions(narrow)) == 1
    assert second.result(60) != first.result()


def test_a_call_that_waits_can_be_cancelled(narrow: PoolState, where: Any) -> None:
    with occupied(narrow):
        future = where()
        wait_until(lambda: waiting(narrow) == ["function where"])
        assert future.cancel()
        wait_until(lambda: waiting(narrow) == [])
    assert future.cancelled()


def test_a_timeout_says_what_is_full(narrow: PoolState, where: Any) -> None:
    with occupied(narrow), pytest.raises(PoolFull, match=r"where waited 0 s .* 1 of 1 places .* longer timeout"):
        where.options(timeout=0)().result(60)
    assert where.options(timeout=0)().result(60), "a place that is free is taken"


_PROGRAM = """
    import sys, threading
    import workbench
    from kernelproxy.session import waiting

    waiting._FAREWELL_SECONDS = 60  # as long as it takes a busy machine to hear that it leaves

    begun = threading.Event()

    @workbench.function
    def run():
        import cupy as cp
        x = cp.ones(3)
        begun.set()
        while True:
            float(x.sum())

    @workbench.function
    def never():
        raise AssertionError

    run()
    begun.wait()
    never()
    print("begun", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("end", ["exit", "SIGTERM", "SIGKILL"])
def test_a_process_that_ends_holds_nothing(narrow: PoolState, end: str) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_PROGRAM)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert program.stdin is not None
    assert program.stdout is not None
    with program.stdin, program.stdout:
        assert program.stdout.readline() == "begun\n"
        wait_until(lambda: (len(sessions(narrow)), waiting(narrow)) == (1, ["function never"]))
        if end == "exit":
            program.stdin.close()
        else:
            program.send_signal(getattr(signal, end))
        assert program.wait(60) == (0 if end == "exit" else -getattr(signal, end))
    if end == "exit":
        assert waiting(narrow) == [], "it left the queue before it ended"
    wait_until(lambda: (sessions(narrow), waiting(narrow)) == ((), []))


@pytest.fixture(scope="module")
def strict(narrow: PoolState, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    """Have a pool that allows a user two sessions and a quarter of a device."""
    settings = PoolSettings(devices="cpu", max_sessions_per_user=2, largest_limit=0.25)
    with cpu_pool(tmp_path_factory.mktemp("strict"), settings) as own:
        yield own


def test_as_many_run_at_once_as_the_quota_allows(strict: PoolState, where: Any) -> None:
    """Of two functions that have more calls than the quota allows, none is refused."""
    other = where.options()
    futures = [one() for _ in range(3) for one in (where, other)]
    assert len({future.result(60) for future in futures}) == 6


def test_a_call_does_not_wait_for_those_that_wait_for_it(strict: PoolState) -> None:
    @workbench.function
    def outer(depth: int) -> Any:
        return outer(depth + 1).result(60)

    with pytest.raises(PoolRefusal, match="2 of 2 sessions"):
        outer(1).result(60)


def test_more_than_one_may_have_is_refused_by_the_pool(strict: PoolState, where: Any) -> None:
    with pytest.raises(PoolRefusal, match=r"up to 0\.5 of a device.*0\.25 is the most"):
        where.options(gpu=0.5)().result(60)
    assert where.options(gpu=0.2)().result(60)
