"""A gateway in one process with its test: real sockets and keys, an agent and an engine that only play along."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio

from gpu_backend.engine.base import NodeChange, NodeEvent
from gpu_backend.gateway.accounts import Accounts
from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.entitlements import Entitlements, Quota
from gpu_backend.gateway.service import Gateway
from gpu_backend.gateway.settings import GatewaySettings
from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask_async
from gpu_backend.transport.curve import KeyPair
from gpu_backend.transport.handshake import HandshakeWatch
from gpu_backend.transport.sockets import as_client
from gpu_backend.wire import control
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.devices import DeviceReport
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.views import PoolView, UsageView

GATEWAY, AGENT, ADA, EVE, BOSS = (curve.generate() for _ in range(5))
#: How long anybody waits for an answer, or the gateway before it gives one, unless a test says otherwise: what comes at
#: all comes because it is ready, and not because the time is up.
PATIENT_SECONDS = 90.0
DEVICE = DeviceReport(0, "cpu", "a CPU", "cpu-0", 1 << 34, 1)


class OneNode:
    """An engine of one node whose agent is the test's business."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[NodeEvent] = asyncio.Queue()
        self.ensured: list[str] = []
        self.stopped: list[str] = []
        #: Nodes whose agents never come up.
        self.stuck: set[str] = set()

    async def nodes(self) -> tuple[str, ...]:
        return ("n",)

    async def watch(self) -> AsyncIterator[NodeEvent]:
        yield NodeEvent("n", NodeChange.JOINED)
        while True:
            yield await self.events.get()

    async def ensure_agent(self, node: str) -> None:
        self.ensured.append(node)
        if node in self.stuck:
            await asyncio.Event().wait()

    async def stop_agent(self, node: str) -> None:
        self.stopped.append(node)

    async def ask_capacity(self, devices: int) -> int:
        return 0


class PlayedAgent:
    """Has an executor for whatever it is told to launch, unless ``launches`` is false."""

    def __init__(self, context: zmq.asyncio.Context, endpoint: str, keys: KeyPair) -> None:
        self._connect = lambda: as_client(context.socket(zmq.DEALER), keys, GATEWAY.public)
        self._endpoint = endpoint
        self._socket = self._connect()
        self._socket.connect(endpoint)
        self._orders: Codec[control.ToAgent] = Codec(control.ToAgent)
        self.launches = self.speaks = True
        #: Of which device no executor can be had, if there is one.
        self.fails_on: int | None = None
        #: Of what those end that are told to.
        self.ends_by = control.EndCause.STOPPED
        #: What executors have used, by session and epoch.
        self.usage: dict[tuple[str, int], control.Usage] = {}
        #: What the arbiter has on its books of each session, in its own clock.
        self.booked: dict[str, control.Booked] = {}
        self.device = DEVICE
        #: Those that it has beside that one.
        self.others: tuple[DeviceReport, ...] = ()
        self.executors: dict[tuple[str, int], control.Launch] = {}
        self.heard: list[control.ToAgent] = []

    def reconnect(self) -> None:
        """Speak from another address, as an agent does that was restarted."""
        self._old, self._socket = self._socket, self._connect()
        self._socket.connect(self._endpoint)

    async def serve(self) -> None:
        await self.report()
        while True:
            if not await self._socket.poll(500):
                await self.report()  # as an agent does that has no news: it is there
                continue
            order = self._orders.decode(await self._socket.recv_multipart())
            self.heard.append(order)
            if isinstance(order, control.Launch) and order.ordinal == self.fails_on:
                failed = f"Device {order.ordinal} is broken."
                await self.send(control.LaunchFailed(order.session, order.epoch, failed))
            elif isinstance(order, control.Launch) and self.launches:
                self.executors[order.session, order.epoch] = order
            elif isinstance(order, control.StopExecutor):
                self.executors.pop((order.session, order.epoch), None)
                ended = control.ExecutorEnded(order.session, order.epoch, self.ends_by, order.reason)
                await self.send(ended)
            elif isinstance(order, control.StopNode):
                self.executors.clear()
            await self.report()

    async def report(self) -> None:
        lines = tuple(
            control.ExecutorReport(
                o.session, o.epoch, o.ordinal, o.client_key, (f"tls://{o.session}:1",), "5" * 64, "c" * 64,
                o.memory_limit_bytes, o.lease_seconds, 0, 0, 0.0, self.usage.get((o.session, o.epoch), control.Usage()),
                self.booked.get(o.session, control.Booked()), o.seal,
            )
            for o in self.executors.values()
        )  # fmt: skip
        await self.send(control.NodeReport((self.device, *self.others), lines, len(lines)))

    async def lose(self, session: str, epoch: int, cause: control.EndCause) -> None:
        await self.report()  # with all that it used
        del self.executors[session, epoch]
        await self.send(control.ExecutorEnded(session, epoch, cause, "It is gone."))

    async def use(self, session: str, seconds: float, epoch: int = 1, **more: Any) -> None:
        """Report that an executor has used so much in all."""
        self.usage[session, epoch] = control.Usage(seconds, **more)
        await self.report()

    async def send(self, message: control.FromAgent) -> None:
        if self.speaks:
            await self._socket.send_multipart(encode(message))


