"""What an executor must take from whoever holds its notebook's key: floods, noise, mutations. It refuses and stays."""

from __future__ import annotations

import os
import random
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from time import monotonic
from typing import TypeVar

import msgspec
import pytest

from gpu_backend.gate.reports import ReportView
from gpu_backend.node import launcher
from gpu_backend.transport import local, ring
from gpu_backend.transport.asking import ask
from gpu_backend.wire import control, messages
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import WireError
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Buffer, DType, Ref, Tuple
from kernelproxy.session.links import Link, open_link
from tests.executor_of import directory_of, pid_of
from tests.integration.conftest import granted, resident_bytes
from tests.integration.notebook_pool import STATE_SECONDS, wait_until
from tests.mutations import mutations

from .conftest import Faulty, is_running

_Kind = TypeVar("_Kind", bound=msgspec.Struct)
CLIENT: Codec[messages.ToClient] = Codec(messages.ToClient)
#: Memory that Python may keep for themselves, and the credit for uploads that may be queued.
MOST_GROWTH_BYTES = 150 << 20
CREDIT_BYTES, CREDIT_OPS = 256 << 20, 16384


class Caller:
    """A notebook without manners."""

    def __init__(self, link: Link, ticket: Ticket, scheme: str) -> None:
        self.link, self.ticket, self.scheme = link, ticket, scheme
        self.executor = pid_of(ticket)

    def send(self, message: msgspec.Struct, *buffers: bytes) -> bool:
        return self.link.send(encode(message, buffers))

    def hello(self, first: int = 1) -> messages.Welcome:
        """Greet as the same client as ever, and return the answer."""
        self.send(messages.Hello(self.ticket.session, self.ticket.epoch, "caller", first, first - 1))
        return self.read(messages.Welcome)

    def read(self, *kinds: type[_Kind]) -> _Kind:
        """Return the next message of one of ``kinds``."""
        deadline = monotonic() + STATE_SECONDS
        while monotonic() < deadline:
            frames = self.link.receive(0.5)
            self.link.is_torn = False
            if frames is not None and isinstance(message := CLIENT.decode(frames), kinds):
                return message
        raise AssertionError(f"no {kinds} came")

    def flood(self, make: Callable[[int], tuple[msgspec.Struct, bytes]], count: int, least: int = 0) -> None:
        """Send ``count`` messages, as far as they can be got rid of, and read nothing; the first ``least`` must be."""
        patience = monotonic() + STATE_SECONDS
        for number in range(count):
            if number == least:
                patience = monotonic() + 3
            message, buffer = make(number)
            while not self.send(message, *([buffer] if buffer else [])):
                if monotonic() > patience:
                    assert number >= least
                    return  # it does not take any more, which is its good right


@contextmanager
def calling(faulty: Faulty, scheme: str, memory_bytes: int = 256 << 20) -> Iterator[Caller]:
    """Have a `Caller` with a session of its own."""
    door = faulty.pool.ada
    ticket = granted(door, control.OpenSession(0, "flood", "cpu", memory_bytes))
    caller = Caller(linked(ticket, scheme), ticket, scheme)
    try:
        yield caller
    finally:
        caller.link.close()
        ask(door, control.CloseSession(0, ticket.session))


@pytest.fixture(params=["unix", "tls"])
def caller(request: pytest.FixtureRequest, faulty: Faulty, undisturbed: None) -> Iterator[Caller]:
    """A caller on either way to an executor that is alive, small and of use afterwards."""
    with calling(faulty, request.param) as caller:
        caller.hello()
        before = resident_bytes(caller.executor)
        yield caller
        assert is_running(caller.executor)
        caller.link.close()
        caller.link = linked(caller.ticket, caller.scheme)
        serves(caller)
        wait_until(lambda: resident_bytes(caller.executor) - before < MOST_GROWTH_BYTES)


def linked(ticket: Ticket, scheme: str) -> Link:
    """Return a link to the executor of ``ticket`` by the way of that ``scheme``."""
    ways = tuple(one for one in ticket.endpoints if one.startswith(scheme))
    return open_link(msgspec.structs.replace(ticket, endpoints=ways), STATE_SECONDS)[0]


def stranger(endpoint: str) -> socket.socket:
    """Return a bare connection to ``endpoint``."""
    if endpoint.startswith(local.SCHEME):
        return local.connect(endpoint, STATE_SECONDS)
    host, _, port = endpoint.partition("://")[2].partition(":")
    return socket.create_connection((host, int(port)), STATE_SECONDS)


