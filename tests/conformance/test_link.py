"""All ways to an executor keep the same promises: who is let in, and that messages arrive whole and in order."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from itertools import count
from time import monotonic

import pytest

from gpu_backend.transport import reaching, tls
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.reaching import Expected, NotReached, ProofFailed
from tests.unit.transport.ways import SECRET, Ways, received

MESSAGES = [
    [b"one"],
    [b""],
    [b"two", b"", b"x" * 100_000],
    [b"three", os.urandom(5 << 20), b"end"],
    [os.urandom(300_000)],
    [b"head", *[bytes([n]) * 1000 for n in range(200)]],
]


@pytest.fixture(params=["local", "socket", "tls", "lanes"])
def ways(request: pytest.FixtureRequest) -> Iterator[Ways]:
    made = Ways(request.param)
    yield made
    made.close()


@pytest.mark.parametrize("is_back", [False, True])
def test_messages_arrive_whole_and_in_order(ways: Ways, is_back: bool) -> None:
    near, far = ways.pair()
    sender, receiver = (far, near) if is_back else (near, far)
    arrived: list[list[bytes]] = []
    for message in MESSAGES * 2:
        while not sender.send(message):
            arrived.append([bytes(frame) for frame in received(receiver, sender)])
    while len(arrived) < 2 * len(MESSAGES):
        arrived.append([bytes(frame) for frame in received(receiver, sender)])
    assert arrived == MESSAGES * 2


def test_a_proof_in_few_bytes_at_a_time_is_one(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    """As are messages: whatever the network makes of what was sent."""
    monkeypatch.setattr(tls, "_PIECE_BYTES", 70)
    monkeypatch.setattr(tls, "_READ_BYTES", 100 if ways.way == "lanes" else 1)
    near, far = ways.pair()
    for message in MESSAGES[:3]:
        assert near.send(message)
        assert [bytes(frame) for frame in received(far, near)] == message


def test_who_does_not_know_the_secret_is_told_so_and_learns_nothing(ways: Ways) -> None:
    error = ways.failure(Expected(os.urandom(32), ways.expected.certificate))
    assert isinstance(error, ProofFailed)
    assert "does not know this ticket" in str(error)
    assert SECRET.hex() not in repr(error) + repr(ways.expected)
    ways.pair()


def test_nobody_there_is_told_apart_from_a_refusal(ways: Ways) -> None:
    ways.entrance.close()
    with pytest.raises(NotReached):
        ways.reach(seconds=1.0)


def test_somebody_who_says_nothing_is_waited_for_in_vain(ways: Ways) -> None:
    with pytest.raises(NotReached, match="does not answer"):
        ways.reach(seconds=0.1)


@pytest.mark.parametrize(
    "noise", [b"", b"\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", bytes(64), bytes(100_000)]
)
def test_strangers_keep_nobody_out(ways: Ways, noise: bytes) -> None:
    strangers = []
    for _ in range(200):
        strangers.append(ways.stranger())
        try:
            strangers[-1].sendall(noise, socket.MSG_DONTWAIT)
        except OSError:
            continue  # it takes no more of that
        ways.entrance.admitted()
    near, far = ways.pair()
    assert near.send([b"here"])
    assert received(far, near) == [b"here"]
    assert len(ways.entrance._entering) <= 8


def test_who_proves_nothing_is_gone_after_a_while(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = ways.stranger()
    while ways.entrance.is_empty:
        ways.entrance.admitted()
    seconds = count(int(monotonic()))
    monkeypatch.setattr("gpu_backend.transport.entrance.monotonic", lambda: next(seconds))
    for _ in range(10):
        ways.entrance.admitted()
    assert ways.entrance.is_empty
    stranger.settimeout(90.0)
    while stranger.recv(4096):
        continue  # the opening; then the end


def test_who_proves_it_while_an_op_runs_for_long_is_let_in(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[object] = []
    prove, may_prove = reaching._prove, threading.Event()
    monkeypatch.setattr(reaching, "_prove", lambda *how: may_prove.wait() and prove(*how))
    coming = threading.Thread(target=lambda: reached.append(ways.reach()))
    coming.start()
    while ways.entrance.is_empty:
        ways.entrance.admitted()
    monkeypatch.setattr("gpu_backend.transport.entrance.monotonic", lambda: monotonic() + 600)
    may_prove.set()  # before, it could be let in with its first word, and stand nowhere
    ways.admit()
    coming.join()
    assert reached


def test_the_end_of_either_side_is_noticed_by_the_other(ways: Ways) -> None:
    near, far = ways.pair()
    far.close()
    with pytest.raises(ConnectionLost):
        received(near, near)
