"""What a gateway must take from whoever finds its door: noise, mutations, floods. It answers or drops, and stays."""

from __future__ import annotations

import multiprocessing
import random
import socket as plain_socket
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest
import zmq

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import commands
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask
from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.handshake import HandshakeWatch
from gpu_backend.transport.sockets import as_client
from gpu_backend.wire import control
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.devices import DeviceReport
from gpu_backend.wire.errors import RefusalCode, WireError
from tests.mutations import mutations
from tests.spare_ports import spare_port

from .conftest import MakePool, RunningPool, resident_bytes, until

ANSWERS: Codec[control.FromGateway] = Codec(control.FromGateway)
#: What it grows by must not depend on how much is thrown at it; Python's own arenas account for a few MB.
MOST_GROWTH_BYTES = 48 << 20

HONEST = [
    control.OpenSession(1, "a.ipynb", "cpu", 1 << 20),
    control.RenewTicket(2, "0123456789abcdef"),
    control.RestartSession(3, "0123456789abcdef"),
    control.CloseSession(4, "0123456789abcdef"),
    control.AskPool(5),
    control.StopPool(6),
]
FROM_AGENTS = [
    control.NodeReport((DeviceReport(0, "cpu", "CPU", "u", 1, 1),), (), 1),
    control.LaunchFailed("s", 1, "no"),
    control.ExecutorEnded("s", 1, "crashed", "no"),
]


@pytest.fixture(scope="module")
def port() -> int:
    return spare_port()


@pytest.fixture(scope="module")
def pool(make_pool: MakePool, port: int) -> RunningPool:
    return make_pool(listen_host="127.0.0.1", listen_port=port)


@pytest.fixture
def unharmed(pool: RunningPool) -> Iterator[None]:
    """The same gateway process serves afterwards, no session has noticed, and it has not grown."""
    close_all(pool)
    ticket = pool.open()
    gateway = pool.process("gateway")
    before = resident_bytes(gateway.pid)
    yield
    until(lambda: bool(commands.status(pool.state).devices))
    assert pool.process("gateway") == gateway
    assert pool.renew(ticket).epoch == 1
    until(lambda: resident_bytes(gateway.pid) - before < MOST_GROWTH_BYTES)


def connect(context: zmq.Context[zmq.Socket[bytes]], endpoint: str, door: Door, keys: KeyPair) -> zmq.Socket[bytes]:
    socket = as_client(context.socket(zmq.DEALER), keys, door.server_key)
    socket.connect(endpoint)
    return socket


@pytest.mark.usefixtures("unharmed")
def test_ten_thousand_mutated_requests_are_each_answered(pool: RunningPool) -> None:
    # Bob is no operator, and may hold no session: what a mutation asks for by chance must leave no trace.
    bob = pool.add_user("bob")
    codes: Counter[str] = Counter()
    with zmq.Context() as context, connect(context, bob.endpoint, bob, bob.keys) as socket:
        asked = 0
        for _, frames in mutations(1, HONEST, 10_000):
            socket.send_multipart(frames)
            asked += 1
            if asked - codes.total() >= 200:  # within what queues hold, so that each answer arrives
                codes[answer(socket)] += 1
        while codes.total() < asked:
            codes[answer(socket)] += 1
    assert codes[RefusalCode.MALFORMED] > 3_000
    assert codes[RefusalCode.FOREIGN_VERSION] > 500
    assert codes[RefusalCode.OVERSIZED] == 0  # 40 kB are not too much
    close_all(pool, but="ada")


@pytest.mark.usefixtures("unharmed")
def test_a_flood_whose_answers_are_not_read_costs_the_flooder_alone(pool: RunningPool, port: int) -> None:
    bob = pool.add_user("carl")
    # By the network's door: who comes by that of the gateway's own account could end it by a signal as well.
    with zmq.Context() as context, connect(context, f"tcp://127.0.0.1:{port}", bob, bob.keys) as socket:
        socket.sndhwm = socket.rcvhwm = 10
        for _, frames in mutations(2, HONEST, 10_000):
            try:
                socket.send_multipart(frames, zmq.NOBLOCK)
            except zmq.Again:
                socket.poll(1, zmq.POLLOUT)
        assert commands.status(pool.state).devices  # others are served meanwhile
    close_all(pool, but="ada")


