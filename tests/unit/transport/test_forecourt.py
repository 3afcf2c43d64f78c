"""Who comes from a network to a ZeroMQ socket: strangers have few places, few bytes and little time, others all."""

from __future__ import annotations

import asyncio
import fcntl
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from gpu_backend.transport import curve, forecourt
from gpu_backend.transport.forecourt import Forecourt
from gpu_backend.transport.greeting import Greeting, greeting_at
from gpu_backend.transport.handshake import HandshakeWatch
from gpu_backend.transport.sockets import ZAP_DOMAIN, as_client, as_server
from gpu_backend.transport.zap import LookedUpKeys, guard_async

SERVER, FRIEND, STRANGER = (curve.generate() for _ in range(3))
PATIENT_SECONDS = 60.0
LARGEST_BYTES = 4 << 20


class Door:
    """A ROUTER that knows one key, with a forecourt before it."""

    def __init__(self, context: zmq.asyncio.Context, router: zmq.asyncio.Socket, court: Forecourt, port: int) -> None:
        self.context, self.router, self.court, self.port = context, router, court, port

    def known(self, is_connected: bool = True) -> zmq.asyncio.Socket:
        """Return a socket whose key is known."""
        dealer = as_client(self.context.socket(zmq.DEALER), FRIEND, SERVER.public)
        if is_connected:
            dealer.connect(f"tcp://127.0.0.1:{self.port}")
        return dealer

    async def stranger(self, said: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a bare connection on which that was said."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(said)
        return reader, writer

    async def is_answered(self, dealer: zmq.asyncio.Socket, message: bytes = b"hello") -> None:
        """Assert that a message of some size comes through, and back."""
        await dealer.send(message)
        route, heard = await self.router.recv_multipart()
        assert heard == message
        await self.router.send_multipart([route, heard])
        assert await dealer.recv() == message


@asynccontextmanager
async def door(tmp_path: Path, most: int) -> AsyncIterator[Door]:
    context = zmq.asyncio.Context()
    guard = guard_async(context, {ZAP_DOMAIN: LookedUpKeys(lambda key: key == FRIEND.public)})
    router = as_server(context.socket(zmq.ROUTER), SERVER, LARGEST_BYTES)
    router.bind(f"ipc://{tmp_path}/router")
    court = Forecourt(f"{tmp_path}/router", most)
    listening = forecourt.listen("tcp://127.0.0.1:0")
    try:
        port = listening.getsockname()[1]
        await court.open(listening)
        yield Door(context, router, court, port)
    finally:
        court.close()
        guard.stop()
        context.destroy(linger=0)


def played(tmp_path: Path, story: Callable[[Door], Awaitable[None]], most: int = 100) -> None:
    async def all_of_it() -> None:
        async with asyncio.timeout(PATIENT_SECONDS), door(tmp_path, most) as one:
            await story(one)

    asyncio.run(all_of_it())


async def is_hung_up_on(reader: asyncio.StreamReader) -> None:
    """Wait until the other side has ended a connection."""
    try:
        while await reader.read(1 << 16):
            pass
    except ConnectionError:
        pass


def test_who_is_known_is_passed_on_whatever_they_say(tmp_path: Path) -> None:
    async def story(one: Door) -> None:
        with closing(one.known()) as dealer:
            await one.is_answered(dealer)
            await one.is_answered(dealer, bytes(LARGEST_BYTES - 1_000))  # CURVE adds some

    played(tmp_path, story)


def test_that_a_peers_host_is_gone_is_noticed_by_tcp(tmp_path: Path) -> None:
    async def story(one: Door) -> None:
        with closing(one.known()) as dealer:
            await one.is_answered(dealer)
            (passage,) = one.court._admitted
            assert passage.transport is not None
            own = passage.transport.get_extra_info("socket")
            assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 10

    played(tmp_path, story)


@pytest.mark.parametrize("can_tell", [True, False])
def test_who_has_gone_is_hung_up_on_once_all_was_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_tell: bool
) -> None:
    def refuse(*args: object) -> bytes:
        raise OSError

    if not can_tell:
        monkeypatch.setattr(fcntl, "ioctl", refuse)

    async def story(one: Door) -> None:
        with closing(one.known()) as dealer:
            await one.is_answered(dealer)
            (passage,) = one.court._admitted
        inside = passage.other
        assert inside is not None
        while one.court._admitted or one.court._leaving:
            await asyncio.sleep(0)
        assert inside.transport is not None
        assert inside.transport.is_closing()

    played(tmp_path, story)


def test_who_does_not_read_is_not_read_for(tmp_path: Path) -> None:
    """What waits for them waits in the queues of ZeroMQ, which are bounded."""

    async def story(one: Door) -> None:
        with closing(one.known(False)) as deaf, closing(one.known(False)) as other:
            deaf.rcvhwm = 1
            deaf.connect(f"tcp://127.0.0.1:{one.port}")
            await deaf.send(b"hello")
            route, _ = await one.router.recv_multipart()
            (passage,) = one.court._admitted
            assert passage.transport is not None
            for number in range(200):
                await one.router.send_multipart([route, bytes([number]) + bytes(1 << 18)])
            while not passage.transport.get_write_buffer_size():
                await asyncio.sleep(0)
            other.connect(f"tcp://127.0.0.1:{one.port}")
            for _ in range(50):
                await one.is_answered(other)
                assert passage.transport.get_write_buffer_size() < 1 << 20
            for number in range(200):
                assert (await deaf.recv())[0] == number

    played(tmp_path, story)


