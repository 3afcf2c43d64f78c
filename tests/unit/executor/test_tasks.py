"""Calls that call back, without a wire."""

from __future__ import annotations

import gc
import threading

import pytest

from gpu_backend.executor.tasks import CallbackFailed, NotebookFunction, Task


def nothing() -> None:
    """What a device without threads of its own does."""


def running() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "call that calls back"}


def test_a_call_asks_and_goes_on() -> None:
    ask = NotebookFunction(7)
    task = Task(nothing, lambda a, b: ask(a, key=b) + ask(b), (1, 2), {})
    assert task.advance() == (task, 7, (1,), {"key": 2})
    assert task.resume(True, 10) == (task, 7, (2,), {})
    assert task.resume(True, 5) == (None, 15)


def test_the_function_of_the_notebook_raised() -> None:
    ask = NotebookFunction(1)
    task = Task(nothing, lambda: ask(), (), {})
    task.advance()
    with pytest.raises(CallbackFailed, match="ValueError: no"):
        task.resume(False, "ValueError: no")
    with pytest.raises(CallbackFailed, match="over"):
        task.resume(True, 1)


def test_an_error_of_the_call_itself_comes_out() -> None:
    with pytest.raises(ZeroDivisionError):
        Task(nothing, lambda: 1 // 0, (), {}).advance()


def test_a_call_that_nobody_goes_on_with_ends() -> None:
    ask = NotebookFunction(1)
    before = running()
    task = Task(nothing, lambda: ask(), (), {})
    task.advance()
    (thread,) = running() - before  # those of earlier calls may be ending still
    del task
    gc.collect()
    thread.join(90)
    assert not thread.is_alive()


def test_outside_of_a_call_there_is_nobody_to_ask() -> None:
    with pytest.raises(CallbackFailed, match="outside"):
        NotebookFunction(1)()
