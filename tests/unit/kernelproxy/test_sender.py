"""Who is told that the notebook is there, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelproxy.stream import inbox, sender
from kernelproxy.stream.sender import Sender
from tests.unit.kernelproxy.played import PlayedExecutor


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that sender and inbox see."""
    now = [100.0]
    for module in (sender, inbox):
        monkeypatch.setattr(module, "monotonic", lambda: now[0])
    return now


def test_somebody_else_is_told_while_the_executor_says_nothing(clock: list[float]) -> None:
    told: list[float] = []
    pipeline = PlayedExecutor().pipeline()
    keeper = Sender(pipeline, 10.0, lambda: told.append(clock[0]))
    keep: Callable[[], None] = keeper._keep_lease
    for clock[0] in (100.0, 109.0, 111.0, 112.0, 122.0):
        keep()
    assert told == [111.0, 122.0]


def test_nobody_else_is_told_while_the_executor_answers(clock: list[float]) -> None:
    told: list[float] = []
    executor = PlayedExecutor()
    pipeline = executor.pipeline()
    keeper = Sender(pipeline, 10.0, lambda: told.append(clock[0]))
    for clock[0] in (109.0, 118.0, 127.0, 136.0):
        pipeline.ping()
        executor.live()
        pipeline.ping()
        keeper._keep_lease()
    assert told == []
