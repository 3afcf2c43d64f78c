"""Large frames between two processes of one host: through shared memory if there is some, else through the socket."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from gpu_backend.transport import joining, message_socket, sealed
from gpu_backend.transport.joining import Room
from gpu_backend.transport.lost import ConnectionLost
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


def all_goes_through_the_socket(ways: Ways) -> None:
    near, far = ways.pair()
    for sender, receiver in ((near, far), (far, near)):
        assert sender.send([b"head", LARGE])
        message = received(receiver, sender)
        assert bytes(message[1]) == LARGE
        assert not is_shared(message[1])


def test_without_memory_all_goes_through_the_socket() -> None:
    ways = Ways("socket")
    all_goes_through_the_socket(ways)
    ways.close()


def test_where_no_descriptor_can_be_passed_all_goes_through_the_socket(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An account may have so many under way, and somebody else's executor, which is of the same account, has them."""

    def refused(*_: object) -> int:
        raise OSError(errno.ETOOMANYREFS, os.strerror(errno.ETOOMANYREFS))

    monkeypatch.setattr(socket, "send_fds", refused)
    ways = Ways("local")
    for _ in range(2):
        all_goes_through_the_socket(ways)
    assert [record.name for record in caplog.records] == ["transport.entrance"], "said once"
    ways.close()


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


LIES = {"unsealed": unsealed, "small": sealed_and_small, "a pipe": a_pipe, "a folder": a_folder}


def offering(make: Callable[[], int]) -> Room:
    """Return what an executor offers that lies: a descriptor of something else than memory for good."""
    return joining.make()._replace(descriptor=make())


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_memory_that_could_be_taken_away_is_refused(lie: Callable[[], int]) -> None:
    """Who connects cuts the connection, and has not mapped it."""
    ways = Ways("local", make_room=lambda: offering(lie))
    failure = ways.failure(ways.expected)
    assert isinstance(failure, ConnectionLost)
    ways.close()


def test_a_word_that_means_nothing_is_no_offer() -> None:
    near, far = socket.socketpair()
    near.sendall(b"\x67")
    with pytest.raises(ConnectionAbortedError):
        joining.offered(far)
    near.close()
    far.close()


def proved(ways: Ways) -> socket.socket:
    """Return a bare connection that has proved to know the secret and was offered memory, and has said nothing else."""
    connected = ways.stranger()
    ways.entrance.admitted()
    proof = Connecting(SECRET, LOCAL_WAY, connected.recv(OPENING_BYTES, socket.MSG_WAITALL))
    connected.sendall(proof.answer)
    while not select.select([connected], [], [], 0)[0]:
        assert not ways.entrance.admitted()
    assert proof.is_proved_by(connected.recv(VERDICT_BYTES, socket.MSG_WAITALL))
    assert connected.recv(1) == b"\1"
    return connected


def test_memory_whose_descriptor_does_not_pass_is_not_used(ways: Ways) -> None:
    connected = proved(ways)
    connected.sendall(b"\0")
    far = ways.admit()
    connected.sendall(struct.pack("<IQ", 1, 3) + b"one")
    assert received(far, far) == [b"one"]
    connected.sendall(struct.pack("<IQ", 1, 1 << 63 | 300_000))  # in a block of no memory
    with pytest.raises(ConnectionLost):
        received(far, far)


def test_who_answers_an_offer_by_rubbish_is_turned_away(ways: Ways) -> None:
    connected = proved(ways)
    connected.sendall(b"\x67")
    while not ways.entrance.is_empty:
        assert not ways.entrance.admitted()
    assert connected.recv(1) == b""
    ways.pair()


def test_an_offer_that_nobody_answers_holds_no_descriptor(ways: Ways) -> None:
    before = len(os.listdir("/proc/self/fd"))
    connected = proved(ways)
    ways.entrance.admitted()
    connected.close()
    while not ways.entrance.is_empty:
        assert not ways.entrance.admitted()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_large_frames_are_filled_where_they_are_sent_from(pair: Pair) -> None:
    near, far = pair
    for sender, receiver in (pair, pair[::-1]):
        lent = sender.lend(100_000)
        assert lent is not None
        lent[:] = 3
        assert sender.send([b"head", lent.data])
        message = received(receiver, sender)
        assert is_shared(message[1])
        lent[5] = 4
        assert message[1][5] == 4
    assert near.lend(100) is None  # that passes through the ring
    held = [near.lend(100_000) for _ in range(BLOCKS)]
    assert near.send([b"head", LARGE])
    assert is_shared(received(far, near)[1])
    del held


def test_what_was_placed_is_sent_later_and_copied_once(pair: Pair) -> None:
    """An interrupt while it is placed tears nothing: nothing of it is under way."""
    near, far = pair
    placed = near.place([b"head", LARGE])
    assert placed is not None
    assert far.receive() is None
    block = placed[1]
    assert near.send(placed)
    message = received(far, near)
    assert bytes(message[1]) == LARGE
    np.frombuffer(block, np.uint8)[:3] = 0
    assert bytes(message[1][:3]) == bytes(3)


def test_a_block_that_is_free_holds_no_frame(pair: Pair) -> None:
    near, far = pair
    near._stream.send(struct.pack("<IQ", 1, 1 << 63 | 2 << 40 | 300_000))
    with pytest.raises(ConnectionLost):
        received(far, far)
