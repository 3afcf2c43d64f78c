"""Large frames between two processes of one host: through shared memory if there is some, else through the socket."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from gpu_backend.transport import local, message_socket
from gpu_backend.transport.framing import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.secret_proof import LOCAL_WAY, OPENING_BYTES, VERDICT_BYTES, Connecting
from gpu_backend.transport.shared_frames import BLOCK_BYTES, BLOCKS
from gpu_backend.wire.codec import Frame

from .ways import SECRET, Ways, received

LARGE = b"large" * (BLOCK_BYTES // 5)
Pair = tuple[MessageSocket, MessageSocket]


@pytest.fixture
def ways() -> Iterator[Ways]:
    made = Ways("local")
    yield made
    made.close()


@pytest.fixture
def pair(ways: Ways) -> Pair:
    return ways.pair()


def is_shared(frame: Frame) -> bool:
    """Tell whether ``frame`` lies in shared memory: what went through the socket is bytes."""
    return isinstance(frame, memoryview) and isinstance(frame.obj, np.ndarray)


@pytest.mark.parametrize("is_back", [False, True])
def test_large_frames_pass_through_memory_both_ways(pair: Pair, is_back: bool) -> None:
    sender, receiver = pair[::-1] if is_back else pair
    frames = [b"head", LARGE, b"", b"small", memoryview(LARGE)[7:]]
    assert sender.send(frames)
    message = received(receiver, sender)
    assert [bytes(frame) for frame in message] == [bytes(frame) for frame in frames]
    assert [is_shared(frame) for frame in message] == [False, True, False, False, True]


def test_more_than_a_block_goes_through_the_socket(pair: Pair) -> None:
    near, far = pair
    assert near.send([b"head", LARGE + b"more!", LARGE])
    message = received(far, near)
    assert [bytes(frame) for frame in message] == [b"head", LARGE + b"more!", LARGE]
    assert [is_shared(frame) for frame in message] == [False, False, True]


def test_a_message_waits_for_a_block_and_not_for_ever(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = pair
    now = [100.0]
    monkeypatch.setattr(message_socket, "monotonic", lambda: now[0])
    held = []
    for number in range(BLOCKS):
        assert near.send([b"%d" % number, LARGE])
        held.append(received(far, near))
    assert not near.send([b"waits", LARGE])
    assert near.is_sending
    assert not near.push()
    assert near.send([b"small ones pass"])
    held.pop()
    assert near.push()
    assert near.send([b"waits", LARGE])
    assert not near.is_sending
    assert received(far, near) == [b"small ones pass"]
    held.append(received(far, near))
    assert is_shared(held[-1][1])
    assert not near.send([b"is patient", LARGE])
    now[0] += 1.0
    assert near.push()
    assert not near.is_sending
    assert near.send([b"is patient", LARGE])
    message = received(far, near)
    assert bytes(message[1]) == LARGE
    assert not is_shared(message[1])


def test_without_memory_all_goes_through_the_socket(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError("no memory for this")

    monkeypatch.setattr(local, "make_memory", refuse)
    near, far = ways.pair()
    for sender, receiver in ((near, far), (far, near)):
        assert sender.send([b"head", LARGE])
        message = received(receiver, sender)
        assert bytes(message[1]) == LARGE
        assert not is_shared(message[1])


def hand_over_a_pipe(connected: socket.socket) -> None:
    reading, writing = os.pipe()
    socket.send_fds(connected, [struct.pack("<I", 0)], [reading])
    os.close(reading)
    os.close(writing)


def name_a_block_of_none(connected: socket.socket) -> None:
    connected.sendall(struct.pack("<IQ", 1, 1 << 63 | 300_000))


def name_a_block_that_is_free(connected: socket.socket) -> None:
    descriptor = local.make_memory()
    socket.send_fds(connected, [struct.pack("<I", 0)], [descriptor])
    os.close(descriptor)
    connected.sendall(struct.pack("<IQ", 1, 1 << 63 | 2 << 40 | 300_000))


@pytest.mark.parametrize("lie", [hand_over_a_pipe, name_a_block_of_none, name_a_block_that_is_free])
def test_who_lies_about_memory_is_cut_off(ways: Ways, lie: Callable[[socket.socket], None]) -> None:
    connected = ways.stranger()
    ways.entrance.admitted()
    proof = Connecting(SECRET, LOCAL_WAY, connected.recv(OPENING_BYTES, socket.MSG_WAITALL))
    connected.sendall(proof.answer)
    far = ways.admit()
    assert proof.is_proved_by(connected.recv(VERDICT_BYTES, socket.MSG_WAITALL))
    lie(connected)
    with pytest.raises(ConnectionLost):
        received(far, far)