def test_a_refused_key_is_told_so(tmp_path: Path) -> None:
    async def story(one: Door) -> None:
        dealer = as_client(one.context.socket(zmq.DEALER), STRANGER, SERVER.public)
        watch = HandshakeWatch(dealer)
        dealer.connect(f"tcp://127.0.0.1:{one.port}")
        while not watch.failure:
            await asyncio.to_thread(zmq.zmq_poll, [(watch.monitor, zmq.POLLIN)], 1_000)
            watch.read()
        assert "the key was refused" in watch.failure
        watch.close()
        dealer.close()
        assert await asyncio.to_thread(greeting_at, f"tcp://127.0.0.1:{one.port}", 5.0) is Greeting.CURVE

    played(tmp_path, story)


def test_strangers_make_room_for_each_other_and_for_who_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecourt, "_MOST_OF_ONE", 3)
    monkeypatch.setattr(forecourt, "_PROOF_SECONDS", 10 * PATIENT_SECONDS)

    async def story(one: Door) -> None:
        with closing(one.known()) as dealer:
            await one.is_answered(dealer)
            strangers = [await one.stranger() for _ in range(10)]
            for reader, _ in strangers[:7]:
                await is_hung_up_on(reader)
            assert not any(reader.at_eof() for reader, _ in strangers[7:])
            await one.is_answered(dealer)
            with closing(one.known()) as another:
                await one.is_answered(another)
        for _, writer in strangers:
            writer.close()

    played(tmp_path, story)


def test_there_are_no_more_connections_than_descriptors(tmp_path: Path) -> None:
    """For strangers nobody goes who was let in; for others who were, the eldest of the host that has most."""

    async def story(one: Door) -> None:
        with closing(one.known(False)) as first, closing(one.known(False)) as second:
            first.reconnect_ivl = -1
            first.connect(f"tcp://127.0.0.1:{one.port}")
            await one.is_answered(first)
            strangers = [await one.stranger() for _ in range(3)]
            for reader, _ in strangers[:2]:
                await is_hung_up_on(reader)
            await one.is_answered(first)
            watch = HandshakeWatch(first)
            second.connect(f"tcp://127.0.0.1:{one.port}")
            await one.is_answered(second)
            while not watch.disconnects:
                await asyncio.sleep(0)
                watch.read()
            await one.is_answered(second)
            watch.close()
        for _, writer in strangers:
            writer.close()

    played(tmp_path, story, most=2)


def a_stranger_is_hung_up_on(directory: Path, said: bytes) -> None:
    """Play that somebody comes, says that much, and waits until the connection has ended."""

    async def story(one: Door) -> None:
        reader, writer = await one.stranger(said)
        await is_hung_up_on(reader)
        writer.close()

    played(directory, story)


@pytest.mark.parametrize("size", [5_000, 1 << 20])
def test_a_stranger_who_says_too_much_is_cut_off(tmp_path: Path, size: int) -> None:
    greeting = b"\xff" + bytes(7) + b"\x01\x7f\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32)
    command = b"\x06" + size.to_bytes(8, "big") + b"\x05HELLO"

    a_stranger_is_hung_up_on(tmp_path, greeting + command + bytes(size - 7))


def test_a_stranger_who_says_nothing_goes_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecourt, "_PROOF_SECONDS", 0.05)
    a_stranger_is_hung_up_on(tmp_path, b"")


def test_who_was_let_in_stays_however_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecourt, "_PROOF_SECONDS", 1.0)

    async def story(one: Door) -> None:
        with closing(one.known()) as dealer:
            watch = HandshakeWatch(dealer)
            await one.is_answered(dealer)
            reader, writer = await one.stranger()
            await is_hung_up_on(reader)  # as the first one would have been, sooner
            writer.close()
            await one.is_answered(dealer)
            watch.read()
            assert watch.disconnects == 0
            watch.close()

    played(tmp_path, story)


def test_where_nothing_is_behind_it_strangers_are_turned_away(tmp_path: Path) -> None:
    async def story() -> None:
        court = Forecourt(f"{tmp_path}/nobody", 10)
        listening = forecourt.listen("tcp://127.0.0.1:0")
        port = listening.getsockname()[1]
        await court.open(listening)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await is_hung_up_on(reader)
        writer.close()
        court.close()

    asyncio.run(asyncio.wait_for(story(), PATIENT_SECONDS))


def test_an_address_of_another_machine_or_one_that_is_taken_is_none_to_listen_at() -> None:
    with pytest.raises(OSError, match="assign requested address"):
        forecourt.listen("tcp://203.0.113.7:0")
    with pytest.raises(OSError, match=r"not known|No address|not supported"):
        forecourt.listen("tcp://localhost:0")
    with socket.create_server(("127.0.0.1", 0)) as somebody, pytest.raises(OSError, match="in use"):
        forecourt.listen(f"tcp://127.0.0.1:{somebody.getsockname()[1]}")
    with forecourt.listen("tcp://*:0") as everywhere:
        assert everywhere.getsockname()[0] == "0.0.0.0"
