"""Two executors' channels in one process, and how each waits."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from time import monotonic

import pytest

from gpu_backend.executor import channels as module
from gpu_backend.executor.channels import Awaits, Channels
from gpu_backend.wire.channels import Piece
from tests.unit.transport.ways import Ways

#: The name of the channel between both sides, and of another.
NAME, OTHER = "n" * 32, "o" * 32


class Side:
    """One executor's channels, and how it waits."""

    def __init__(self) -> None:
        self.poll = select.epoll()
        self.channels = Channels(self.poll)

    def step(self, seconds: float = 0.0) -> None:
        self.channels.push()
        if seconds:
            self.channels.doze()
        self.channels.look({descriptor for descriptor, _ in self.poll.poll(seconds)})


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Side, Side]]:
    made = Side(), Side()
    yield made
    monkeypatch.setattr(module, "_LEAVE_SECONDS", 0.0)  # one thread is both
    for one in made:
        one.channels.close()
        one.poll.close()


@pytest.fixture(params=["local", "socket", "tls"])
def ways(request: pytest.FixtureRequest) -> Iterator[Ways]:
    made = Ways(request.param)
    yield made
    made.close()


def until(done: Callable[[], bool], *sides: Side) -> None:
    """Step ``sides`` until something is so."""
    end = monotonic() + 90
    while not done():
        assert monotonic() < end
        for one in sides:
            one.step(0.001)


def has_come(lacking: Callable[[], object]) -> bool:
    try:
        lacking()
    except Awaits:
        return False
    return True


def met(ways: Ways, sides: tuple[Side, Side], name: str = NAME) -> None:
    """Let the second side have reached the first."""
    near, far = ways.channel()
    a, b = sides
    a.channels.admit(far)
    b.channels._under_proof += 1
    b.channels._reached.put(module._Reached(name, near))
    until(lambda: has_come(lambda: b.channels.failure(name, True)) and name in a.channels._named, a, b)
    assert b.channels.failure(name, False) == ""


def sent(side: Side, number: int, content: bytes, name: str = NAME) -> None:
    channel = side.channels.to(name)
    assert channel is not None
    channel.send(Piece(number), content)
