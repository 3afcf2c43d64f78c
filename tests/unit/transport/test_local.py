"""Large frames between two processes of one user: through shared memory if there is some, else through the socket."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from gpu_backend.transport import local
from gpu_backend.transport.local import LocalClosed, LocalListener, LocalSocket
from gpu_backend.transport.shared_frames import BLOCK_BYTES, BLOCKS
from gpu_backend.wire.codec import Frame

LARGE = b"large" * (BLOCK_BYTES // 5)
Pair = tuple[LocalSocket, LocalSocket]


@pytest.fixture
def listener() -> Iterator[tuple[LocalListener, Path]]:
    with TemporaryDirectory(prefix="gwb") as directory:
        path = Path(directory) / "local"
        listening = LocalListener(path)
        yield listening, path
        listening.close()


@pytest.fixture
def pair(listener: tuple[LocalListener, Path]) -> Iterator[Pair]:
    near = local.connect(str(listener[1]))
    far = listener[0].accept()
    assert far is not None
    assert far.receive() is None  # it has heard of the memory
    yield near, far
    near.close()
    far.close()


def received(far: LocalSocket, near: LocalSocket) -> list[Frame]:
    while (message := far.receive()) is None:
        near.push()
    return message


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
    monkeypatch.setattr(local, "monotonic", lambda: now[0])
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


def test_without_memory_all_goes_through_the_socket(
    listener: tuple[LocalListener, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise OSError("no memory for this")

    monkeypatch.setattr(local, "make_memory", refuse)
    near = local.connect(str(listener[1]))
    far = listener[0].accept()
    assert far is not None
    for sender, receiver in ((near, far), (far, near)):
        assert sender.send([b"head", LARGE])
        message = received(receiver, sender)
        assert bytes(message[1]) == LARGE
        assert not is_shared(message[1])
    near.close()
    far.close()


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
def test_who_lies_about_memory_is_cut_off(
    listener: tuple[LocalListener, Path], lie: Callable[[socket.socket], None]
) -> None:
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(str(listener[1]))
    far = listener[0].accept()
    assert far is not None
    lie(connected)
    with pytest.raises(LocalClosed):
        received(far, far)
    far.close()
    connected.close()
