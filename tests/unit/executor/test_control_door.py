"""An executor and its agents, who may end at any moment: what they said before is heard, and it goes on."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpu_backend.executor.control_door import ControlDoor, Handed
from gpu_backend.transport import control_socket
from gpu_backend.transport.control_socket import ControlListener
from gpu_backend.wire import orders
from gpu_backend.wire.channels import TakeChannel
from gpu_backend.wire.codec import Codec, encode

REPORT = orders.Report(orders.Phase.WARM, "", 0, 1, 0, 0, 0.0)
REPORTS: Codec[orders.FromExecutorControl] = Codec(orders.FromExecutorControl)

NAME = "n" * 32


@pytest.fixture
def place() -> Iterator[Path]:
    with TemporaryDirectory(prefix="gwb") as directory:
        yield Path(directory) / "control"


@pytest.fixture
def door(place: Path) -> Iterator[ControlDoor]:
    made = ControlDoor(ControlListener.open(place).detach())
    yield made
    made.close()


def heard(door: ControlDoor) -> list[object]:
    """Return all orders that are there, each reported on as soon as it is read."""
    found: list[object] = []
    while door.has_message():
        for order in door.read():
            found.append(order)
            door.report(REPORT)
    return found


def test_all_that_an_agent_said_before_it_ended_is_heard(door: ControlDoor, place: Path) -> None:
    """Its executor was kept from reading meanwhile, as on a busy machine."""
    said = [orders.RenewLease(60.0), orders.RenewLease(60.0), orders.Stop("It is over.")]
    agent = control_socket.connect(place)
    for order in said:
        assert agent.send(encode(order)[0])
    agent.close()
    assert heard(door) == said
    door.report(REPORT)  # to nobody


def test_an_order_that_cannot_be_read_is_dropped_and_said(
    door: ControlDoor, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else an executor whose agent is of another version ends as an orphan, and nobody knows why."""
    agent = control_socket.connect(place)
    for frame in (encode(REPORT)[0], b"of another version", encode(orders.RenewLease(60.0))[0]):
        assert agent.send(frame)
    assert heard(door) == [orders.RenewLease(60.0)]
    agent.close()
    said = [one.message for one in caplog.records if one.levelname == "ERROR"]
    assert ["report" in one for one in said] == [True, False]
    assert "not of the gpu-workbench protocol" in said[1]


def test_its_successor_is_heard_and_told(door: ControlDoor, place: Path) -> None:
    first = control_socket.connect(place)
    assert first.send(encode(orders.RenewLease(60.0))[0])
    first.close()
    second = control_socket.connect(place)
    assert second.send(encode(orders.RenewLease(60.0))[0])
    assert heard(door) == [orders.RenewLease(60.0)] * 2
    message = second.receive()
    assert message is not None
    assert REPORTS.decode([message.frame]) == REPORT
    second.close()


def test_a_connection_comes_with_its_descriptor_and_its_absence_without(door: ControlDoor, place: Path) -> None:
    agent = control_socket.connect(place)
    order = TakeChannel(NAME, "5" * 64, "c" * 64)
    with socket.socket() as connected:
        assert agent.send(encode(order)[0], [connected.fileno()])
        assert agent.send(encode(TakeChannel(NAME, failure="no way"))[0])
        assert agent.send(encode(order)[0], [connected.fileno()] * 2)  # which nobody sends
        first, second = heard(door)
    assert isinstance(first, Handed)
    assert first.order == order
    assert first.descriptor is not None
    os.close(first.descriptor)
    assert second == Handed(TakeChannel(NAME, failure="no way"), None)
    agent.close()
