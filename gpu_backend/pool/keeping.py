"""The keeper: what runs on a machine that has joined a pool, and keeps one agent running there."""

from __future__ import annotations

import asyncio
import logging
import signal

from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.engine.local import LocalEngine
from gpu_backend.node import settings as node_settings
from gpu_backend.pool.setup import agent_command
from gpu_backend.pool.state import PoolState
from gpu_backend.pool.supervisor import gone

log = logging.getLogger("pool.keeper")


async def keep(state: PoolState, owner: ProcessId | None) -> bool:
    """Keep the agent until a signal ends us, which leaves it running, or until the owner is gone; tell whether it is.

    ``owner`` is a process that the node is not to outlive; None for as long as it likes.
    """
    write_identity(state.process_file("supervisor"), ProcessId.mine())
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = node_settings.read(state.node).node
    engine = LocalEngine(node, agent_command(state), state.node, state.logs / "agent.log")
    orphaned = asyncio.create_task(gone(owner))
    tasks = {orphaned, asyncio.create_task(stop.wait()), asyncio.create_task(_watch(engine, node))}
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks - done:
        task.cancel()
    await asyncio.gather(*tasks - done, return_exceptions=True)
    for task in done:
        task.result()
    return orphaned in done


async def _watch(engine: LocalEngine, node: str) -> None:
    await engine.ensure_agent(node)
    async for event in engine.watch():
        log.info("node %s: %s. %s", event.node, event.change, event.detail)