@pytest.mark.usefixtures("unharmed")
def test_ten_thousand_mutated_reports_do_not_confuse_it(pool: RunningPool) -> None:
    """Sent by somebody who has the agent's own key, which is the worst that can be sent there."""
    agent = curve.load(pool.state.agent_key)
    with zmq.Context() as context, connect(context, pool.state.agent_endpoint, pool.ada, agent) as socket:
        for _, frames in mutations(3, FROM_AGENTS, 10_000):
            if not is_honest(frames):
                socket.send_multipart(frames)
        socket.send_multipart(encode(control.LaunchFailed("never", 1, "the last one")))
        until(lambda: bool(commands.status(pool.state).devices))


@pytest.mark.usefixtures("unharmed")
def test_frames_above_the_limit_cut_their_sender_off(pool: RunningPool) -> None:
    with zmq.Context() as context, connect(context, pool.ada.endpoint, pool.ada, pool.ada.keys) as socket:
        watch = HandshakeWatch(socket)
        for _ in range(20):
            socket.send(b"x" * (1 << 20))

        def is_cut_off() -> bool:
            watch.read()
            return watch.disconnects > 0

        until(is_cut_off)
        watch.close()


@pytest.mark.usefixtures("unharmed")
def test_noise_without_a_handshake_is_dropped(pool: RunningPool) -> None:
    chance = random.Random(4)
    path = pool.ada.endpoint.removeprefix("ipc://")
    for _ in range(500):
        with plain_socket.socket(plain_socket.AF_UNIX) as raw:
            raw.connect(path)
            try:
                raw.send(
                    chance.choice([b"GET / HTTP/1.1\r\n\r\n", b"\xff" + bytes(8) + b"\x7f\x03", chance.randbytes(99)])
                )
            except OSError:
                continue  # it hung up on us already


@pytest.mark.usefixtures("unharmed")
def test_strangers_at_the_door_do_not_keep_users_out(pool: RunningPool) -> None:
    with zmq.Context() as context:
        strangers = [connect(context, pool.ada.endpoint, pool.ada, curve.generate()) for _ in range(100)]
        for stranger in strangers:
            with suppress(zmq.Again):  # turned away already
                stranger.send_multipart(encode(control.AskPool(1)), zmq.DONTWAIT)
        assert commands.status(pool.state).devices
        for stranger in strangers:
            stranger.close(linger=0)


def test_a_message_of_endless_many_frames_costs_a_restart_at_most(make_pool: MakePool) -> None:
    pool = make_pool(gateway_memory_bytes=128 << 20)
    ticket = pool.open()
    gateway = pool.process("gateway")
    # In a process of its own: libzmq may abort where a socket is closed just as half a message's receiver dies.
    sender = multiprocessing.get_context("spawn").Process(target=send_endless_message, args=(pool.ada,))
    sender.start()
    try:
        until(lambda: read_identity(pool.state.process_file("gateway")) != gateway)
    finally:
        sender.kill()
        sender.join()
        sender.close()
    pool.successor("gateway", gateway)
    until(lambda: pool.renew(ticket).epoch == 1)
    assert pool.executor(ticket).is_running


def send_endless_message(door: Door) -> None:
    frame = bytes(60_000)
    with zmq.Context() as context, connect(context, door.endpoint, door, door.keys) as socket:
        for _ in range(10_000):
            socket.send(frame, zmq.SNDMORE, copy=False)
        socket.send(frame)
        while not socket.poll(60_000):  # until it is killed
            pass


def answer(socket: zmq.Socket[bytes]) -> str:
    assert socket.poll(90_000), "a request was not answered"
    got = ANSWERS.decode(socket.recv_multipart())
    return got.code if isinstance(got, control.Denied) else type(got).__name__


def is_honest(frames: list[bytes]) -> bool:
    """Tell whether a mutation is a report that could be true: those are believed, as they must be."""
    try:
        return isinstance(Codec(control.FromAgent).decode(frames), control.NodeReport)
    except WireError:
        return False


def close_all(pool: RunningPool, but: str = "") -> None:
    """Close what mutations happened to open, and go on: those that nobody waits for are heard a while later."""
    door = commands.operator_door(pool.state)

    def is_quiet() -> bool:
        others = [session for session in commands.status(pool.state).sessions if session.user != but]
        for session in others:
            ask(door, control.CloseSession(0, session.session))
        return not others

    until(is_quiet)
