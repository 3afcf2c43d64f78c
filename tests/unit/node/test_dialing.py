"""Connections that an agent opens for an executor, which can open none."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from gpu_backend.node import dialing as module
from gpu_backend.node.dialing import Dialing
from gpu_backend.transport import local, reaching
from gpu_backend.transport.reaching import NotReached
from gpu_backend.wire.channels import DialChannel, TakeChannel
from tests.spare_ports import spare_ports

NAME = "n" * 32


class Handed:
    """An executor that keeps what it is given: the order, and whether the connection works."""

    def __init__(self) -> None:
        self.orders: list[TakeChannel] = []
        self.connected: list[socket.socket] = []

    def hand_over(self, order: TakeChannel, connected: socket.socket | None) -> None:
        self.orders.append(order)
        if connected is not None:
            self.connected.append(connected.dup())


def dialed(order: DialChannel, executor: Any) -> None:
    dialing = Dialing(lambda session, epoch: executor)
    asyncio.run(dialing.dial(order))
    dialing.close()


def order(*endpoints: str) -> DialChannel:
    return DialChannel("b", 1, NAME, endpoints, "5" * 64, "c" * 64)


@pytest.mark.parametrize("way", ["local", "tcp"])
def test_a_connection_is_opened_and_handed_over(way: str) -> None:
    if way == "local":
        listening, endpoint = local.listen("test")
    else:
        listening = socket.create_server(("127.0.0.1", 0))
        endpoint = f"tls://127.0.0.1:{listening.getsockname()[1]}"
    executor = Handed()
    with listening:
        dialed(order("unix-abstract://another-host/name", endpoint, "tls://127.0.0.1:1"), executor)
        assert executor.orders == [TakeChannel(NAME, "5" * 64, "c" * 64)]
        far, _ = listening.accept()
        with far, executor.connected[0] as near:
            near.sendall(b"hello")
            assert far.recv(5) == b"hello"


def test_that_nobody_listens_is_handed_on() -> None:
    executor = Handed()
    (port,) = spare_ports(1)
    dialed(order(f"tls://127.0.0.1:{port}"), executor)
    assert not executor.connected
    assert "Connection refused" in executor.orders[0].failure
    dialed(order("unix-abstract://another-host/name"), executor)
    assert executor.orders[1].failure == "it has no endpoint for other hosts"


@pytest.mark.parametrize("endpoint", ["tls://", "tls://:x", "tls://[::1", "tls://127.0.0.1:99999", "tls://no.such.\0"])
def test_an_endpoint_that_is_none_ends_nothing(endpoint: str) -> None:
    executor = Handed()
    dialed(order(endpoint), executor)
    assert executor.orders[0].failure


def test_who_serves_nobody_any_more_is_given_nothing() -> None:
    dialed(order("tls://127.0.0.1:1"), None)


def test_more_than_are_opened_at_a_time_wait_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where one joins a group as its last: it is to reach all others at once."""
    listening, endpoint = local.listen("test")
    executor, at_a_time, counted, most = Handed(), 0, threading.Lock(), [0]

    def connect(*of: Any) -> socket.socket:
        nonlocal at_a_time
        with counted:
            at_a_time += 1
            most.append(at_a_time)
        try:
            return reaching.connect(*of)
        finally:
            with counted:
                at_a_time -= 1

    monkeypatch.setattr(module, "connect", connect)

    async def all_of_them() -> None:
        dialing = Dialing(lambda session, epoch: executor)  # type: ignore[arg-type, return-value]
        await asyncio.gather(*(dialing.dial(order(endpoint)) for _ in range(15)))
        assert not dialing._under_way
        assert not dialing._turns
        dialing.close()

    with listening:
        asyncio.run(all_of_them())
    for one in executor.connected:
        one.close()
    assert [one.failure for one in executor.orders] == [""] * 15
    assert max(most) <= 4


def test_no_more_wait_than_an_executor_keeps_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 2)
    executor, may_end = Handed(), threading.Event()

    def connect(*of: object) -> socket.socket:
        may_end.wait(60)
        raise NotReached("at last")

    monkeypatch.setattr(module, "connect", connect)

    async def three() -> None:
        dialing = Dialing(lambda session, epoch: executor)  # type: ignore[arg-type, return-value]
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(dialing.dial(order("tls://x:1")))
            while not executor.orders:
                await asyncio.sleep(0)
            may_end.set()

    asyncio.run(three())
    assert [one.failure for one in executor.orders] == [
        "its node opens enough connections for it now",
        *["at last"] * 2,
    ]


def test_who_cannot_be_given_it_ends_no_agent() -> None:
    class Full(Handed):
        def hand_over(self, order: TakeChannel, connected: socket.socket | None) -> None:
            raise OSError(24, "Too many open files")

    dialed(order("tls://127.0.0.1:1"), Full())
