"""All ways to an executor: messages arrive whole, an interrupt leaves them whole or the link says that it is torn."""

from __future__ import annotations

import itertools
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from time import monotonic

import pytest

from gpu_backend.transport import shared_frames
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.wire.codec import Frame
from kernelproxy.session import links
from kernelproxy.session.links import Link
from tests.unit.transport.ways import Ways

from .played import interrupt_before_opcode

Message = list[bytes]


class Linked:
    """A link and what stands at its other end."""

    def __init__(self, ways: Ways) -> None:
        near, self.other = ways.pair()
        self.link = Link(near)
        self._is_open = True

    def send(self, message: Message) -> None:
        """Send from the other end, to the last byte."""
        assert self.other.send(message)

    def wait_arrived(self) -> None:
        """Wait until what was sent to the link can be read there."""
        deadline = monotonic() + 90
        while not self.link._socket.has_news():
            assert monotonic() < deadline

    def close(self) -> None:
        """Close the link; again is harmless."""
        if self._is_open:
            self._is_open = False
            self.link.close()

    def received(self, count: int) -> list[Message]:
        """Return the next messages at the other end."""
        found: list[Message] = []
        deadline = monotonic() + 90
        while len(found) < count:
            assert monotonic() < deadline
            message = self.other.receive()
            if message is not None:
                found.append(plain(message))
            else:
                self.link.receive(0.001)
        return found


def plain(frames: Sequence[Frame]) -> Message:
    return [bytes(frame) for frame in frames]


@pytest.fixture(params=["local", "socket", "tls", "lanes"])
def make_linked(request: pytest.FixtureRequest) -> Iterator[Callable[[], Linked]]:
    ways = Ways(request.param)
    made: list[Linked] = []

    def make() -> Linked:
        made.append(Linked(ways))
        return made[-1]

    yield make
    for one in made:
        one.close()
    ways.close()


MESSAGES: list[Message] = [[b"one"], [b"two", b"", b"x" * 100_000], [b"three", bytes(1 << 20), b"end"], [b""]]


def test_messages_of_any_shape_arrive_whole(make_linked: Callable[[], Linked]) -> None:
    linked = make_linked()
    for message in MESSAGES:
        while not linked.link.send(message):
            assert linked.received(1)
        assert linked.received(1) == [message]


def test_answers_of_any_shape_arrive_whole_and_are_the_callers_to_settle(make_linked: Callable[[], Linked]) -> None:
    linked = make_linked()
    for message in MESSAGES[:2]:
        linked.send(message)
        answer = None
        while answer is None:
            answer = linked.link.receive(90.0)
        assert plain(answer) == message
        assert linked.link.is_torn
        linked.link.is_torn = False
    assert linked.link.receive(0.001) is None
    assert not linked.link.is_torn


def interrupted(moment: int, action: Callable[..., object], argument: object) -> bool:
    is_interrupted = False
    try:
        with interrupt_before_opcode(moment) as passed:
            action(argument)
    except KeyboardInterrupt:
        is_interrupted = True
    assert sys.exc_info()[1] is None, "what was raised is handled, and nothing for later tests to see"
    assert is_interrupted == (passed[0] > moment)
    return is_interrupted


OF_ONE_FRAME_AND_OF_SEVERAL = pytest.mark.parametrize(
    "message",
    [[b"one", b"two", b"three"], [b"one"], [b"one", bytes(40_000)]],
    ids=["three frames", "one frame", "one in a block"],
)


@OF_ONE_FRAME_AND_OF_SEVERAL
def test_an_interrupt_while_sending_leaves_whole_messages_or_a_torn_link(
    make_linked: Callable[[], Linked], message: list[bytes]
) -> None:
    linked, moment, torn = make_linked(), 0, 0
    while interrupted(moment, linked.link.send, message):
        moment += 1
        if linked.link.is_torn:
            torn += 1
            linked.close()
            linked = make_linked()
        else:
            assert linked.link.send([b"next"])
            arrived = linked.received(1)
            assert arrived in ([message], [[b"next"]])
            if arrived == [message]:
                assert linked.received(1) == [[b"next"]]
    assert torn
    assert moment > torn


@OF_ONE_FRAME_AND_OF_SEVERAL
def test_an_interrupt_while_receiving_leaves_the_message_or_a_torn_link(
    make_linked: Callable[[], Linked], message: list[bytes]
) -> None:
    linked, moment, torn = make_linked(), 0, 0
    linked.send(message)
    linked.wait_arrived()
    while interrupted(moment, linked.link.receive, 90.0):
        moment += 1
        if linked.link.is_torn:
            torn += 1
            linked.close()
            linked = make_linked()
            linked.send(message)
            linked.wait_arrived()
    assert torn > 5
    assert linked.link.is_torn  # the last one came through, and is not settled