class World:
    """A running gateway and the ways to it."""

    def __init__(self, tmp_path: Path, context: zmq.asyncio.Context, engine: OneNode) -> None:
        self.context = context
        self.engine = engine
        self.users_endpoint = f"ipc://{tmp_path}/users"
        self.agents_endpoint = f"ipc://{tmp_path}/agents"

    async def ask(self, keys: KeyPair, message: control.ToGateway) -> control.FromGateway:
        return await ask_async(Door(self.users_endpoint, GATEWAY.public, keys), message, PATIENT_SECONDS)

    async def open(self, keys: KeyPair = ADA, label: str = "a.ipynb") -> control.Ticket:
        answer = await self.ask(keys, control.OpenSession(0, label))
        assert isinstance(answer, control.Ticket)
        return answer

    async def renew(self, session: str, keys: KeyPair = ADA) -> control.FromGateway:
        return await self.ask(keys, control.RenewTicket(0, session))

    async def view(self, keys: KeyPair = ADA) -> PoolView:
        answer = await self.ask(keys, control.AskPool(0))
        assert isinstance(answer, PoolView)
        return answer

    async def usage(self, keys: KeyPair = ADA, by: str = "user", since: str = "") -> UsageView:
        answer = await self.ask(keys, control.AskUsage(0, by, since))
        assert isinstance(answer, UsageView)
        return answer

    async def node_is_heard(self) -> None:
        """Wait for the node's first report: who asks for a session before it may be told that there is no node."""

        async def is_so() -> bool:
            return bool((await self.view()).devices)

        await until(is_so)

    def raw(self, endpoint: str, keys: KeyPair) -> zmq.asyncio.Socket:
        socket = as_client(self.context.socket(zmq.DEALER), keys, GATEWAY.public)
        socket.connect(endpoint)
        return socket

    async def is_turned_away(self, endpoint: str, keys: KeyPair) -> None:
        """Wait until whoever knocks at a door with these keys is told that they are none of its."""
        socket = as_client(self.context.socket(zmq.DEALER), keys, GATEWAY.public)
        watch = HandshakeWatch(socket)
        socket.connect(endpoint)

        async def is_so() -> bool:
            watch.read()
            assert not watch.succeeded
            return "refused" in watch.failure

        try:
            await until(is_so)
        finally:
            watch.close()
            socket.close(linger=0)


@asynccontextmanager
async def gateway_only(tmp_path: Path, **changes: object) -> AsyncIterator[World]:
    records = Directory(tmp_path / "directory.sqlite")
    records.set_node("n", AGENT.public.decode())
    for name, keys in (("ada", ADA), ("eve", EVE), ("boss", BOSS)):
        records.add_user(name, name == "boss", 0.0)
        with suppress(PoolRefusal):  # the gateway is started again in some tests
            records.add_key(keys.public.decode(), name, "", 0.0)
    context = zmq.asyncio.Context()
    world = World(tmp_path, context, OneNode())
    wanted = GatewaySettings(
        pool="test", version="1", client_endpoints=(world.users_endpoint,), agent_endpoints=(world.agents_endpoint,),
        defaults=Entitlements(Quota(sessions=2)), sessions_per_device=3, default_memory_bytes=0, lease_seconds=60.0,
        answer_seconds=PATIENT_SECONDS, stop_seconds=1.0,
    )  # fmt: skip
    settings = replace(wanted, **changes)  # type: ignore[arg-type]
    accounts = Accounts(tmp_path / "accounts.sqlite")
    gateway = Gateway(settings, GATEWAY, records, accounts, world.engine)
    serving = asyncio.create_task(gateway.run())
    try:
        yield world
    finally:
        gateway.stop()
        await serving
        records.close()
        accounts.close()
        context.destroy(linger=0)


@asynccontextmanager
async def pool(tmp_path: Path, **changes: object) -> AsyncIterator[tuple[World, PlayedAgent]]:
    async with gateway_only(tmp_path, **changes) as world:
        agent = PlayedAgent(world.context, world.agents_endpoint, AGENT)
        playing = asyncio.create_task(agent.serve())
        try:
            yield world, agent
        finally:
            playing.cancel()
            with suppress(asyncio.CancelledError):
                await playing


Story = Callable[[World, PlayedAgent], Awaitable[None]]


def play(tmp_path: Path, story: Story, **changes: object) -> None:
    """Have ``story`` happen in a pool whose settings are the tests' own but for ``changes``."""

    async def all_of_it() -> None:
        async with pool(tmp_path, **changes) as (world, agent):
            await story(world, agent)

    asyncio.run(all_of_it())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENT_SECONDS):
        while not await condition():
            await asyncio.sleep(0.01)