def serves(caller: Caller) -> None:
    """Assert that a greeting and a computation are answered."""
    welcome = caller.hello(1 << 40)  # all that was sent before is given up
    first = welcome.taken + 1
    caller.send(messages.Cancel(first - 1))
    while reached(caller.read(messages.Ack, messages.Reply, messages.Failed)) < first - 1:
        pass  # until they are given up they count: there may be no credit for two more
    made = Op("cupy.arange", 1 << 50, (5,))
    asked = Op(".same", 0, (Ref(1 << 50),), None, Want.CONTENTS)
    caller.send(messages.Batch(first, first - 1, (made, asked)))
    reply = caller.read(messages.Reply)
    while isinstance(reply, messages.Reply) and reply.seq <= first:  # an answer that was on its way
        reply = caller.read(messages.Reply)
    assert isinstance(reply, messages.Reply)
    assert isinstance(reply.value, Buffer)
    assert reply.value.data == b"".join(n.to_bytes(8, "little") for n in range(5))


def reached(told: messages.Ack | messages.Reply | messages.Failed) -> int:
    """Return how far an executor is, by what it has told."""
    return told.applied if isinstance(told, messages.Ack) else told.seq


SLOW = Op("cupy.ones", 7, (Tuple((1000, 1000)), DType("<f8")))


