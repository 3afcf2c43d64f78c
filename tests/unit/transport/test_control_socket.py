"""The way between agent, arbiter and executor: whole messages, and descriptors only where they are wanted."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpu_backend.transport import control_socket
from gpu_backend.transport.control_socket import (
    MAX_MESSAGE_BYTES,
    ControlClosed,
    ControlListener,
    ControlMessage,
    ControlSocket,
)

Pair = tuple[ControlSocket, ControlSocket]


@pytest.fixture
def place() -> Iterator[Path]:
    with TemporaryDirectory(prefix="gwb") as directory:
        yield Path(directory) / "control"


@pytest.fixture
def pair(place: Path) -> Iterator[Pair]:
    """Who connected, and who accepted: an executor's side, which takes two descriptors a message."""
    listener = ControlListener(ControlListener.open(place).detach(), 2)
    near = control_socket.connect(place)
    far = listener.accept()
    assert far is not None
    yield near, far
    for one in (near, far, listener):
        one.close()


def test_messages_stay_apart_and_in_order(pair: Pair) -> None:
    near, far = pair
    assert far.receive() is None
    for frame in (b"one", b"two", bytes(MAX_MESSAGE_BYTES)):
        assert near.send(frame)
    assert [far.receive() for _ in range(3)] == [
        ControlMessage(b"one"), ControlMessage(b"two"), ControlMessage(bytes(MAX_MESSAGE_BYTES))
    ]  # fmt: skip
    assert far.receive() is None


def test_what_was_said_before_anybody_accepted_is_heard(place: Path) -> None:
    listener = ControlListener(ControlListener.open(place).detach())
    near = control_socket.connect(place)
    assert near.send(b"early")
    far = listener.accept()
    assert far is not None
    assert far.receive() == ControlMessage(b"early")
    for one in (near, far, listener):
        one.close()


def test_last_words_are_read_and_then_the_end_is_known(pair: Pair) -> None:
    near, far = pair
    far.send(b"the end")
    far.close()
    assert near.receive() == ControlMessage(b"the end")
    with pytest.raises(ControlClosed):
        near.receive()
    with pytest.raises(ControlClosed):
        near.send(b"are you there?")


def test_descriptors_come_with_the_message_that_brought_them(pair: Pair) -> None:
    near, far = pair
    reading, writing = os.pipe()
    assert near.send(b"without")
    assert near.send(b"with", (reading, writing))
    assert far.receive() == ControlMessage(b"without")
    message = far.receive()
    assert message is not None
    assert message.frame == b"with"
    os.write(message.descriptors[1], b"x")
    assert os.read(reading, 1) == b"x"
    for descriptor in (reading, writing, *message.descriptors):
        os.close(descriptor)


def nobody_can_write_to(reading: int) -> bool:
    """Tell whether a pipe has been closed at its other end, wherever a descriptor of that was sent."""
    os.set_blocking(reading, False)
    try:
        return os.read(reading, 1) == b""
    except BlockingIOError:
        return False


def test_who_wants_no_descriptors_is_given_none(pair: Pair) -> None:
    """An executor must not fill up its agent's table of open files."""
    near, far = pair
    reading, writing = os.pipe()
    far.send(b"have these", (writing,))
    assert near.receive() == ControlMessage(b"have these")
    os.close(writing)
    assert nobody_can_write_to(reading)
    os.close(reading)


def test_too_long_a_message_ends_the_connection_and_leaves_no_descriptor(pair: Pair) -> None:
    near, far = pair
    reading, writing = os.pipe()
    near.send(bytes(MAX_MESSAGE_BYTES + 1), (writing,))
    os.close(writing)
    with pytest.raises(ControlClosed, match="too long"):
        far.receive()
    assert nobody_can_write_to(reading)
    os.close(reading)


def test_who_does_not_read_is_not_waited_for(pair: Pair) -> None:
    near, _ = pair
    sent = 0
    while near.send(bytes(1_000)):
        sent += 1
        assert sent < 100_000
    assert sent


def test_another_users_connection_is_closed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = ControlListener(ControlListener.open(place).detach())
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.connect(str(place))
        own = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
        assert listener.accept() is None
        assert stranger.recv(1) == b""
        with pytest.raises(ControlClosed, match="another user"):
            control_socket.connect(place)
    listener.close()
