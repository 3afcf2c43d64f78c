"""``python -m gpu_backend.engine.ray_driver``: the one process of a gateway that speaks with Ray.

A process of its own, because Ray ends the process that it is in when its head stays away for long, and brings some
thirty threads; a gateway must not feel either. It ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from contextlib import suppress
from typing import IO, Any

import msgspec
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from gpu_backend.engine import logs
from gpu_backend.engine.ray_keeper import Keeper
from gpu_backend.engine.ray_words import FromDriver, Keep, Kept, Nodes, Stop, Stopped, ToDriver, Unkept

log = logging.getLogger("engine.ray_driver")

NAMESPACE = "gpu-workbench"
_LOOK_SECONDS = 0.5
_AGAIN_SECONDS = 2.0
#: How long a keeper has to end its agent, seconds.
_STOP_SECONDS = 15.0


class Driver:
    """Sees which nodes Ray has, and has a keeper on each that is to be kept."""

    def __init__(self, prepare: list[str], out: IO[bytes]) -> None:
        self._prepare = prepare
        self._out = out
        #: Ray's own names of the nodes that are alive, by ours, and their addresses.
        self._ids: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        #: The nodes whose agents are to be kept, and what that is about.
        self._kept: dict[str, Keep] = {}
        self._following: dict[str, asyncio.Task[None]] = {}

    async def look(self) -> None:
        """Tell of the nodes whenever they are others than before."""
        told: Nodes | None = None
        while True:
            rows = await asyncio.to_thread(ray.nodes)
            alive = self._alive(rows)
            before, self._ids = self._ids, {name: row["NodeID"] for name, row in alive.items()}
            self._addresses = {name: row["NodeManagerAddress"] for name, row in alive.items()}
            causes = {row["NodeName"]: row["DeathReasonMessage"] for row in rows if row["NodeName"] not in alive}
            found = Nodes(self._addresses, causes)
            if found != told:
                self._say(found)
                told = found
            for name, where in before.items():
                if self._ids.get(name) != where:
                    await self._drop(name, where)
            await asyncio.sleep(_LOOK_SECONDS)

    def _alive(self, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the nodes that are alive, by name. One whose Ray was started again is for a while there twice."""
        alive: dict[str, dict[str, Any]] = {}
        for row in rows:
            name = row["NodeName"]
            if row["Alive"] and (name not in alive or alive[name]["NodeID"] != self._ids.get(name)):
                alive[name] = row
        return alive

    async def _drop(self, node: str, where: str) -> None:
        """Forget the keeper of a node that is gone: Ray would wait for that node for ever, to start it there again.

        If Ray was started again on the same machine, there is another node of that name, and it gets a keeper.
        """
        following = self._following.pop(node, None)
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        with suppress(RayError, ValueError):
            ray.kill(ray.get_actor(f"keeper-{where}"), no_restart=True)
        order = self._kept.get(node)
        if order is not None and node in self._ids:
            self._following[node] = asyncio.create_task(self._follow(order))
        else:
            self._kept.pop(node, None)

    async def obey(self, orders: asyncio.Queue[bytes]) -> None:
        """Do what the engine says."""
        while True:
            line = await orders.get()
            order = msgspec.json.decode(line, type=ToDriver)
            before = self._following.pop(order.node, None)
            if before is not None:
                before.cancel()
                await asyncio.gather(before, return_exceptions=True)
            if isinstance(order, Keep):
                self._kept[order.node] = order
                work = self._follow(order)
            else:
                self._kept.pop(order.node, None)
                work = self._stop(order)
            self._following[order.node] = asyncio.create_task(work)

    async def _follow(self, order: Keep) -> None:
        """Have a keeper keep the agent of one node, for as long as the node is there, and tell of each agent."""
        while True:
            try:
                keeper = self._keeper(order.node)
                answer = await keeper.keep.remote(order.told)
                while answer:
                    told = msgspec.json.decode(answer, type=Kept | Unkept)
                    self._say(told)
                    if isinstance(told, Unkept):
                        break
                    answer = await self._news(keeper, told)
            except (RayError, LookupError, ValueError) as error:  # the last: an actor of that name is just ending
                self._say(Unkept(order.node, str(error).strip().splitlines()[0]))
            await asyncio.sleep(_AGAIN_SECONDS)

    @staticmethod
    async def _news(keeper: Any, told: Kept) -> str:
        while True:
            answer: str = await keeper.news.remote(told.agent)
            if not answer or msgspec.json.decode(answer, type=Kept) != told:
                return answer

    async def _stop(self, order: Stop) -> None:
        problem = ""
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                keeper = self._keeper(order.node)
                await keeper.stop.remote()
                ray.kill(keeper, no_restart=True)
        except (RayError, LookupError, ValueError, TimeoutError) as error:
            problem = str(error).strip() or "its keeper did not answer"
        self._say(Stopped(order.node, problem.splitlines()[0] if problem else ""))

    def _keeper(self, node: str) -> Any:
        """Return the keeper of ``node``, which Ray starts if need be, and again on that node alone."""
        if node not in self._ids:
            raise LookupError(f"there is no node {node!r} now")
        where = self._ids[node]
        return (
            ray.remote(Keeper)
            .options(
                name=f"keeper-{where}", namespace=NAMESPACE, get_if_exists=True, lifetime="detached", num_cpus=0,
                max_restarts=-1, max_task_retries=-1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(where, soft=False),
            )
            .remote(node, self._addresses[node], self._prepare)
        )  # fmt: skip

    def _say(self, message: FromDriver) -> None:
        self._out.write(msgspec.json.encode(message) + b"\n")
        self._out.flush()


async def _run(address: str, prepare: list[str], out: IO[bytes]) -> None:
    orders: asyncio.Queue[bytes] = asyncio.Queue()
    reading = threading.Thread(target=_read, args=(asyncio.get_running_loop(), orders), daemon=True)
    reading.start()  # before Ray, which waits for a head that is away, and must not keep the driver of a dead gateway
    ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
    driver = Driver(prepare, out)
    looking = asyncio.create_task(driver.look())
    obeying = asyncio.create_task(driver.obey(orders))
    await asyncio.wait({looking, obeying}, return_when=asyncio.FIRST_COMPLETED)
    if looking.done():
        looking.result()


def _read(loop: asyncio.AbstractEventLoop, orders: asyncio.Queue[bytes]) -> None:
    """Pass on what the engine says; when it says no more, end at once, whatever Ray is busy with."""
    while line := sys.stdin.buffer.readline():
        loop.call_soon_threadsafe(orders.put_nowait, line)
    os._exit(0)


def main() -> None:
    """Drive the cluster at the address that is given; what is behind it are the words that prepare a node."""
    logs.set_up()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints goes to the log
    address, *prepare = sys.argv[1:]
    with suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(_run(address, prepare, out))
    os._exit(0)  # Ray's own end waits for a head that may be away


if __name__ == "__main__":
    main()