def test_an_interrupt_while_much_is_copied_tears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time of a large upload is spent so, and a torn link is given up for a new one."""
    ways = Ways("local")
    linked = Linked(ways)

    def interrupted_copy(into: object, source: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shared_frames, "copy", interrupted_copy)
        for _ in range(2 * shared_frames.BLOCKS):
            with pytest.raises(KeyboardInterrupt):
                linked.link.send([b"head", bytes(1 << 20)])
            assert not linked.link.is_torn
    assert linked.link.send([b"head", b"x" * (1 << 20)])
    assert linked.received(1) == [[b"head", b"x" * (1 << 20)]]
    linked.close()
    ways.close()


def test_a_peer_that_goes_is_noticed(make_linked: Callable[[], Linked]) -> None:
    linked = make_linked()
    assert not linked.link.is_cut
    linked.other.close()
    assert linked.link.receive(90.0) is None
    assert linked.link.is_cut
    assert linked.link.send([b"into the void"])  # lost like all that was under way: the journal has it


def test_messages_that_promise_too_much_cut_their_sender_off(make_linked: Callable[[], Linked]) -> None:
    for count, lengths in ((0, []), (2_000, [1] * 2_000), (1, [1 << 40]), (64, [60 << 20] * 64)):
        linked = make_linked()
        linked.link._socket._stream.send(struct.pack("<I", count) + struct.pack(f"<{len(lengths)}Q", *lengths))
        with pytest.raises(ConnectionLost):
            read_until_closed(linked.other)


def read_until_closed(socket: MessageSocket) -> None:
    while True:
        assert socket.receive() is None


def test_last_words_are_read_though_nothing_can_be_sent_any_more(make_linked: Callable[[], Linked]) -> None:
    linked = make_linked()
    linked.link.send([bytes(8 << 20)])  # more than the connection takes at once
    linked.send([b"the end"])
    linked.other.close()
    answer = linked.link.receive(90.0)
    assert answer is not None
    assert plain(answer) == [b"the end"]
    linked.link.is_torn = False
    deadline = monotonic() + 90
    while not linked.link.is_cut:
        assert monotonic() < deadline
        assert linked.link.receive(0.001) is None


def test_who_is_kept_from_waiting_hears_that_the_peer_is_gone(
    make_linked: Callable[[], Linked], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a short time to wait may be over when the waiting would begin, again and again."""
    linked, seconds = make_linked(), itertools.count(monotonic())
    linked.other.close()
    monkeypatch.setattr(links, "monotonic", lambda: next(seconds))
    for _ in range(3):
        assert linked.link.receive(0.5) is None
    assert linked.link.is_cut


def test_who_only_looks_hears_that_the_peer_is_gone(
    make_linked: Callable[[], Linked], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook that knows all it reads waits for nothing, and would go on for ever without its executor."""
    monkeypatch.setattr(links, "_HEAR_SECONDS", -1.0)
    linked = make_linked()
    linked.send([b"last words"])
    linked.other.close()
    deadline, found = monotonic() + 90, []
    while not linked.link.is_cut:
        assert monotonic() < deadline
        if (message := linked.link.receive(0)) is not None:
            linked.link.is_torn = False
            found.append(plain(message))
    assert found == [[b"last words"]]
    assert not linked.link.is_torn


class Spun:
    """Says for how long to spin, and notes how long was waited."""

    seconds = 5e-3

    def __init__(self) -> None:
        self.waited: list[float] = []

    def note(self, waited: float) -> None:
        self.waited.append(waited)


def test_who_waits_long_spins_once_and_not_in_each_turn(
    make_linked: Callable[[], Linked], monkeypatch: pytest.MonkeyPatch
) -> None:
    linked, spun, now = make_linked(), Spun(), [monotonic() - 1e6]
    link, looked = linked.link, []
    spin = link._spin

    def clock() -> float:
        now[0] += 1e-4
        return now[0]

    def noted(until: float) -> bool:
        looked.append(until - now[0])
        return spin(until)

    def slept(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(links, "monotonic", clock)
    for name, one in (("_spinning", spun), ("_spin", noted), ("_sleep", slept)):
        monkeypatch.setattr(link, name, one)

    def receive() -> None:
        linked.send([b"at last"])
        linked.wait_arrived()
        assert link.receive(90.0) is not None
        link.is_torn = False

    for turn in range(4):
        looked.clear()
        assert link.receive(20e-3) is None
        assert (max(looked) > 0) is (turn == 0)
    assert spun.waited == []
    receive()
    receive()
    first, second = spun.waited
    assert first > 4 * 20e-3 > 20e-3 > second
