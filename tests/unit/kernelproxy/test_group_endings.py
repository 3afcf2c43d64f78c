"""The end of a process that is in groups: it waits for what was asked for, and for no more than some seconds in all."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import util
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_backend.wire.errors import SessionLost
from kernelproxy.namespace.process_group import ending


class Clock:
    """Seconds pass as somebody reads."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Client:
    """One whose executor is done after so many seconds; whose connection is sound for so many."""

    def __init__(self, clock: Clock, seconds: float, is_sound_for: float = 1e9) -> None:
        self.clock, self.until, self.sound_until = clock, seconds, is_sound_for
        self.parts: dict[Any, Any] = {}
        self.pipeline: Any = self
        self.open_batch = SimpleNamespace(first=7)
        self.drained = 0

    def part(self, kind: Callable[[Any], Any]) -> Any:
        return self.parts.setdefault(kind, kind(self))

    def drain(self) -> None:
        self.drained += 1

    @property
    def is_draining(self) -> bool:
        return self.clock() < self.until

    @property
    def connection(self) -> Any:
        return SimpleNamespace(is_sound=self.clock() < self.sound_until)

    def read(self, seconds: float) -> None:
        assert self.connection.is_sound, "it is asked for ever, and never waits"
        self.clock.now += seconds

    def group(self, error: Exception | None = None) -> Any:
        def check() -> None:
            if error is not None:
                raise error

        return SimpleNamespace(client=self, check=check)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(ending, "monotonic", made)
    monkeypatch.setattr(ending._Registered, "process", 0)
    monkeypatch.setattr(util, "Finalize", lambda *of, **more: None)
    yield made
    atexit.unregister(ending._finish_all)


def ends(monkeypatch: pytest.MonkeyPatch, *clients: Client) -> None:
    monkeypatch.setattr(ending, "clients", lambda: list(clients))
    ending._finish_all()


def test_the_end_waits_for_what_was_asked_for(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(clock, 3.0)
    ending.finish_at_end(client.group())
    ends(monkeypatch, client)
    assert clock.now == pytest.approx(3.0, abs=0.1)


def test_all_groups_together_are_waited_for_once(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = [Client(clock, 1e9) for _ in range(3)]
    groups = [client.group() for client in clients for _ in range(4)]
    for group in groups:
        ending.finish_at_end(group)
    ends(monkeypatch, *clients)
    assert clock.now == pytest.approx(10.0, abs=0.1)
    assert all(client.drained for client in clients)
    before = clock.now
    ends(monkeypatch, *clients)  # as `multiprocessing` has it done, besides
    ending.finish(groups[0])
    assert clock.now == pytest.approx(before, abs=0.1)


def test_what_is_asked_for_later_is_waited_for_again(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(clock, 12.0)
    group = client.group()
    ending.finish(group)
    client.open_batch.first += 1
    ending.finish(group)
    assert clock.now == pytest.approx(12.0, abs=0.1)


def test_a_broken_connection_is_not_waited_for(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(clock, 1e9, is_sound_for=2.0)
    ending.finish_at_end(client.group())
    ends(monkeypatch, client)
    assert clock.now == pytest.approx(2.0, abs=0.1)


def test_a_session_that_is_over_is_not_waited_for(clock: Clock) -> None:
    ending.finish(Client(clock, 1e9).group(SessionLost("it is over")))
    assert clock.now == 0.0


def test_it_is_asked_for_once_in_each_process(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(util, "Finalize", lambda *of, **more: asked.append(of))
    client = Client(clock, 0.0)
    for process in (11, 11, 12):
        monkeypatch.setattr(os, "getpid", partial(int, process))
        ending.finish_at_end(client.group())
    assert len(asked) == 2
