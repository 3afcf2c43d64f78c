"""The lock that each op takes: as Python's own, in threads, and when an interrupt strikes who waits for it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any

import pytest

from kernelproxy import compiled

SECONDS = 60.0


@pytest.fixture(params=["python", "compiled"])
def lock(request: pytest.FixtureRequest) -> Any:
    """A lock of Python's own, and one of the compiled core."""
    if request.param == "python":
        return threading.RLock()
    if not compiled.is_compiled:
        pytest.skip("nothing is compiled here")
    return compiled.lock()


@contextmanager
def held_by_another(lock: Any) -> Iterator[threading.Event]:
    """Have another thread hold ``lock`` until the event is set."""
    has, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            has.set()
            may_go.wait(SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    assert has.wait(SECONDS)
    try:
        yield may_go
    finally:
        may_go.set()
        thread.join(SECONDS)


def test_it_is_taken_again_by_who_has_it(lock: Any) -> None:
    with lock, lock:
        assert lock.acquire() is True
        lock.release()
        free: list[bool] = []
        other = threading.Thread(target=lambda: free.append(lock.acquire(blocking=False)))
        other.start()
        other.join(SECONDS)
        assert free == [False]
    with held_by_another(lock):
        assert lock.acquire(False) is False


def test_who_does_not_have_it_cannot_give_it_back(lock: Any) -> None:
    with pytest.raises(RuntimeError, match="cannot release un-acquired lock"):
        lock.release()
    with held_by_another(lock), pytest.raises(RuntimeError, match="cannot release un-acquired lock"):
        lock.release()
    with pytest.raises(LookupError), lock:
        raise LookupError
    with held_by_another(lock):  # it is free again
        pass


def test_who_waits_gets_it(lock: Any) -> None:
    with held_by_another(lock) as may_go:
        threading.Timer(0.05, may_go.set).start()
        with lock:
            assert may_go.is_set()


@pytest.mark.parametrize("interval", [1e-6, 5e-3])
def test_one_thread_has_it_at_a_time(lock: Any, interval: float) -> None:
    before, inside, worst, turns = sys.getswitchinterval(), [0], [0], [0]

    def take() -> None:
        for _ in range(300):
            with lock:
                inside[0] += 1
                worst[0] = max(worst[0], inside[0])
                if turns[0] % 16 == 0:
                    sleep(0)  # the others run, and wait
                turns[0] += 1
                inside[0] -= 1

    sys.setswitchinterval(interval)
    try:
        threads = [threading.Thread(target=take) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    finally:
        sys.setswitchinterval(before)
    assert not any(thread.is_alive() for thread in threads)
    assert (turns[0], worst[0], inside[0]) == (1800, 1, 0)


def test_an_interrupt_strikes_who_waits(lock: Any) -> None:
    def strike(*_: object) -> None:
        raise KeyboardInterrupt

    def wait_and_be_struck() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        lock.acquire()

    before = signal.signal(signal.SIGALRM, strike)
    try:
        with held_by_another(lock) as may_go:
            with pytest.raises(KeyboardInterrupt):
                wait_and_be_struck()
            assert not may_go.is_set()
        with lock:
            pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_who_waits_is_not_passed_again_and_again(lock: Any) -> None:
    """Another thread takes it time and again, and runs Python under it: there it is stopped for others to run."""
    turns, is_over, has_begun = [0], threading.Event(), threading.Event()

    def take_again() -> None:
        while turns[0] < 20_000 and not is_over.is_set():
            with lock:
                for _ in range(3_000):
                    pass
                turns[0] += 1
            has_begun.set()

    thread = threading.Thread(target=take_again)
    thread.start()
    try:
        assert has_begun.wait(SECONDS)
        for _ in range(10):
            with lock:
                pass
        assert thread.is_alive(), "it was not waited for until nobody wanted it any more"
    finally:
        is_over.set()
        thread.join(SECONDS)
