"""A connection with lanes that is cut wherever its streams happen to be.

What arrived is what was sent, whole and in order, and what did not is known to be lost.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic

import pytest

from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.pieces import PIECE_BYTES
from tests.unit.transport.ways import LANES, Ways, lanes_of, received

from .cutter import cutting

#: Messages with something for the lanes and without.
SENT = [[b"%d" % n, os.urandom(n % 5 * PIECE_BYTES + n), b"end"] for n in range(40)]


@pytest.fixture
def ways() -> Iterator[Ways]:
    made = Ways("lanes")
    yield made
    made.close()


def passed(sender: MessageSocket, receiver: MessageSocket) -> list[list[bytes]]:
    """Send `SENT` until something is lost or all has arrived; return what has."""
    arrived: list[list[bytes]] = []
    unsent = list(SENT)
    until = monotonic() + 90
    with suppress(ConnectionLost):
        while len(arrived) < len(SENT):
            assert monotonic() < until, "nobody knows that it is lost"
            with suppress(ConnectionLost):  # the other side learns of it as well
                while unsent and sender.send(unsent[0]):
                    del unsent[0]
                sender.push()
            message = receiver.receive()
            if message is not None:
                arrived.append([bytes(frame) for frame in message])
    return arrived


@pytest.mark.parametrize("is_back", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_what_arrives_is_whole_and_in_order(ways: Ways, seed: int, is_back: bool) -> None:
    cut = random.Random(seed).randrange(60_000, sum(len(frame) for message in SENT for frame in message))
    with cutting(ways.endpoint, [cut]) as cutter:
        ways.endpoint = cutter.endpoint
        near, far = ways.pair()
        arrived = passed(*((far, near) if is_back else (near, far)))
        assert arrived == SENT[: len(arrived)]
        assert not cutter.cuts_left
        assert len(arrived) < len(SENT)


@pytest.mark.parametrize("direction", [False, True])
@pytest.mark.parametrize("which", range(LANES))
def test_one_lane_that_is_cut_while_nothing_passes_is_gone_without(ways: Ways, which: int, direction: bool) -> None:
    near, far = ways.pair()
    lanes_of(near)._streams[direction][which].shut()
    until = monotonic() + 90
    while not (lanes_of(near).lost and lanes_of(far).lost):
        assert near.send([b"are you there"])
        assert received(far, near) == [b"are you there"]
        assert monotonic() < until
    assert passed(near, far) == SENT
    assert passed(far, near) == SENT


@pytest.mark.parametrize("which", range(LANES))
def test_one_lane_that_is_cut_while_it_is_used_loses_the_connection(ways: Ways, which: int) -> None:
    near, far = ways.pair()
    large = [b"head", *[bytes(40 * PIECE_BYTES)] * 3]
    assert near.send(large)
    lanes_of(far)._streams[False][which].shut()
    with pytest.raises(ConnectionLost, match="lanes"):
        received(far, near)
