"""Large frames between two processes of one host: through shared memory if there is some, else through the socket."""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from gpu_backend.transport import joining, message_socket, sealed
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


def test_without_memory_all_goes_through_the_socket() -> None:
    ways = Ways("socket")
    near, far = ways.pair()
    for sender, receiver in ((near, far), (far, near)):
        assert sender.send([b"head", LARGE])
        message = received(receiver, sender)
        assert bytes(message[1]) == LARGE
        assert not is_shared(message[1])
    ways.close()


Offer = Callable[[socket.socket], None]


def offering(make: Callable[[], int]) -> Offer:
    def offer(connected: socket.socket) -> None:
        descriptor = make()
        joining.offer(connected, descriptor)
        os.close(descriptor)

    return offer


def unsealed() -> int:
    descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, joining._SIZE)
    return descriptor


def sealed_and_small() -> int:
    return sealed.make("test", 4096)


def a_pipe() -> int:
    reading, writing = os.pipe()
    os.close(writing)
    return reading


def a_folder() -> int:
    return os.open("/", os.O_RDONLY)


LIES = {
    "unsealed": offering(unsealed),
    "small": offering(sealed_and_small),
    "a pipe": offering(a_pipe),
    "a folder": offering(a_folder),
    "a word that means nothing": lambda connected: connected.sendall(b"\x67"),
}


def proved(ways: Ways) -> socket.socket:
    """Return a bare connection that has proved to know the secret, and has said nothing else."""
    connected = ways.stranger()
    ways.entrance.admitted()
    proof = Connecting(SECRET, LOCAL_WAY, connected.recv(OPENING_BYTES, socket.MSG_WAITALL))
    connected.sendall(proof.answer)
    while not select.select([connected], [], [], 0)[0]:
        assert not ways.entrance.admitted()
    assert proof.is_proved_by(connected.recv(VERDICT_BYTES, socket.MSG_WAITALL))
    return connected


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_memory_that_could_be_taken_away_is_refused(ways: Ways, lie: Offer) -> None:
    connected = proved(ways)
    lie(connected)
    while not ways.entrance.is_empty:
        assert not ways.entrance.admitted()
    assert connected.recv(1) == b""
    ways.pair()


def test_memory_whose_descriptor_does_not_pass_is_not_used(ways: Ways) -> None:
    connected = proved(ways)
    connected.sendall(b"\1")
    far = ways.admit()
    assert not joining.is_joined(connected.recv(joining.ANSWER_BYTES))
    connected.sendall(struct.pack("<IQ", 1, 3) + b"one")
    assert received(far, far) == [b"one"]
    connected.sendall(struct.pack("<IQ", 1, 1 << 63 | 300_000))  # in a block of no memory
    with pytest.raises(ConnectionLost):
        received(far, far)


def test_a_block_that_is_free_holds_no_frame(pair: Pair) -> None:
    near, far = pair
    near._stream.send(struct.pack("<IQ", 1, 1 << 63 | 2 << 40 | 300_000))
    with pytest.raises(ConnectionLost):
        received(far, far)