def test_more_ops_than_credited_are_refused_by_name(caller: Caller) -> None:
    caller.flood(lambda n: (messages.Batch(1 + 64 * n, 0, (SLOW,) * 64), b""), 3_000, CREDIT_OPS // 64 + 1)
    refused = caller.read(messages.Refused)
    assert isinstance(refused, messages.Refused)
    assert refused.code == "over_credit"
    assert refused.message == (
        "More was sent than the 16384 ops and 268435456 bytes that may be under way. Wait for Ack before sending more."
    )
    assert resident_bytes(caller.executor) < 1 << 30


def test_answers_that_nobody_reads_are_bounded(caller: Caller) -> None:
    size = before = resident_bytes(caller.executor)
    many = Op("cupy.ones", 7, (1 << 20, DType("<f8")))  # 8 MB
    read = Op(".same", 0, (Ref(7),), None, Want.CONTENTS)
    caller.send(messages.Batch(1, 0, (many, *(read,) * 400)))
    wait_until(lambda: resident_bytes(caller.executor) - before > 100 << 20)
    steady = 0
    while steady < 20:  # until it does not grow any more
        grown, size = resident_bytes(caller.executor) - size, resident_bytes(caller.executor)
        steady = steady + 1 if grown <= 0 else 0
    assert size - before < 2 * CREDIT_BYTES + MOST_GROWTH_BYTES


def test_pings_that_nobody_reads_are_answered_within_bounds(caller: Caller) -> None:
    caller.flood(lambda n: (messages.Ping(0), b""), 60_000)


def test_what_messages_cost_is_not_taken_for_computing_behind_a_shut_gate(caller: Caller) -> None:
    """A second of the processor's time, more than may be seen of one that does not tell of it, beside a neighbour."""
    config = launcher.config_in(directory_of(caller.ticket))
    assert config is not None
    with closing(ReportView(caller.executor, config.descriptors.report)) as page:
        while page.other_work_ns < 1_000_000_000:
            assert is_running(caller.executor)
            caller.flood(lambda n: (messages.Ping(0), b""), 100)
            caller.link.receive(0)


def test_greetings_without_end(caller: Caller) -> None:
    ticket = caller.ticket
    caller.flood(lambda n: (messages.Hello(ticket.session, ticket.epoch, "caller", 1, 0), b""), 30_000)


def test_uploads_without_end_while_the_device_is_busy(caller: Caller) -> None:
    before = resident_bytes(caller.executor)
    caller.send(messages.Batch(1, 0, (SLOW,) * 2_000))
    chunk = bytes(8 << 20)
    write = Op(".write", 0, (Ref(7), 0, Buffer(0, "|u1", (len(chunk),))))
    caller.flood(lambda n: (messages.Batch(2_001 + n, 0, (write,)), chunk), 120)
    assert resident_bytes(caller.executor) - before < 2 * CREDIT_BYTES + MOST_GROWTH_BYTES


# --- noise ------------------------------------------------------------------------------------------------------------


HONEST = [
    messages.Batch(1, 0, (Op("cupy.arange", 3, (4,)), Op("cupy.add", 4, (Ref(3), 1.5), (9,)))),
    messages.Batch(1, 0, (Op("cupy.sum", 5, (Ref(3),), None, Want.DESCRIPTION, {"axis": 0}),)),
    messages.Batch(1, 0, (Op(".same", 0, (Ref(4),), None, Want.CONTENTS),)),
    messages.Batch(1, 0, (Op(".getattr", 6, (Ref(3), "shape"), None, Want.CONTENTS, None, 2, 1),)),
    messages.Hello("0123456789abcdef", 1, "another", 1, 0),
    messages.Ping(0),
]


def test_ten_thousand_mutated_messages_of_a_greeted_client(caller: Caller) -> None:
    """They are answered, and carried out where they happen to make sense: it is the sender's own session."""
    answers: Counter[str] = Counter()
    applied = 0
    for origin, frames in mutations(1, HONEST, 10_000):
        if isinstance(origin, messages.Batch) and applied:
            frames[0] = renumbered(frames[0], applied + 1)
        while not caller.link.send(frames):
            caller.link.receive(0.01)
        caller.send(messages.Ping(applied))
        while True:
            answer = caller.read(messages.Ack, messages.Refused, messages.Failed, messages.Reply)
            answers[type(answer).__name__] += 1
            if isinstance(answer, messages.Ack):
                applied = answer.applied
                break
            if isinstance(answer, messages.Refused) and answer.code == "not_greeted":
                applied = caller.hello(applied + 1).taken
                break
        if isinstance(origin, messages.Batch):  # it may be taken and not yet applied
            applied = caller.hello(applied + 1).taken
    assert answers["Refused"] > 2_000
    assert answers["Failed"] > 10
    assert answers["Reply"] > 10


def renumbered(frame: bytes, first: int) -> bytes:
    """Return a batch with the number that the executor expects, if it is a batch at all."""
    try:
        message: messages.ToExecutor = Codec(messages.ToExecutor).decode([frame])
    except WireError:
        return frame
    if isinstance(message, messages.Batch) and message.first == 1:
        return bytes(encode(msgspec.structs.replace(message, first=first))[0])
    return frame


@pytest.mark.usefixtures("undisturbed")
def test_a_notebook_goes_on_beside_ten_thousand_mutated_messages_with_its_key(faulty: Faulty) -> None:
    with calling(faulty, "tls") as mine:
        mine.hello()
        mine.send(messages.Batch(1, 0, (Op("cupy.arange", 1, (5,)),)))
        other = linked(mine.ticket, "tls")
        refusals = 0
        for number, (_, frames) in enumerate(mutations(2, HONEST, 10_000)):
            other.send(frames)
            refusals += other.receive(0) is not None
            if number % 500 == 0:
                asked = Op(".same", 0, (Ref(1),), None, Want.CONTENTS)
                seq = 2 + number // 500
                mine.send(messages.Batch(seq, seq - 1, (asked,)))
                reply = mine.read(messages.Reply, messages.Refused)
                assert isinstance(reply, messages.Reply)
                assert reply.seq == seq
        while refusals <= 1_000:  # those that were still on their way
            assert other.receive(STATE_SECONDS) is not None
            refusals += 1
        other.close()
        assert is_running(mine.executor)


@pytest.mark.usefixtures("undisturbed")
def test_noise_without_a_handshake(faulty: Faulty) -> None:
    chance = random.Random(4)
    noises = [b"GET / HTTP/1.1\r\n\r\n", b"\xff" + bytes(8) + b"\x7f\x03", b"\x01\x00\x00\x00" + b"\xff" * 8]
    with calling(faulty, "unix") as mine:
        mine.hello()
        before = resident_bytes(mine.executor)
        for endpoint in mine.ticket.endpoints:
            for _ in range(150):
                with stranger(endpoint) as raw:
                    try:
                        raw.send(chance.choice([*noises, chance.randbytes(99), b""]))
                    except OSError:
                        continue  # it hung up on us already
        mine.send(messages.Ping(0))
        mine.read(messages.Ack)
        serves(mine)
        wait_until(lambda: resident_bytes(mine.executor) - before < MOST_GROWTH_BYTES)
        wait_until(lambda: len(os.listdir(f"/proc/{mine.executor}/fd")) < 100)


# --- memory that lies -------------------------------------------------------------------------------------------------

#: Words of a ring, and what may be claimed in them, whether it can be or not.
WORDS = (ring._PUT, ring._TAKEN, ring._SLEEPS)
CLAIMS = (0, 1, 7, ring.RING_BYTES, ring.RING_BYTES + 1, 1 << 40, 1 << 63, (1 << 64) - 1)


@pytest.mark.skipif(not ring.has_rings(), reason="no rings on this processor")
@pytest.mark.usefixtures("undisturbed")
def test_a_notebook_that_writes_anything_into_its_memory_harms_its_own_connection_alone(faulty: Faulty) -> None:
    chance = random.Random(5)
    with calling(faulty, "unix") as mine:
        mine.hello()
        before = resident_bytes(mine.executor)
        for _ in range(100):
            stream = memory_of(mine.link)
            for _ in range(chance.randrange(1, 4)):
                stream._words[chance.randrange(2) * ring._RING_WORDS + chance.choice(WORDS)] = chance.choice(CLAIMS)
            rubbish = chance.randbytes(chance.randrange(1, 60_000))
            stream._out[: len(rubbish)] = rubbish
            with suppress(OSError):  # it may have seen by now what was written, and hung up
                stream._bell.send(chance.randbytes(chance.randrange(1, 60)))
            mine.send(messages.Ping(0))
            other = linked(mine.ticket, "unix")  # the executor has looked at its sockets meanwhile
            mine.link.close()
            mine.link = other
            mine.hello()
        assert is_running(mine.executor)
        wait_until(lambda: resident_bytes(mine.executor) - before < MOST_GROWTH_BYTES)
        serves(mine)


def memory_of(link: Link) -> ring.RingStream:
    stream = link._socket._stream
    assert isinstance(stream, ring.RingStream)
    return stream
