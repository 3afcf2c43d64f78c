"""The engine of many machines: Ray knows which there are and keeps a keeper on each, which keeps the agent."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from gpu_backend.engine.base import NodeChange, NodeEvent
from gpu_backend.engine.ray_cluster import RayCluster, need_ray
from gpu_backend.engine.ray_words import FromDriver, Keep, Kept, Nodes, Stop, Stopped, ToDriver, Unkept

log = logging.getLogger("engine.ray")

_DRIVER = "gpu_backend.engine.ray_driver"
_LONGEST_LINE_BYTES = 4 << 20
_LONGEST_PAUSE_SECONDS = 10.0
#: How long the first word of which nodes there are is waited for, seconds: less than a pool has to go down.
_FIRST_SECONDS = 8.0
#: How long an agent has to end after it was asked to, seconds. Its keeper kills it before that.
_STOP_SECONDS = 20.0


class RayEngine:
    """As many nodes as a Ray cluster has. Ray itself is in a process of its own, and may be away for a while.

    What is told of nodes is what is otherwise than before: a driver that had to be started anew is asked to keep what
    was kept, and tells nothing twice.
    """

    def __init__(
        self,
        cluster: RayCluster,
        prepare: Sequence[str],
        told: str,
        log_file: Path,
        admit: Callable[[str, str], None],
    ) -> None:
        """Have the agents of ``cluster`` kept.

        Parameters
        ----------
        prepare
            Arguments to a node's own Python, with which it is prepared for its agent: it finds the node's name, its
            address and ``told`` as a JSON list on its standard input, and answers with a `Prepared`.
        log_file
            Where the driver's words go.
        admit
            Called with a node's name and the public key of its agent.

        Raises
        ------
        PoolRefusal
            If Ray is not installed.
        """
        need_ray()
        self._cluster = cluster
        self._prepare = tuple(prepare)
        self._told = told
        self._log_file = log_file
        self._admit = admit
        self._driver: asyncio.subprocess.Process | None = None
        self._addresses: dict[str, str] = {}
        self._is_told = asyncio.Event()
        #: The nodes to be kept, and the agent that was last heard of on each.
        self._agents: dict[str, str] = {}
        self._events: asyncio.Queue[NodeEvent] = asyncio.Queue()
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    async def nodes(self) -> tuple[str, ...]:
        """Return the nodes that Ray last said are alive; a driver that was just started is given time to say it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_SECONDS):
                await self._is_told.wait()
        return tuple(self._addresses)

    async def watch(self) -> AsyncIterator[NodeEvent]:
        """Yield nodes that join and are lost, and agents that were started again."""
        driving = asyncio.create_task(self._drive())
        try:
            while True:
                yield await self._events.get()
        finally:
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)

    async def ensure_agent(self, node: str) -> None:
        """Have a keeper keep an agent on ``node``; return when it does, or when it cannot yet, which is logged."""
        self._check(node)
        if self._agents.get(node):
            return  # its keeper sees to it
        self._agents.setdefault(node, "")
        await self._ask(Keep(node, self._told))

    async def stop_agent(self, node: str) -> None:
        """End the agent of ``node`` and its keeper."""
        self._check(node)
        self._agents.pop(node, None)
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._ask(Stop(node))
        except TimeoutError:
            log.error("the agent of %s could not be ended: Ray does not answer", node)

    async def ask_capacity(self, devices: int) -> int:
        """Return 0: machines are joined by people."""
        return 0

    async def _drive(self) -> None:
        """Have a driver, and another one when it ends: for as long as Ray's head is away, it ends soon."""
        failures = 0
        while True:
            try:
                if await self._follow_driver():
                    failures = 0
            except OSError as error:
                log.error("the driver cannot be started: %s", error)
            failures += 1
            pause = min(0.5 * 2**failures, _LONGEST_PAUSE_SECONDS)
            log.error("the driver of Ray has ended, the next is started in %.0f s; see %s", pause, self._log_file)
            await asyncio.sleep(pause)

    async def _follow_driver(self) -> bool:
        """Start a driver and hear it until it ends; tell whether it ever spoke with Ray."""
        with self._log_file.open("ab") as output:
            driver = await asyncio.create_subprocess_exec(
                sys.executable, "-m", _DRIVER, self._cluster.address, *self._prepare, env=self._cluster.environment(),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=output, limit=_LONGEST_LINE_BYTES,
                start_new_session=True,
            )  # fmt: skip
        has_spoken = False
        try:
            self._driver = driver
            for node in self._agents:
                self._tell(Keep(node, self._told))
            assert driver.stdout is not None
            while line := await driver.stdout.readline():
                has_spoken = True
                self._hear(msgspec.json.decode(line, type=FromDriver))
            return has_spoken
        finally:
            self._driver = None
            with suppress(ProcessLookupError):
                driver.kill()
            await driver.wait()

    def _hear(self, message: FromDriver) -> None:
        match message:
            case Nodes():
                self._note_nodes(message)
            case Kept():
                self._note_agent(message)
            case Unkept():
                log.error("there is no agent on %s yet: %s", message.node, message.problem)
                self._resolve(message.node)
            case Stopped():
                if message.problem:
                    log.error("the agent of %s could not be ended: %s", message.node, message.problem)
                self._resolve(message.node)

    def _note_nodes(self, found: Nodes) -> None:
        for node in [node for node in self._addresses if node not in found.addresses]:
            self._agents.pop(node, None)
            self._events.put_nowait(NodeEvent(node, NodeChange.LOST, found.causes.get(node, "")))
            self._resolve(node)
        for node in found.addresses:
            if node not in self._addresses:
                self._events.put_nowait(NodeEvent(node, NodeChange.JOINED))
        self._addresses = found.addresses
        self._is_told.set()

    def _note_agent(self, kept: Kept) -> None:
        if kept.node not in self._agents:
            return  # it was stopped, or its node lost, meanwhile
        self._admit(kept.node, kept.key)
        before = self._agents[kept.node]
        if kept.agent:  # else it has just ended, and another one is started
            self._agents[kept.node] = kept.agent
            if before and before != kept.agent:
                self._events.put_nowait(NodeEvent(kept.node, NodeChange.AGENT_STARTED, "The agent had ended."))
        self._resolve(kept.node)

    async def _ask(self, order: ToDriver) -> None:
        """Tell the driver; wait for what comes of it."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(order.node, []).append(done)
        self._tell(order)
        await done

    def _tell(self, order: ToDriver) -> None:
        if self._driver is not None and self._driver.stdin is not None:
            self._driver.stdin.write(msgspec.json.encode(order) + b"\n")

    def _resolve(self, node: str) -> None:
        for done in self._waiting.pop(node, []):
            if not done.done():
                done.set_result(None)

    def _check(self, node: str) -> None:
        if node not in self._addresses:
            raise LookupError(f"There is no node {node!r} in this pool; there are {', '.join(self._addresses)}.")
