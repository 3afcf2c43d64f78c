"""Both ways to an executor: messages arrive whole, an interrupt leaves them whole or the link says that it is torn."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic

import pytest
import zmq

from gpu_backend.transport import curve
from gpu_backend.transport.local import LocalClosed, LocalListener, LocalSocket
from gpu_backend.transport.sockets import as_server
from gpu_backend.wire.codec import Frame
from kernelproxy.links import CurveLink, Link, LocalLink

from .played import interrupt_before_opcode

Message = list[bytes]


class Ways:
    """A link and what stands at its other end."""

    def __init__(self, link: Link, send: Callable[[Message], object], receive: Callable[[], Message | None]) -> None:
        self.link, self.send, self._receive = link, send, receive
        self._is_open = True

    def wait_arrived(self) -> None:
        """Wait until what was sent to the link can be read there."""
        zmq.zmq_poll([(self.link._socket, zmq.POLLIN)], 5_000)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Close the link; again is harmless."""
        if self._is_open:
            self._is_open = False
            self.link.close(0)

    def received(self, count: int) -> list[Message]:
        """Return the next messages at the other end; fewer if they do not come."""
        found: list[Message] = []
        deadline = monotonic() + 5
        while len(found) < count and monotonic() < deadline:
            message = self._receive()
            if message is not None:
                found.append(message)
            else:
                self.link.receive(0.001)
        return found


def plain(frames: Sequence[Frame]) -> Message:
    return [bytes(frame) for frame in frames]


@pytest.fixture
def local_ways() -> Iterator[Callable[[], Ways]]:
    with tempfile.TemporaryDirectory(prefix="gwb") as directory:
        path = Path(directory) / "local"
        listener = LocalListener(path)
        ends: list[LocalSocket] = []
        made: list[Ways] = []

        def make() -> Ways:
            link = LocalLink(str(path))
            other = listener.accept()
            assert other is not None
            ends.append(other)

            def receive() -> Message | None:
                message = other.receive()
                return plain(message) if message is not None else None

            made.append(Ways(link, other.send, receive))
            return made[-1]

        yield make
        for one in [*made, *ends, listener]:
            one.close()


@pytest.fixture
def curve_ways() -> Iterator[Callable[[], Ways]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    keys = curve.generate()
    made: list[Ways] = []

    def make() -> Ways:
        server = as_server(context.socket(zmq.ROUTER), keys)
        port = server.bind_to_random_port("tcp://127.0.0.1")
        link = CurveLink(context, f"tcp://127.0.0.1:{port}", curve.generate(), keys.public)
        link.send([b"hello"])
        assert server.poll(5_000)
        peer = server.recv_multipart()[0]

        def receive() -> Message | None:
            return server.recv_multipart()[1:] if server.poll(50) else None

        made.append(Ways(link, lambda frames: server.send_multipart([peer, *frames]), receive))
        return made[-1]

    yield make
    for ways in made:
        ways.close()
    context.destroy(linger=0)


@pytest.fixture(params=["local", "curve"])
def make_ways(request: pytest.FixtureRequest) -> Callable[[], Ways]:
    made: Callable[[], Ways] = request.getfixturevalue(f"{request.param}_ways")
    return made


MESSAGES: list[Message] = [[b"one"], [b"two", b"", b"x" * 100_000], [b"three", bytes(1 << 20), b"end"], [b""]]


def test_messages_of_any_shape_arrive_whole(make_ways: Callable[[], Ways]) -> None:
    ways = make_ways()
    for message in MESSAGES:
        while not ways.link.send(message):
            assert ways.received(1)
        assert ways.received(1) == [message]


def test_answers_of_any_shape_arrive_whole_and_are_the_callers_to_settle(make_ways: Callable[[], Ways]) -> None:
    ways = make_ways()
    for message in MESSAGES[:2]:
        ways.send(message)
        answer = None
        while answer is None:
            answer = ways.link.receive(5.0)
        assert plain(answer) == message
        assert ways.link.is_torn
        ways.link.is_torn = False
    assert ways.link.receive(0.001) is None
    assert not ways.link.is_torn


def interrupted(moment: int, action: Callable[..., object], argument: object) -> bool:
    try:
        with interrupt_before_opcode(moment) as passed:
            action(argument)
    except KeyboardInterrupt:
        return True
    assert passed[0] <= moment
    return False


def test_an_interrupt_while_sending_leaves_whole_messages_or_a_torn_link(make_ways: Callable[[], Ways]) -> None:
    ways, moment, torn = make_ways(), 0, 0
    message = [b"one", b"two", b"three"]
    while interrupted(moment, ways.link.send, message):
        moment += 1
        if ways.link.is_torn:
            torn += 1
            ways.close()
            ways = make_ways()
        else:
            assert ways.link.send([b"next"])
            arrived = ways.received(1)
            assert arrived in ([message], [[b"next"]])
            if arrived == [message]:
                assert ways.received(1) == [[b"next"]]
    assert torn
    assert moment > torn


def test_an_interrupt_while_receiving_leaves_the_message_or_a_torn_link(make_ways: Callable[[], Ways]) -> None:
    ways, moment, torn = make_ways(), 0, 0
    message = [b"one", b"two", b"three"]
    ways.send(message)
    ways.wait_arrived()
    while interrupted(moment, ways.link.receive, 5.0):
        moment += 1
        if ways.link.is_torn:
            torn += 1
            ways.close()
            ways = make_ways()
            ways.send(message)
            ways.wait_arrived()
    assert torn > 5
    assert ways.link.is_torn  # the last one came through, and is not settled


def test_a_peer_that_goes_is_noticed(local_ways: Callable[[], Ways]) -> None:
    ways = local_ways()
    assert not ways.link.was_cut()
    ways.send.__self__.close()  # type: ignore[attr-defined]
    assert ways.link.receive(1.0) is None
    assert ways.link.was_cut()
    assert ways.link.send([b"into the void"])  # lost like all that was under way: the journal has it


def test_messages_that_promise_too_much_cut_their_sender_off(local_ways: Callable[[], Ways]) -> None:
    for count, lengths in ((0, []), (2_000, [1] * 2_000), (1, [1 << 40]), (64, [60 << 20] * 64)):
        ways = local_ways()
        other: LocalSocket = ways.send.__self__  # type: ignore[attr-defined]
        raw = ways.link._socket._socket  # type: ignore[attr-defined]
        raw.send(struct.pack("<I", count) + struct.pack(f"<{len(lengths)}Q", *lengths))
        with pytest.raises(LocalClosed):
            read_until_closed(other)


def read_until_closed(socket: LocalSocket) -> None:
    while True:
        assert socket.receive() is None


def test_last_words_are_read_though_nothing_can_be_sent_any_more() -> None:
    with tempfile.TemporaryDirectory(prefix="gwb") as directory:
        listener = LocalListener(Path(directory) / "local")
        link = LocalLink(str(Path(directory) / "local"))
        other = listener.accept()
        assert other is not None
        link.send([bytes(8 << 20)])  # more than the socket takes at once
        other.send([b"the end"])
        other.close()
        answer = link.receive(5.0)
        assert answer is not None
        assert plain(answer) == [b"the end"]
        link.is_torn = False
        assert link.receive(0.001) is None
        assert link.was_cut()
        link.close(0)
        listener.close()
